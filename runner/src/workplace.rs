//! The folders of one attempt, and the environment that tells the training command of them.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_protocol::command_line::hp_variables;
use tempfile::TempDir;

use crate::exit::Failure;
use crate::gpus;
use crate::log::say;
use crate::user::User;
use crate::wandb;
use crate::workspace::POINT;

/// The runner's own record of every metric line.
const METRICS_RECORD: &str = "metrics.jsonl";

/// Where the command finds and leaves things. The runner's own files go when this is dropped.
pub(crate) struct Workplace {
    index: u32,
    storage: PathBuf,
    /// `<root>/storage/<index>`: what is collected.
    pub(crate) output: PathBuf,
    /// Where the command saves its checkpoints.
    pub(crate) checkpoints: PathBuf,
    datasets: PathBuf,
    /// The training code, and where the command runs.
    pub(crate) code: Option<PathBuf>,
    /// The runner's own folder on the workspace.
    kept: Option<PathBuf>,
    scratch: TempDir,
}

impl Workplace {
    /// Makes the folders (the seeds' `/storage/<index>` and `/dltraining`) and writes the
    /// parameters down. With `kept`, the runner's own folder on the workspace, what the command leaves
    /// in its storage folder lies there, so that the outputs of earlier attempts are not lost.
    pub(crate) fn make(
        root: &Path,
        trial: &TrialLine,
        kept: Option<&Path>,
        user: Option<&User>,
    ) -> Result<Self, Failure> {
        let storage = root.join("storage");
        let workspace = root.join(POINT);
        let scratch = tempfile::Builder::new()
            .prefix("spotsweep-")
            .tempdir()
            .map_err(|source| Failure::Prepare { path: std::env::temp_dir(), source })?;
        let place = Self {
            index: trial.index,
            output: storage.join(trial.index.to_string()),
            storage,
            checkpoints: workspace.join("checkpoints"),
            datasets: workspace.join("datasets"),
            code: None,
            kept: kept.map(Path::to_owned),
            scratch,
        };
        if let Some(kept) = kept {
            let kept = kept.join("storage");
            prepared(&kept, fs::create_dir_all(&kept))?;
            prepared(&place.output, lead(&place.output, &kept))?;
        }
        let parameters = Value::Object(trial.parameters.clone()).to_string();
        prepared(&place.parameters(), fs::write(place.parameters(), parameters))?;
        let of_wandb = wandb::parameters_file(&trial.parameters);
        prepared(&place.wandb_parameters(), fs::write(place.wandb_parameters(), of_wandb))?;
        prepared(&place.metrics(), fs::write(place.metrics(), ""))?;
        for folder in [&place.output, &place.checkpoints, &place.datasets] {
            prepared(folder, fs::create_dir_all(folder))?;
        }
        // A workspace is this trial's alone; other folders change hands only where that was asked for.
        let owner = user.cloned().or_else(|| kept.map(|_| User::own()));
        let owned = [&place.output, &place.checkpoints, &place.datasets];
        for path in owned.into_iter().map(PathBuf::as_path).chain([place.scratch.path(), &place.metrics()]) {
            prepared(path, owner.as_ref().map_or(Ok(()), |owner| hand_over(path, owner)))?;
        }
        Ok(place)
    }

    /// The trial's parameters as one JSON object.
    pub(crate) fn parameters(&self) -> PathBuf {
        self.scratch.path().join("parameters.json")
    }

    /// The same for `wandb.config`.
    pub(crate) fn wandb_parameters(&self) -> PathBuf {
        self.scratch.path().join("wandb-parameters.yaml")
    }

    /// The file that the command may append metrics to.
    pub(crate) fn metrics(&self) -> PathBuf {
        self.scratch.path().join("metrics")
    }

    /// The runner's own record of every metric line; of all attempts where there is a workspace.
    pub(crate) fn metrics_record(&self) -> PathBuf {
        self.kept.as_deref().unwrap_or(self.scratch.path()).join(METRICS_RECORD)
    }

    /// A home of the attempt's own, for a user that has none.
    pub(crate) fn home(&self, user: &User) -> Result<PathBuf, Failure> {
        let home = self.scratch.path().join("home");
        prepared(&home, fs::create_dir_all(&home))?;
        prepared(&home, hand_over(&home, user))?;
        Ok(home)
    }

    /// The file by whose existence the command says that its result is whole. It is this attempt's own, so none of an
    /// earlier attempt can be in its place.
    fn finished(&self) -> PathBuf {
        self.scratch.path().join("finished")
    }

    /// Whether the command has said that its result is whole.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished().exists()
    }

    /// Where an interrupted attempt leaves the end of its log to the next one.
    pub(crate) fn kept_log(&self) -> Option<PathBuf> {
        self.kept.as_ref().map(|kept| kept.join("train.log"))
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
                ("SPOTSWEEP_METRICS", path(&self.metrics())),
                ("SPOTSWEEP_FINISHED", path(&self.finished())),
                ("SPOTSWEEP_TRIAL_INDEX", index.clone()),
                ("SPOTSWEEP_STORAGE", path(&self.storage)),
                ("SPOTSWEEP_OUTPUT", path(&self.output)),
                ("SPOTSWEEP_CHECKPOINTS", path(&self.checkpoints)),
                ("SPOTSWEEP_DATASETS", path(&self.datasets)),
                // The seeds' scripts read it as the index into the whole list; Batch's own value
                // counts within one array job, and a single trial has none.
                ("AWS_BATCH_JOB_ARRAY_INDEX", index),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        variables.extend(self.code.as_deref().map(|code| ("SPOTSWEEP_CODE".to_owned(), path(code))));
        variables.extend(gpus::variable(inherited));
        if inherited("PYTHONUNBUFFERED").is_none() {
            // Otherwise Python keeps metrics back until its buffer is full.
            variables.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
        }
        variables
    }
}

/// Makes `path` lead to `kept`. A folder with something in it stays: where `/storage` is a file
/// system that outlives the container, as in the seeds, its outputs are kept anyway.
fn lead(path: &Path, kept: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::remove_file(path)?,
        Ok(_) => match fs::remove_dir(path) {
            Ok(()) => {}
            Err(error) => {
                say(&format!("{} stays where it is, off the workspace: {error}", path.display()));
                return Ok(());
            }
        },
        Err(_) => fs::create_dir_all(path.parent().unwrap_or(path))?,
    }
    symlink(kept, path)
}

fn hand_over(path: &Path, owner: &User) -> io::Result<()> {
    let (uid, gid) = (owner.uid.as_raw(), owner.gid.as_raw());
    let found = fs::metadata(path)?;
    if (found.uid(), found.gid()) == (uid, gid) { Ok(()) } else { chown(path, Some(uid), Some(gid)) }
}

fn prepared<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|source| Failure::Prepare { path: path.to_owned(), source })
}
