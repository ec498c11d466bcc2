//! A sweep as one JSON document.

use serde_json::{Value, json};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;
use spotsweep_report::diagnosis::reason;

use super::{Each, Records};
use crate::{show, timeline};
use spotsweep_protocol::failure::Failure;

/// The whole sweep, with its trials ordered by index.
pub(super) fn of(records: &Records<'_>) -> Result<Value, Failure> {
    let Sweep { id, upload, stage, .. } = records.sweep;
    let outputs = |index| format!("s3://{}/{}", upload.bucket, id.trial_prefix(index));
    let trial = |each: Result<Each<'_>, Failure>| {
        let (index, parameters, trial) = each?;
        Ok(json!({
            "index": index,
            "status": show::standing(trial).name(),
            "reason": trial.and_then(reason),
            "parameters": parameters,
            "metrics": trial.map(|trial| json!(trial.metrics)).unwrap_or_else(|| json!({})),
            "attempts": trial.map(timeline::attempts).unwrap_or_default(),
            "run_seconds": trial.map_or(0.0, Trial::run_seconds),
            "outputs": outputs(index),
        }))
    };
    Ok(json!({
        "sweep": id.as_str(),
        "stage": stage.name(),
        "file": format!("s3://{}/{}", upload.bucket, upload.key),
        "version": upload.version_id,
        "uploaded_at": upload.uploaded_at.to_string(),
        "queue": records.plan.queue,
        "job_definition": records.plan.definition,
        "image": records.plan.image,
        "code": records.plan.packed_code().map(|sha256| json!({ "sha256": sha256 })),
        "ranking": records.by.as_ref().map(|by| json!({
            "metric": by.name,
            "goal": if by.maximize { "maximize" } else { "minimize" },
        })),
        "trials": records.each().map(trial).collect::<Result<Vec<Value>, Failure>>()?,
    }))
}
