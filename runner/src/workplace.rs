//! The folders of one attempt, and the environment that tells the training command of them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use spotsweep_beneath::{Folder, Kind, Owner, give_file, is_odd, is_protected};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_protocol::command_line::hp_variables;
use spotsweep_seal::disk::MountedDisk;
use spotsweep_seal::{CHECKPOINTS, OWN, STORAGE};
use tempfile::TempDir;

use crate::code;
use crate::exit::Failure;
use crate::log::say;
use crate::metrics_file::MetricsFile;
use crate::own_files::OwnFiles;
use crate::reading::FormatReader;
use crate::storage::Storage;
use crate::user::User;
use crate::wandb;

/// The training's folder in the temporary one, and what is in it.
const TRAININGS: &str = "training";
const METRICS: &str = "metrics";
const FINISHED: &str = "finished";
const HOME: &str = "home";
/// Where Hugging Face's Trainer writes event files (transformers 5.24, `integration_utils.py`): they are collected there.
const TENSORBOARD: &str = "TENSORBOARD_LOGGING_DIR";
/// Where libraries log by default, in the working folder: PyTorch's SummaryWriter, Lightning, Hydra, Detectron2, MMEngine,
/// and what quick starts choose. The whole folder may have datasets.
const LOGS_OF_LIBRARIES: [&str; 8] =
    ["runs", "lightning_logs", "tb_logs", "logs", "output", "outputs", "results", "work_dirs"];
const PARAMETERS: &str = "parameters.json";
const OF_WANDB: &str = "wandb-parameters.yaml";
const DATASETS: &str = "datasets";
/// Of the temporary folder: the training reads its parameters there.
const READABLE: u32 = 0o755;

/// Where the command finds and leaves things. The temporary folder goes when this is dropped.
pub(crate) struct Workplace {
    index: u32,
    all_storage: PathBuf,
    /// `<root>/storage/<index>`: the path by which the command knows its storage folder.
    output: PathBuf,
    /// What is collected.
    pub(crate) storage: Storage,
    /// Where the workspace is mounted; without one, an ordinary folder.
    workspace: PathBuf,
    /// Where the command saves its checkpoints.
    pub(crate) checkpoints: PathBuf,
    /// The training code, and where the command runs.
    pub(crate) code: Option<PathBuf>,
    /// The runner's own.
    pub(crate) own: OwnFiles,
    user: Option<User>,
    /// What judges the workspace's files.
    formats: Arc<FormatReader>,
    scratch: TempDir,
}

impl Workplace {
    /// Makes the folders (the seeds' `/storage/<index>` and `/dltraining`) and writes the parameters down. Where a
    /// workspace `is_mounted`, what the command leaves in its storage folder lies there, so that the outputs of earlier
    /// attempts are not lost.
    pub(crate) fn make(
        (root, workspace): (&Path, PathBuf),
        trial: &TrialLine,
        is_mounted: bool,
        user: Option<&User>,
    ) -> Result<Self, Failure> {
        let all_storage = root.join("storage");
        let output = all_storage.join(trial.index.to_string());
        let temporary = temporary();
        let scratch = prepared(&temporary, tempfile::Builder::new().prefix("spotsweep-").tempdir_in(&temporary))?;
        let index = PathBuf::from(trial.index.to_string());
        let kept = Path::new(OWN).join(STORAGE);
        let is_kept = is_mounted && prepared(&output, lead(&all_storage, &index, &workspace.join(&kept)))?;
        let (base, name) = if is_kept { (&workspace, kept) } else { (&all_storage, index) };
        let place = Self {
            index: trial.index,
            storage: Storage::new(base.clone(), name, &output, user.cloned()),
            all_storage,
            output,
            checkpoints: workspace.join(CHECKPOINTS),
            code: None,
            own: if is_mounted {
                OwnFiles::Workspace(workspace.clone())
            } else {
                OwnFiles::Temporary(scratch.path().to_owned())
            },
            workspace,
            user: user.cloned(),
            formats: Arc::new(FormatReader::new(user.cloned())),
            scratch,
        };
        // A workspace is this trial's alone; other folders change hands only where that was asked for.
        let owner = user.cloned().or_else(|| is_mounted.then(User::own)).map(|user| user.owner());
        prepared(&place.output, place.storage.make(owner))?;
        prepared(&place.workspace, place.make_shared(owner))?;
        prepared(place.scratch.path(), place.make_scratch(trial, owner))?;
        Ok(place)
    }

    /// The folders of checkpoints and of datasets.
    fn make_shared(&self, owner: Option<Owner>) -> io::Result<()> {
        let workspace = Folder::made(&self.workspace)?;
        for name in [CHECKPOINTS, DATASETS] {
            match workspace.make_folder(name.as_ref()) {
                Ok(folder) => owner.map_or(Ok(()), |owner| folder.give_to(owner))?,
                // Only the training uses it, and may go through a link.
                Err(error) if name == DATASETS && is_odd(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn make_scratch(&self, trial: &TrialLine, owner: Option<Owner>) -> io::Result<()> {
        let scratch = Folder::trusted(self.scratch.path())?;
        scratch.set_mode(READABLE)?;
        let parameters = Value::Object(trial.parameters.clone()).to_string();
        scratch.write(PARAMETERS.as_ref(), parameters.as_bytes())?;
        scratch.write(OF_WANDB.as_ref(), wandb::parameters_file(&trial.parameters).as_bytes())?;
        let trainings = scratch.make_folder(TRAININGS.as_ref())?;
        let metrics = trainings.create(METRICS.as_ref())?;
        owner.map_or(Ok(()), |owner| {
            give_file(&metrics, owner)?;
            trainings.give_to(owner)
        })
    }

    /// The trial's parameters as one JSON object.
    pub(crate) fn parameters(&self) -> PathBuf {
        self.scratch.path().join(PARAMETERS)
    }

    /// The storage folder, as the command knows it.
    pub(crate) fn output(&self) -> &Path {
        &self.output
    }

    /// The same for `wandb.config`.
    pub(crate) fn wandb_parameters(&self) -> PathBuf {
        self.scratch.path().join(OF_WANDB)
    }

    /// The folder of checkpoints, as what is collected.
    pub(crate) fn saved(&self) -> Storage {
        Storage::new(self.workspace.clone(), CHECKPOINTS.into(), &self.checkpoints, self.user.clone())
    }

    /// The workspace's files, or those of the folder in its place.
    pub(crate) fn disk(&self) -> MountedDisk {
        MountedDisk::below(&self.workspace).judged_by(self.formats.clone())
    }

    fn trainings(&self) -> PathBuf {
        self.scratch.path().join(TRAININGS)
    }

    /// Where the training code is put together.
    pub(crate) fn for_code(&self) -> code::Place<'_> {
        code::Place { workspace: &self.workspace, storage: &self.all_storage, temporary: self.trainings() }
    }

    /// The file that the command may append metrics to.
    pub(crate) fn metrics(&self) -> MetricsFile {
        MetricsFile::new(self.scratch.path().to_owned(), Path::new(TRAININGS).join(METRICS), self.user.clone())
    }

    /// The folders in which libraries log: where only the runner can change the path, and the path below it. Also who the
    /// training runs as.
    pub(crate) fn log_folders(&self) -> (Vec<(PathBuf, PathBuf)>, Option<User>) {
        let (base, storage) = self.storage.place();
        let storage = storage.strip_prefix(base).unwrap_or(&storage).to_owned();
        let checkpoints = (self.workspace.clone(), PathBuf::from(CHECKPOINTS));
        let mut folders = vec![(base.to_owned(), storage), checkpoints];
        let here = self.code.clone().or_else(|| std::env::current_dir().ok());
        if let Some((parent, name)) = here.as_deref().and_then(|here| Some((here.parent()?, here.file_name()?))) {
            let usual = LOGS_OF_LIBRARIES.map(|logs| (parent.to_owned(), Path::new(name).join(logs)));
            folders.extend(usual);
        }
        (folders, self.user.clone())
    }

    /// A home of the attempt's own, for a user that has none.
    pub(crate) fn home(&self) -> Result<PathBuf, Failure> {
        let home = self.trainings().join(HOME);
        let made = Folder::trusted(self.scratch.path())
            .and_then(|scratch| scratch.folder(TRAININGS.as_ref())?.make_folder(HOME.as_ref()));
        prepared(&home, made)?;
        Ok(home)
    }

    /// Whether the command has said that its result is whole: by a file of that name. It is this attempt's own, so none
    /// of an earlier attempt can be in its place.
    pub(crate) fn is_finished(&self) -> bool {
        let scratch = Folder::trusted(self.scratch.path());
        let finished = scratch.and_then(|scratch| scratch.status(&Path::new(TRAININGS).join(FINISHED)));
        finished.is_ok_and(|found| found.kind == Kind::File)
    }

    /// What the command's environment has beyond the runner's own.
    pub(crate) fn variables(
        &self,
        parameters: &Map<String, Value>,
        inherited: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<(String, String)> {
        let index = self.index.to_string();
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut variables = hp_variables(parameters);
        variables.extend(
            [
                ("SPOTSWEEP_PARAMS", path(&self.parameters())),
                ("SPOTSWEEP_METRICS", path(&self.trainings().join(METRICS))),
                ("SPOTSWEEP_FINISHED", path(&self.trainings().join(FINISHED))),
                ("SPOTSWEEP_TRIAL_INDEX", index.clone()),
                ("SPOTSWEEP_STORAGE", path(&self.all_storage)),
                ("SPOTSWEEP_OUTPUT", path(&self.output)),
                ("SPOTSWEEP_CHECKPOINTS", path(&self.checkpoints)),
                ("SPOTSWEEP_DATASETS", path(&self.workspace.join(DATASETS))),
                // The seeds' scripts read it as the index into the whole list; Batch's own value
                // counts within one array job, and a single trial has none.
                ("AWS_BATCH_JOB_ARRAY_INDEX", index),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        variables.extend(self.code.as_deref().map(|code| ("SPOTSWEEP_CODE".to_owned(), path(code))));
        if inherited(TENSORBOARD).is_none() {
            variables.push((TENSORBOARD.to_owned(), path(&self.output.join("tensorboard"))));
        }
        if inherited("PYTHONUNBUFFERED").is_none() {
            // Otherwise Python keeps metrics back until its buffer is full.
            variables.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
        }
        variables
    }
}

/// Where temporary folders go: not where a training could put another one in their place.
fn temporary() -> PathBuf {
    let usual = std::env::temp_dir();
    if is_protected(&usual).unwrap_or(false) { usual } else { "/tmp".into() }
}

/// Makes `name` in `folder` lead to `kept`; whether it does. A folder with something in it stays: where `/storage` is a
/// file system that outlives the container, as in the seeds, its outputs are kept anyway.
fn lead(folder: &Path, name: &Path, kept: &Path) -> io::Result<bool> {
    let storage = Folder::made(folder)?;
    let is_folder = storage.status(name).is_ok_and(|found| found.kind == Kind::Folder);
    if is_folder && let Err(error) = storage.remove_folder(name) {
        say(&format!("{} stays where it is, off the workspace: {error}", folder.join(name).display()));
        return Ok(false);
    }
    storage.symbolic_link(name, kept).map(|()| true)
}

fn prepared<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|source| Failure::Prepare { path: path.to_owned(), source })
}
