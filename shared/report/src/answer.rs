//! The answers that are written next to an upload: `<key>.plan.json` and `<key>.rejected.json`.

use serde_json::{Value, json};

use crate::cost::{initialization_usd_a_gib, most_kept_usd};
use spotsweep_protocol::ids::{JobName, Run, SweepId};
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Part, Plan};
use spotsweep_records::workspace::{Keep, WorkspacePlan};
use spotsweep_sweep_file::Rejected;
use spotsweep_sweep_file::expected::Expected;

/// Returns the answer to an accepted file: the plan and the submitted jobs.
pub fn plan_json(sweep: &SweepId, upload: &Upload, plan: &Plan) -> Value {
    let job = |(number, part): (u32, &Part)| {
        let name = JobName { sweep: sweep.clone(), run: Run::Part(number) };
        json!({ "name": name.to_string(), "id": part.job, "first_index": name.first_index(), "trials": part.trials })
    };
    let mut answer = json!({
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
    });
    if let Some(image) = &plan.image {
        answer["image"] = json!(image);
    }
    if let Some(sha256) = plan.packed_code() {
        answer["code"] = json!({ "sha256": sha256 });
    }
    if !plan.data().is_empty() {
        answer["data"] = json!(plan.data());
    }
    answer
}

/// Describes the trials' workspaces. A billed rate has its price, and kept workspaces have the most that one costs.
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

/// Returns the answer to a rejected file: all problems and warnings.
pub fn rejection_json(sweep: &SweepId, upload: &Upload, rejected: &Rejected) -> Value {
    json!({
        "sweep": sweep.as_str(),
        "file": upload.key,
        "version": upload.fingerprint,
        "problems": rejected.problems,
        "warnings": rejected.warnings,
    })
}
