//! The answers that lie beside an upload: `<key>.plan.json` and `<key>.rejected.json`.

use serde_json::{Value, json};

use crate::cost::{initialization_usd_a_gib, most_kept_usd};
use spotsweep_protocol::ids::{JobName, Run, SweepId};
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Part, Plan};
use spotsweep_records::workspace::{Keep, WorkspacePlan};
use spotsweep_sweep_file::Rejected;
use spotsweep_sweep_file::expected::Expected;

/// What was submitted.
pub fn plan_json(sweep: &SweepId, upload: &Upload, plan: &Plan) -> Value {
    let job = |(number, part): (u32, &Part)| {
        let name = JobName { sweep: sweep.clone(), run: Run::Part(number) };
        json!({ "name": name.to_string(), "id": part.job, "first_index": name.first_index(), "trials": part.trials })
    };
    json!({
        "sweep": sweep.as_str(),
        "file": upload.key,
        "version": upload.fingerprint,
        "trials": plan.trials,
        "job_definition": plan.definition,
        "queue": plan.queue,
        "workspace": plan.workspace.as_ref().map(workspace),
        "expected": Expected::of_limit(plan.trials.into(), plan.timeout_seconds, Some(plan.attempts), plan.workspace.is_some()),
        "warnings": plan.warnings,
        "jobs": (0..).zip(&plan.parts).map(job).collect::<Vec<_>>(),
        "results": format!("s3://{}/{}", upload.bucket, sweep.results_prefix()),
    })
}

/// Each trial's volume; a rate that is billed comes with its price, and what is kept with the most that it costs a trial.
fn workspace(plan: &WorkspacePlan) -> Value {
    let Keep { failed_seconds, succeeded_seconds } = plan.keep;
    let kept = |seconds| json!({ "seconds": seconds, "usd_at_most": most_kept_usd(plan.size_gib, seconds) });
    let mut found = json!({
        "size_gib": plan.size_gib,
        "keep_failed": kept(failed_seconds),
        "keep_succeeded": kept(succeeded_seconds),
    });
    if let Some(rate) = plan.initialization_rate {
        found["initialization_rate"] = json!(rate);
        found["initialization_usd_per_gib"] = json!(initialization_usd_a_gib(rate));
    }
    found
}

/// What is wrong with the file, all of it, and its warnings.
pub fn rejection_json(sweep: &SweepId, upload: &Upload, rejected: &Rejected) -> Value {
    json!({
        "sweep": sweep.as_str(),
        "file": upload.key,
        "version": upload.fingerprint,
        "problems": rejected.problems,
        "warnings": rejected.warnings,
    })
}
