//! The failed trials by cause, and with the last lines of their logs.

use std::collections::BTreeMap;

use super::model::{Cause, Failure, Failures};
use super::render::cut;
use super::{MAX_FAILURES, MAX_LOG_LINES, Sources};
use crate::diagnosis::Diagnosis;
use spotsweep_records::trial::{Standing, Trial};

/// Most causes, most trials that are named with each cause, and most bytes of a log line and of a cause.
const MAX_CAUSES: usize = 20;
const MAX_NAMED: usize = 20;
const MAX_LINE: usize = 400;
const MAX_CAUSE: usize = 300;

pub(super) fn failures(sources: &Sources<'_>) -> Failures {
    let failed: Vec<&Trial> = sources.trials.iter().filter(|trial| trial.standing() == Standing::Failed).collect();
    let unknown = Diagnosis::default();
    let diagnosis = |trial: &Trial| sources.diagnoses.get(&trial.index).unwrap_or(&unknown);
    let mut causes: BTreeMap<String, Cause> = BTreeMap::new();
    for trial in &failed {
        let cause = cut(&diagnosis(trial).cause_of(trial), MAX_CAUSE);
        let group = causes.entry(cause.clone()).or_insert_with(|| Cause {
            cause,
            advice: diagnosis(trial).advice.clone(),
            count: 0,
            indices: Vec::new(),
        });
        group.count += 1;
        if group.indices.len() < MAX_NAMED {
            group.indices.push(trial.index);
        }
    }
    let mut causes: Vec<Cause> = causes.into_values().collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    causes.truncate(MAX_CAUSES);
    let trials = failed.iter().take(MAX_FAILURES).map(|trial| failure(trial, diagnosis(trial))).collect();
    Failures { causes, trials }
}

fn failure(trial: &Trial, diagnosis: &Diagnosis) -> Failure {
    let skipped = diagnosis.log_lines.len().saturating_sub(MAX_LOG_LINES);
    Failure {
        index: trial.index,
        cause: cut(&diagnosis.cause_of(trial), MAX_CAUSE),
        exit_code: exit_code(trial),
        attempts: trial.attempts.len(),
        log_lines: diagnosis.log_lines.iter().skip(skipped).map(|line| cut(line, MAX_LINE)).collect(),
    }
}

fn exit_code(trial: &Trial) -> Option<i32> {
    trial.attempts.values().next_back()?.exit_code
}
