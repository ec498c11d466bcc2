//! Warns of attempts whose runners have not reported.

use spotsweep_protocol::words::counted;
use spotsweep_records::trial::{Silence, Trial};

/// Most trials that the warning names.
const LISTED: usize = 3;

/// Returns the warning if reports of attempts are missing, or were missing when the instance was ended.
pub(super) fn silent(trials: &[Trial]) -> Option<String> {
    let of = |trial: &Trial| trial.silence.as_ref().map(|silence| (trial.index, silence.clone()));
    let found: Vec<(u32, Silence)> = trials.iter().filter_map(of).collect();
    let named = found.iter().take(LISTED).map(|(index, silence)| format!("trial {index}, {silence}"));
    let named = named.collect::<Vec<_>>().join(" | ");
    let more = if found.len() > LISTED { " | …" } else { "" };
    let count = counted(found.len(), "trial");
    (!found.is_empty()).then(|| format!("{count} did not report while AWS Batch showed them as running: {named}{more}"))
}
