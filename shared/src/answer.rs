//! The answers that lie beside an upload: `<key>.plan.json` and `<key>.rejected.json`.

use serde_json::{Value, json};

use crate::ids::{JobName, Run, SweepId};
use crate::lifecycle::{Part, Plan};
use crate::sweep::Problem;
use crate::upload::Upload;

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
        "jobs": (0..).zip(&plan.parts).map(job).collect::<Vec<_>>(),
        "results": format!("s3://{}/{}", upload.bucket, sweep.results_prefix()),
    })
}

/// What is wrong with the file, all of it.
pub fn rejection_json(sweep: &SweepId, upload: &Upload, problems: &[Problem]) -> Value {
    json!({
        "sweep": sweep.as_str(),
        "file": upload.key,
        "version": upload.fingerprint,
        "problems": problems,
    })
}
