//! A trial's attempts as bars of a timeline.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::model::{AttemptBar, Ending};
use super::render::cut;
use spotsweep_records::trial::{Attempt, Trial};

/// Most bytes of the reason of an attempt's end.
const MAX_REASON: usize = 200;

/// Returns the attempts in order. One that still runs is drawn until `now`.
pub(super) fn bars(trial: &Trial, now: Timestamp) -> Vec<AttemptBar> {
    let newest = trial.attempts.keys().next_back();
    let interruptions: BTreeSet<u32> = trial.interruptions().map(|(number, _)| number).collect();
    let mut bars: Vec<AttemptBar> = Vec::new();
    for (number, attempt) in &trial.attempts {
        let is_open = !trial.is_over() && newest == Some(number) && *number > trial.ended;
        let zone_before = bars.iter().rev().find_map(|bar| bar.zone.clone());
        let was_interrupted = interruptions.contains(number);
        let ending = if was_interrupted { Ending::Interrupted } else { ending(attempt, is_open) };
        bars.push(AttemptBar {
            number: *number,
            zone: attempt.zone.clone(),
            instance: attempt.instance.clone(),
            started_ms: attempt.started_at.map(Timestamp::as_millisecond),
            stopped_ms: attempt
                .stopped_at
                .or((ending == Ending::Running && attempt.started_at.is_some()).then_some(now))
                .map(Timestamp::as_millisecond),
            ending,
            exit_code: attempt.exit_code,
            reason: attempt.reason.as_ref().map(|reason| cut(&reason.to_string(), MAX_REASON)),
            fetch: attempt.fetch.map(|fetch| fetch.to_string()),
            moved_from: zone_before.filter(|before| attempt.zone.as_ref().is_some_and(|zone| zone != before)),
        });
    }
    bars
}

fn ending(attempt: &Attempt, is_open: bool) -> Ending {
    match attempt.exit_code {
        Some(0) => Ending::Succeeded,
        Some(_) => Ending::Failed,
        None if is_open && attempt.stopped_at.is_none() => Ending::Running,
        None => Ending::Unknown,
    }
}
