//! Checks which GPUs each trial on a shared instance has, from what its script has written. The functions are pure.

use std::collections::{BTreeMap, BTreeSet};

use spotsweep_records::trial::{Attempt, Trial};

use super::{Check, verdict};

/// What an attempt's script has found: the GPUs that it was given, and the device files that it sees.
#[derive(Debug, PartialEq, Eq)]
struct Found<'a> {
    uuids: BTreeSet<&'a str>,
    files: usize,
}

/// Makes the check. Each trial asks for one GPU. If no two attempts were on one instance at the same time, nothing is
/// proven.
pub(super) fn judge(trials: &[Trial], stories: &BTreeMap<u32, String>) -> Check {
    let attempts: Vec<(u32, u32, &Attempt, Found<'_>)> =
        trials.iter().flat_map(|trial| of_trial(trial, stories)).collect();
    let mut cases = Vec::new();
    for (place, (index, number, attempt, found)) in attempts.iter().enumerate() {
        let shares = |other: &&(u32, u32, &Attempt, Found<'_>)| other.0 != *index && are_together(attempt, other.2);
        for (other, other_number, _, others) in attempts.iter().take(place).filter(shares) {
            let text = format!(
                "trial {other} in attempt {other_number} had {}, and trial {index} in attempt {number} had {}, on {}",
                others.text(),
                found.text(),
                attempt.instance.as_deref().unwrap_or_default()
            );
            let is_right = [found, others].iter().all(|one| one.uuids.len() == 1 && one.files == 1);
            cases.push(if is_right && found.uuids.is_disjoint(&others.uuids) { Ok(text) } else { Err(text) });
        }
    }
    let assumption = "Of two trials that train on one instance, each is given and sees a GPU of its own.";
    verdict("gpus", assumption, cases)
}

/// The attempts of a trial that have begun to train.
fn of_trial<'a>(
    trial: &'a Trial,
    stories: &'a BTreeMap<u32, String>,
) -> impl Iterator<Item = (u32, u32, &'a Attempt, Found<'a>)> {
    let lines = stories.get(&trial.index).map_or("", String::as_str).lines();
    lines.filter_map(|line| {
        let mut words = line.strip_prefix("gpus ")?.split(' ');
        let number = words.next()?.parse().ok()?;
        let uuids = words.next()?.split(',').filter(|uuid| !uuid.is_empty()).collect();
        let found = Found { uuids, files: words.next()?.parse().ok()? };
        Some((trial.index, number, trial.attempts.get(&number)?, found))
    })
}

/// Whether both ran on one instance at the same time.
fn are_together(one: &Attempt, other: &Attempt) -> bool {
    let is_before =
        |one: &Attempt, other: &Attempt| one.stopped_at.zip(other.started_at).is_none_or(|(end, start)| end <= start);
    one.instance.is_some() && one.instance == other.instance && !is_before(one, other) && !is_before(other, one)
}

impl Found<'_> {
    fn text(&self) -> String {
        let uuids: Vec<&str> = self.uuids.iter().copied().collect();
        let given = if uuids.is_empty() { "none".to_owned() } else { uuids.join(", ") };
        format!("{given} with {} in /dev", self.files)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;
    use spotsweep_protocol::ids::{JobId, SweepId};

    use super::super::Verdict;
    use super::*;

    fn trial(index: u32, instance: &str, (from, until): (i64, i64)) -> Trial {
        let at = |second| Timestamp::from_second(1_795_262_400 + second).ok();
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
        let attempt = trial.attempt(1);
        (attempt.instance, attempt.started_at, attempt.stopped_at) = (Some(instance.to_owned()), at(from), at(until));
        trial
    }

    #[test]
    fn two_trials_on_an_instance_have_a_gpu_each() {
        const SAME: [(&str, (i64, i64)); 2] = [("i-1", (0, 100)), ("i-1", (50, 150))];
        let cases = [
            (SAME, ["gpus 1 GPU-a 1", "gpus 1 GPU-b 1"], Verdict::Held),
            (SAME, ["gpus 1 GPU-a 1", "gpus 1 GPU-a 1"], Verdict::DidNotHold),
            (SAME, ["gpus 1 GPU-a 2", "gpus 1 GPU-b 2"], Verdict::DidNotHold),
            (SAME, ["gpus 1 GPU-a,GPU-b 2", "gpus 1 GPU-c 1"], Verdict::DidNotHold),
            (SAME, ["gpus 1  2", "gpus 1 GPU-b 1"], Verdict::DidNotHold),
            (SAME, ["began 0", "gpus 1 GPU-b 1"], Verdict::NotSeen),
            ([("i-1", (0, 100)), ("i-2", (50, 150))], ["gpus 1 GPU-a 1", "gpus 1 GPU-a 1"], Verdict::NotSeen),
            ([("i-1", (0, 100)), ("i-1", (100, 150))], ["gpus 1 GPU-a 1", "gpus 1 GPU-a 1"], Verdict::NotSeen),
        ];
        for (places, lines, expected) in cases {
            let trials = [0, 1].map(|index| trial(index, places[index as usize].0, places[index as usize].1));
            let stories = [0, 1].map(|index: u32| (index, format!("began 0\n{}\n", lines[index as usize]))).into();
            let check = judge(&trials, &stories);
            assert_eq!(check.verdict, expected, "{lines:?}: {check:?}");
        }
    }
}
