//! The submission of a part or of a single trial to Batch.

use super::Context;
use crate::command::Submission;
use spotsweep_protocol::claim::GPUS_VARIABLE;
use spotsweep_protocol::ids::{JobName, Run};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::{JOB_ATTEMPTS, job_attempts};
use spotsweep_records::workspace::SWEEP_TAG;

/// Returns the submission of a part, or of one trial again after `tried` attempts.
pub(super) fn of(sweep: &Sweep, run: Run, tried: usize, context: Context<'_>) -> Option<Submission> {
    let plan = sweep.plan.as_ref()?;
    let name = JobName { sweep: sweep.id.clone(), run };
    let trials = match run {
        Run::Part(part) => plan.part(part)?.trials,
        Run::Again { .. } => 1,
    };
    let earlier = name.round().saturating_mul(JOB_ATTEMPTS);
    // A round can end before its tenth attempt, so the round's number does not give the number of attempts.
    let attempts = job_attempts(plan.attempts.into(), tried);
    let variable = |name: &str, value: String| (name.to_owned(), value);
    let mut environment = vec![
        variable("SPOTSWEEP_SWEEP", sweep.id.to_string()),
        variable("SPOTSWEEP_BUCKET", sweep.upload.bucket.clone()),
        variable("SPOTSWEEP_KEY", sweep.upload.key.clone()),
        variable("SPOTSWEEP_FIRST_INDEX", name.first_index().to_string()),
        variable("SPOTSWEEP_CLAIM_FUNCTION", context.settings.claim_function.clone()),
    ];
    if plan.gpus > 0 {
        environment.push(variable(GPUS_VARIABLE, plan.gpus.to_string()));
    }
    if let Some(seconds) = plan.timeout_seconds {
        environment.push(variable("SPOTSWEEP_TIMEOUT_SECONDS", seconds.to_string()));
    }
    if earlier > 0 {
        environment.push(variable("SPOTSWEEP_FIRST_ATTEMPT", earlier.to_string()));
    }
    let mut tags = plan.tags.clone();
    tags.insert(SWEEP_TAG.into(), sweep.id.to_string());
    Some(Submission {
        trials,
        queue: plan.queue.clone(),
        definition: plan.definition.clone(),
        attempts: u8::try_from(attempts).ok()?,
        timeout_seconds: plan.timeout_seconds,
        command: plan.command.clone(),
        resources: plan.resources.clone().into_iter().collect(),
        environment,
        token: sweep.claim_token.clone()?,
        tags: tags.into_iter().collect(),
        name,
    })
}
