//! The parameters of trials: those of `trials.jsonl`, or the suggested ones where there are any.

use std::borrow::Cow;
use std::collections::BTreeMap;

use spotsweep_protocol::claim::TrialLine;
use spotsweep_records::trial::Trial;

/// Returns the lines of `trials.jsonl`, in which suggested parameters replace those of the file.
pub fn with_suggested<'l>(lines: &'l [u8], trials: &[Trial]) -> Cow<'l, [u8]> {
    let of_trial = |trial: &Trial| Some((trial.index, trial.suggested.as_ref()?.parameters()));
    let suggested: BTreeMap<u32, _> = trials.iter().filter_map(of_trial).collect();
    if suggested.is_empty() {
        return Cow::Borrowed(lines);
    }
    let mut whole = Vec::with_capacity(lines.len());
    for (index, line) in (0..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
        match suggested.get(&index) {
            Some(parameters) => {
                let line = TrialLine { index, parameters: parameters.clone() };
                // Writing JSON values to memory cannot fail.
                let _ = serde_json::to_writer(&mut whole, &line);
                whole.push(b'\n');
            }
            None => whole.extend(line),
        }
    }
    Cow::Owned(whole)
}
