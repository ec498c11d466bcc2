//! The folders of one attempt, and the environment variables that name them to the training command.

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

/// The variable with the path of the trial's parameters.
pub(crate) const PARAMS_VARIABLE: &str = "SPOTSWEEP_PARAMS";
/// The training's folder in the temporary folder, and the files in it.
const TRAININGS: &str = "training";
const METRICS: &str = "metrics";
const FINISHED: &str = "finished";
const HOME: &str = "home";
/// The variable for the folder of Trainer's event files (transformers 5.24, `integration_utils.py`); they are
/// collected.
const TENSORBOARD: &str = "TENSORBOARD_LOGGING_DIR";
/// Default log folders of libraries in the working folder: PyTorch's SummaryWriter, Lightning, Hydra, Detectron2,
/// MMEngine, and what quick starts choose. The rest is not searched, because it may have datasets.
const LOGS_OF_LIBRARIES: [&str; 8] =
    ["runs", "lightning_logs", "tb_logs", "logs", "output", "outputs", "results", "work_dirs"];
const PARAMETERS: &str = "parameters.json";
const OF_WANDB: &str = "wandb-parameters.yaml";
const DATASETS: &str = "datasets";
/// The mode of the temporary folder, in which the training reads its parameters.
const READABLE: u32 = 0o755;

/// The files and folders of the command. Dropping this removes the temporary folder.
pub(crate) struct Workplace {
    index: u32,
    all_storage: PathBuf,
    /// `<root>/storage/<index>`: the path of the storage folder that the command gets.
    output: PathBuf,
    /// The storage folder, which is collected.
    pub(crate) storage: Storage,
    /// The mount point of the workspace; without a workspace, an ordinary folder.
    workspace: PathBuf,
    /// Where the command saves its checkpoints.
    pub(crate) checkpoints: PathBuf,
    /// The folder of the training code, in which the command runs.
    pub(crate) code: Option<PathBuf>,
    /// The runner's own files.
    pub(crate) own: OwnFiles,
    user: Option<User>,
    /// Judges the workspace's files.
    formats: Arc<FormatReader>,
    scratch: TempDir,
}

impl Workplace {
    /// Makes the folders (the seeds' `/storage/<index>` and `/dltraining`) and writes the parameters to a file. If a
    /// workspace `is_mounted`, the files of the storage folder are on it, so that the outputs of earlier attempts are
    /// not lost.
    pub(crate) fn make(
        (root, workspace): (&Path, PathBuf),
        trial: &TrialLine,
        is_mounted: bool,
        user: Option<&User>,
    ) -> Result<Self, Failure> {
        let all_storage = root.join("storage");
        let output = all_storage.join(trial.index.to_string());
        let temporary = temporary();
        prepared(&temporary, made_for_all(&temporary))?;
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
        // A workspace is this trial's alone. Other folders get another owner only if the job asks for that.
        let owner = user.cloned().or_else(|| is_mounted.then(User::own)).map(|user| user.owner());
        prepared(&place.output, place.storage.make(owner))?;
        prepared(&place.workspace, place.make_shared(owner))?;
        prepared(place.scratch.path(), place.make_scratch(trial, owner))?;
        Ok(place)
    }

    /// Makes the folders of checkpoints and of datasets.
    fn make_shared(&self, owner: Option<Owner>) -> io::Result<()> {
        let workspace = Folder::made(&self.workspace)?;
        for name in [CHECKPOINTS, DATASETS] {
            match workspace.make_folder(name.as_ref()) {
                Ok(folder) => owner.map_or(Ok(()), |owner| folder.give_to(owner))?,
                // Only the training uses this folder, and it may follow a link.
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

    /// The path of the file with the trial's parameters as one JSON object.
    pub(crate) fn parameters(&self) -> PathBuf {
        self.scratch.path().join(PARAMETERS)
    }

    /// The path of the storage folder that the command gets.
    pub(crate) fn output(&self) -> &Path {
        &self.output
    }

    /// The path of the file with the parameters for `wandb.config`.
    pub(crate) fn wandb_parameters(&self) -> PathBuf {
        self.scratch.path().join(OF_WANDB)
    }

    /// The folder of checkpoints, in the form in which it is collected.
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

    /// The folders in which the training code is put together.
    pub(crate) fn for_code(&self) -> code::Place<'_> {
        code::Place {
            workspace: &self.workspace,
            storage: &self.all_storage,
            temporary: self.trainings(),
            scratch: self.scratch.path(),
        }
    }

    /// The file to which the command may append metrics.
    pub(crate) fn metrics(&self) -> MetricsFile {
        MetricsFile::new(self.scratch.path().to_owned(), Path::new(TRAININGS).join(METRICS), self.user.clone())
    }

    /// The folders in which libraries log, and the user that the training runs as. A folder is a path that only the
    /// runner can change, and the path below it.
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

    /// Makes a home for this attempt, for a user that has none.
    pub(crate) fn home(&self) -> Result<PathBuf, Failure> {
        let home = self.trainings().join(HOME);
        let made = Folder::trusted(self.scratch.path())
            .and_then(|scratch| scratch.folder(TRAININGS.as_ref())?.make_folder(HOME.as_ref()));
        prepared(&home, made)?;
        Ok(home)
    }

    /// Whether the command has declared its result complete, by a file of that name. The folder is this attempt's own,
    /// so the file cannot be an earlier attempt's.
    pub(crate) fn is_finished(&self) -> bool {
        let scratch = Folder::trusted(self.scratch.path());
        let finished = scratch.and_then(|scratch| scratch.status(&Path::new(TRAININGS).join(FINISHED)));
        finished.is_ok_and(|found| found.kind == Kind::File)
    }

    /// The variables that the command's environment has in addition to the runner's own.
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
                (PARAMS_VARIABLE, path(&self.parameters())),
                ("SPOTSWEEP_METRICS", path(&self.trainings().join(METRICS))),
                ("SPOTSWEEP_FINISHED", path(&self.trainings().join(FINISHED))),
                ("SPOTSWEEP_TRIAL_INDEX", index.clone()),
                ("SPOTSWEEP_STORAGE", path(&self.all_storage)),
                ("SPOTSWEEP_OUTPUT", path(&self.output)),
                ("SPOTSWEEP_CHECKPOINTS", path(&self.checkpoints)),
                ("SPOTSWEEP_DATASETS", path(&self.workspace.join(DATASETS))),
                // The seeds' scripts read it as the index into the whole list. Batch's own value counts within one
                // array job, and a single trial has none.
                ("AWS_BATCH_JOB_ARRAY_INDEX", index),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        variables.extend(self.code.as_deref().map(|code| ("SPOTSWEEP_CODE".to_owned(), path(code))));
        if inherited(TENSORBOARD).is_none() {
            variables.push((TENSORBOARD.to_owned(), path(&self.output.join("tensorboard"))));
        }
        if inherited("PYTHONUNBUFFERED").is_none() {
            // Without this, Python holds metrics back until its buffer is full.
            variables.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
        }
        variables
    }
}

/// The folder for temporary folders: one in which a training cannot replace them.
fn temporary() -> PathBuf {
    let usual = std::env::temp_dir();
    if is_protected(&usual).unwrap_or(false) { usual } else { "/tmp".into() }
}

/// Makes the folder if there is none, as in an image of one program: all users may write to it, and none may replace
/// what others have written.
fn made_for_all(folder: &Path) -> io::Result<()> {
    match Folder::trusted(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Folder::made(folder)?.set_mode(0o1777),
        found => found.map(|_| ()),
    }
}

/// Makes `name` in `folder` a link to `kept`; returns whether it is one. A folder that is not empty stays. If
/// `/storage` is a file system that outlives the container, as in the seeds, its outputs are kept anyway.
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
