//! Writes a sweep as MLflow's file store has it: the folder of an experiment, with a run for each trial.
//!
//! ```text
//! mlruns/<experiment>/meta.yaml
//! mlruns/<experiment>/<run>/meta.yaml
//! mlruns/<experiment>/<run>/params/<name>     the value
//! mlruns/<experiment>/<run>/metrics/<name>    a line for each value: milliseconds, value, step
//! mlruns/<experiment>/<run>/tags/<name>       the value
//! mlruns/<experiment>/<run>/artifacts/        empty
//! ```
//! `mlflow/store/tracking/file_store.py` of MLflow 2 and 3 reads these files. Ids derive from the sweep's id, so that the
//! same sweep is the same experiment everywhere.

mod names;
mod points;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use spotsweep_ranking::ranked;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::{JobStatus, Standing, Trial};
use spotsweep_report::diagnosis::why;
use tokio::task::JoinSet;

use super::Records;
use crate::metrics_record;
use crate::show;
use crate::signals::unless_stopped;
use crate::sweeps::Found;
use names::files;
use points::Point;
use spotsweep_protocol::failure::{Context, Failure};

/// Records of metrics that are downloaded at once.
const AT_ONCE: usize = 16;
/// MLflow's number for "started by a local program" (`SourceType` in mlflow.protos).
const LOCAL_SOURCE: u32 = 4;

/// Writes the experiment into the folder, and returns its path. An existing experiment is not overwritten, because it
/// may have notes and tags of MLflow.
pub(super) async fn write(found: &Found, records: &Records<'_>, folder: &Path) -> Result<PathBuf, Failure> {
    let experiment = folder.join(experiment_id(records.sweep));
    let path = experiment.display();
    if experiment.exists() {
        let advice = "remove that folder, or export to another with --to";
        return Err(Failure::new(format!("this sweep has been exported to {path} before: {advice}")));
    }
    let cannot_write = || format!("cannot write {path}");
    fs::create_dir_all(folder).context(cannot_write)?;
    let aside = Aside::make(folder.join(format!(".spotsweep-{}", std::process::id()))).context(cannot_write)?;
    let mut histories = JoinSet::new();
    let outcome = unless_stopped(fill(found, records, &aside.0, &mut histories)).await;
    // No download may write into a folder that is being removed.
    histories.shutdown().await;
    outcome?;
    fs::rename(&aside.0, &experiment).context(cannot_write)?;
    Ok(experiment)
}

async fn fill(
    found: &Found,
    records: &Records<'_>,
    folder: &Path,
    histories: &mut JoinSet<Result<(), Failure>>,
) -> Result<(), Failure> {
    let cannot_write = || format!("cannot write {}", folder.display());
    put(&folder.join("meta.yaml"), &yaml(&experiment_meta(records.sweep))).context(cannot_write)?;
    let ranked = ranked(records.plan, records.trials);
    let ranks: BTreeMap<u32, usize> =
        ranked.iter().filter_map(|place| Some((place.trial.index, place.rank?))).collect();
    for each in records.each() {
        let (index, parameters, trial) = each?;
        let run = folder.join(run_id(records.sweep, index));
        run_files(records.sweep, index, &parameters, trial, ranks.get(&index).copied(), &run).context(cannot_write)?;
        if histories.len() >= AT_ONCE {
            finish_one(histories).await?;
        }
        if let Some(trial) = trial {
            histories.spawn(history(found.s3(), found.bucket().to_owned(), trial.clone(), run.join("metrics")));
        }
    }
    while !histories.is_empty() {
        finish_one(histories).await?;
    }
    Ok(())
}

/// A folder that is being written. If it still has its temporary name when this is dropped, it is removed.
struct Aside(PathBuf);

impl Aside {
    /// Makes the folder. It never uses an existing folder or a link.
    fn make(folder: PathBuf) -> std::io::Result<Self> {
        fs::create_dir(&folder).map(|()| Self(folder))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Usually it has been renamed, and is not there.
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn finish_one(histories: &mut JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    match histories.join_next().await {
        Some(written) => written.context(|| "the export was cut off")?,
        None => Ok(()),
    }
}

fn experiment_meta(sweep: &Sweep) -> [(&'static str, Value); 6] {
    [
        ("artifact_location", json!(artifacts(sweep, "trials"))),
        ("creation_time", json!(sweep.upload.uploaded_at.as_millisecond())),
        ("experiment_id", json!(experiment_id(sweep))),
        ("last_update_time", json!(Timestamp::now().as_millisecond())),
        ("lifecycle_stage", json!("active")),
        ("name", json!(sweep.id.as_str())),
    ]
}

/// Makes all files of a run except for its metrics.
fn run_files(
    sweep: &Sweep,
    index: u32,
    parameters: &Map<String, Value>,
    trial: Option<&Trial>,
    rank: Option<usize>,
    run: &Path,
) -> std::io::Result<()> {
    // Without each of these folders MLflow does not take it for a run. The outputs themselves stay in S3.
    for folder in ["params", "metrics", "tags", "artifacts"] {
        fs::create_dir_all(run.join(folder))?;
    }
    put(&run.join("meta.yaml"), &yaml(&run_meta(sweep, index, trial)))?;
    let mut values = Vec::new();
    flatten("", parameters, &mut values);
    let names = files(values.iter().map(|(name, _)| name.as_str()));
    for ((_, value), file) in values.iter().zip(names) {
        put(&run.join("params").join(file), value)?;
    }
    let attempts = trial.map_or(0, |trial| trial.attempts.len());
    let failure = trial.filter(|trial| trial.status == JobStatus::Failed);
    let tags = [
        ("mlflow.runName", format!("trial {index}")),
        ("mlflow.source.name", sweep.upload.key.clone()),
        ("spotsweep.sweep", sweep.id.to_string()),
        ("spotsweep.trial", index.to_string()),
        ("spotsweep.attempts", attempts.to_string()),
        ("spotsweep.status", show::standing(trial).name().to_owned()),
        ("spotsweep.rank", rank.map(|rank| rank.to_string()).unwrap_or_default()),
        ("spotsweep.reason", failure.map(why).unwrap_or_default()),
    ];
    tags.iter()
        .filter(|(_, value)| !value.is_empty())
        .try_for_each(|(name, value)| put(&run.join("tags").join(name), value))
}

fn run_meta(sweep: &Sweep, index: u32, trial: Option<&Trial>) -> [(&'static str, Value); 15] {
    let started = trial.and_then(|trial| trial.attempts.values().find_map(|attempt| attempt.started_at));
    let ended = trial.filter(|trial| trial.is_over()).and_then(Trial::stopped_at);
    let millis = |at: Timestamp| at.as_millisecond();
    let id = run_id(sweep, index);
    [
        ("artifact_uri", json!(artifacts(sweep, &format!("trials/{index}")))),
        ("end_time", json!(ended.map(millis))),
        ("entry_point_name", json!("")),
        ("experiment_id", json!(experiment_id(sweep))),
        ("lifecycle_stage", json!("active")),
        ("run_id", json!(id)),
        ("run_name", json!(format!("trial {index}"))),
        ("run_uuid", json!(id)),
        ("source_name", json!(sweep.upload.key)),
        ("source_type", json!(LOCAL_SOURCE)),
        ("source_version", json!("")),
        ("start_time", json!(millis(started.unwrap_or(sweep.upload.uploaded_at)))),
        ("status", json!(status(show::standing(trial)))),
        ("tags", json!([])),
        ("user_id", json!("spotsweep")),
    ]
}

/// MLflow's numbers (`RunStatus` in mlflow.protos).
fn status(standing: Standing) -> u32 {
    match standing {
        Standing::Running => 1,
        Standing::Waiting | Standing::Starting => 2,
        Standing::Succeeded => 3,
        Standing::Failed => 4,
        Standing::Cancelled | Standing::Stopped => 5,
    }
}

/// Turns groups of parameters into names with dots, as in the command's arguments. Lists stay as they are.
fn flatten(above: &str, parameters: &Map<String, Value>, values: &mut Vec<(String, String)>) {
    for (name, value) in parameters {
        let name = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Object(group) if !group.is_empty() => flatten(&name, group, values),
            other => values.push((name, show::text(other))),
        }
    }
}

/// Writes a trial's metrics, step by step as the runner has recorded them. Without a record it writes their last
/// values.
async fn history(s3: aws_sdk_s3::Client, bucket: String, trial: Trial, folder: PathBuf) -> Result<(), Failure> {
    let key = format!("{}{}", trial.sweep.trial_prefix(trial.index), metrics_record::NAME);
    let cannot_read = || format!("cannot read s3://{bucket}/{key}");
    let mut points = match s3.get_object().bucket(&bucket).key(&key).send().await {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => BTreeMap::new(),
        got => points::read(&got.context(cannot_read)?.body.collect().await.context(cannot_read)?.into_bytes()),
    };
    let at = trial.stopped_at().unwrap_or_else(Timestamp::now);
    for (name, metric) in &trial.metrics {
        points.entry(name.clone()).or_insert_with(|| vec![Point::last(at, metric)]);
    }
    let names = files(points.keys().map(String::as_str));
    for (points, file) in points.values().zip(names) {
        let lines: String = points.iter().map(|point| format!("{point}\n")).collect();
        put(&folder.join(&file), &lines).context(|| format!("cannot write {}", folder.join(&file).display()))?;
    }
    Ok(())
}

/// A number, as MLflow's own ids are: the sweep's hash.
fn experiment_id(sweep: &Sweep) -> String {
    let hash = hash(sweep);
    u64::from_str_radix(hash, 16).map_or_else(|_| hash.to_owned(), |number| number.to_string())
}

/// 32 hexadecimal digits: the sweep's hash and the index.
fn run_id(sweep: &Sweep, index: u32) -> String {
    format!("{}{index:020}", hash(sweep))
}

fn hash(sweep: &Sweep) -> &str {
    sweep.id.as_str().rsplit('-').next().unwrap_or_default()
}

fn artifacts(sweep: &Sweep, what: &str) -> String {
    format!("s3://{}/{}{what}", sweep.upload.bucket, sweep.id.results_prefix())
}

/// JSON's scalars are YAML's.
fn yaml(fields: &[(&str, Value)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

fn put(path: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, text)
}
