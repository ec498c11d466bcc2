//! The folders of one attempt, and the environment that tells the training command of them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use spotsweep::claim::TrialLine;
use spotsweep::sweep::command::hp_variables;
use tempfile::TempDir;

use crate::exit::Failure;

/// Where the command finds and leaves things. The runner's own files go when this is dropped.
pub(crate) struct Workplace {
    index: u32,
    storage: PathBuf,
    /// `<root>/storage/<index>`: what is collected.
    pub(crate) output: PathBuf,
    checkpoints: PathBuf,
    datasets: PathBuf,
    scratch: TempDir,
}

impl Workplace {
    /// Makes the folders (the seeds' `/storage/<index>` and `/dltraining`) and writes the
    /// parameters down.
    pub(crate) fn make(root: &Path, trial: &TrialLine) -> Result<Self, Failure> {
        let storage = root.join("storage");
        let workspace = root.join("dltraining");
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
            scratch,
        };
        for folder in [&place.output, &place.checkpoints, &place.datasets] {
            prepared(folder, fs::create_dir_all(folder))?;
        }
        let parameters = Value::Object(trial.parameters.clone()).to_string();
        prepared(&place.parameters(), fs::write(place.parameters(), parameters))?;
        prepared(&place.metrics(), fs::write(place.metrics(), ""))?;
        Ok(place)
    }

    /// The trial's parameters as one JSON object.
    pub(crate) fn parameters(&self) -> PathBuf {
        self.scratch.path().join("parameters.json")
    }

    /// The file that the command may append metrics to.
    pub(crate) fn metrics(&self) -> PathBuf {
        self.scratch.path().join("metrics")
    }

    /// The runner's own record of every metric line.
    pub(crate) fn metrics_record(&self) -> PathBuf {
        self.scratch.path().join("metrics.jsonl")
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
        if inherited("PYTHONUNBUFFERED").is_none() {
            // Otherwise Python keeps metrics back until its buffer is full.
            variables.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
        }
        variables
    }
}

fn prepared<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Failure> {
    result.map_err(|source| Failure::Prepare { path: path.to_owned(), source })
}
