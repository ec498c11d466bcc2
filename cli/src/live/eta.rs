//! Estimates when a sweep will be done, from its own trials.

use jiff::{SignedDuration, Timestamp};
use spotsweep_records::trial::{JobStatus, Trial};

/// Number of the newest starts and ends of containers over which the number of containers is averaged.
const EVENTS: usize = 20;
/// For so long, an instance may have no training between two trials. No average is over a shorter time.
const GAP: SignedDuration = SignedDuration::from_secs(60);

/// Seconds until the last trial has ended. What is left of the trials is taken to last as long as those that have
/// succeeded so far, with as many at once as ran lately. Nothing is known before the first one has succeeded, while
/// none runs, or if everything that is left takes longer than usual.
pub(super) fn seconds_left(total: u32, trials: &[Trial], now: Timestamp) -> Option<f64> {
    let succeeded = trials.iter().filter(|trial| trial.status == JobStatus::Succeeded);
    let done: Vec<f64> = succeeded.map(Trial::run_seconds).collect();
    if done.is_empty() {
        return None;
    }
    let usual = done.iter().sum::<f64>() / done.len() as f64;
    let open: Vec<&Trial> = trials.iter().filter(|trial| !trial.is_over()).collect();
    let unseen = (total as usize).saturating_sub(trials.len());
    if open.is_empty() && unseen == 0 {
        return Some(0.0);
    }
    let left = open.iter().map(|trial| (usual - ran_seconds(trial, now)).max(0.0));
    let left: Vec<f64> = left.chain(std::iter::repeat_n(usual, unseen)).collect();
    let longest = left.iter().copied().fold(0.0, f64::max);
    let placed = open.iter().filter(|trial| matches!(trial.status, JobStatus::Starting | JobStatus::Running)).count();
    if placed == left.len() {
        return Some(longest).filter(|seconds| *seconds > 0.0);
    }
    let stopped = trials.iter().filter_map(Trial::stopped_at).max();
    if placed == 0 && stopped.is_none_or(|stopped| now.duration_since(stopped) >= GAP) {
        return None;
    }
    // Containers that have just started count at once, less the share of their time that gaps take.
    let present = placed as f64 * usual / (usual + GAP.as_secs_f64());
    let at_once = at_once(trials, now).max(present);
    (at_once > 0.0).then(|| (left.iter().sum::<f64>() / at_once).max(longest))
}

/// Average number of containers that ran at once lately. If trainings are short, a single look finds many instances
/// between two of them.
fn at_once(trials: &[Trial], now: Timestamp) -> f64 {
    let ran: Vec<(Timestamp, Option<Timestamp>)> = trials.iter().flat_map(containers).collect();
    let mut events: Vec<Timestamp> = ran.iter().flat_map(|(from, to)| [Some(*from), *to]).flatten().collect();
    events.sort_unstable_by(|left, right| right.cmp(left));
    let Some(first) = events.last().copied() else { return 0.0 };
    let since = events.get(EVENTS).copied().unwrap_or(first).min(now - GAP).max(first);
    let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64().max(0.0);
    let busy: f64 = ran.iter().map(|(from, to)| seconds((*from).max(since), to.unwrap_or(now))).sum();
    let window = seconds(since, now);
    if window > 0.0 { busy / window } else { 0.0 }
}

/// When each container of a trial started and ended. The present one has no end. One whose end is unknown is left out.
fn containers(trial: &Trial) -> impl Iterator<Item = (Timestamp, Option<Timestamp>)> {
    let present = (!trial.is_over()).then_some(trial.ended + 1);
    trial.attempts.iter().filter_map(move |(number, attempt)| {
        let is_known = attempt.stopped_at.is_some() || Some(*number) == present;
        Some((attempt.started_at.filter(|_| is_known)?, attempt.stopped_at))
    })
}

/// Seconds in containers, including the present one.
fn ran_seconds(trial: &Trial, now: Timestamp) -> f64 {
    let current = trial.attempts.get(&(trial.ended + 1)).and_then(|attempt| attempt.started_at);
    trial.run_seconds() + current.map_or(0.0, |started| now.duration_since(started).as_secs_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::{at, interrupted, running, succeeded, trial};

    #[test]
    fn what_is_left_is_shared_by_what_runs() {
        let two_done = || vec![succeeded(0, 0, 20, 0.5), succeeded(1, 0, 40, 0.5)];
        let with = |more: Vec<Trial>| [two_done(), more].concat();
        // Trials take 30 s. One has run for 10 s, the other for 50, which is more than usual. All of them ran within
        // 100 s, so 1.2 ran at once.
        let both = with(vec![running(2, "a", 90), running(3, "a", 50)]);
        assert_eq!(seconds_left(4, &both, at(100)), Some(20.0), "the longest of them");
        assert_eq!(seconds_left(10, &both, at(100)), Some((20.0 + 6.0 * 30.0) / 1.2));
        let cases = [
            (vec![], 4, None, "nothing has ended"),
            (two_done(), 4, None, "nothing runs"),
            (two_done(), 2, Some(0.0), "everything has ended"),
            (with(vec![trial(2, JobStatus::Starting)]), 3, Some(30.0), "all of it is to come"),
            (with(vec![running(2, "a", 40)]), 3, None, "it takes longer than usual"),
            (vec![trial(0, JobStatus::Failed), trial(1, JobStatus::Running)], 2, None, "a failure tells no duration"),
        ];
        for (trials, total, expected, why) in cases {
            assert_eq!(seconds_left(total, &trials, at(100)), expected, "{why}");
        }
    }

    /// Two instances train 1 000 trials of 5 s, with 3 s between two of them.
    #[test]
    fn an_estimate_of_many_short_trials_is_steady() {
        let start = |index: u32| i64::from(index / 2 * 8 + index % 2 * 3);
        let end = start(999) + 5;
        for now in (60..end - 60).step_by(41) {
            let started = (0..1_000).filter(|index| start(*index) <= now);
            let seen = |index| match now - start(index) {
                0..5 => running(index, "a", start(index)),
                _later => succeeded(index, start(index), start(index) + 5, 0.5),
            };
            let trials: Vec<Trial> = started.map(seen).collect();
            let left = seconds_left(1_000, &trials, at(now)).unwrap_or(f64::NAN);
            let truth = (end - now) as f64;
            assert!((left - truth).abs() < 0.1 * truth + 10.0, "{left} of {truth} at {now}");
        }
    }

    /// Trials take an hour, ten at once at first. A change of that number counts within a minute.
    #[test]
    fn an_estimate_follows_what_runs() {
        let hour = 3_600;
        let done = || (0..10).map(|index| succeeded(index, 0, hour, 0.5));
        let grown: Vec<Trial> = done().chain((10..110).map(|index| running(index, "a", hour + 10))).collect();
        let fallen: Vec<Trial> = (0..100)
            .map(|index| match index {
                0..20 => succeeded(index, 0, hour, 0.5),
                _other => {
                    let mut reclaimed = trial(index, JobStatus::Runnable);
                    *reclaimed.attempt(1) = interrupted("a", 0, hour);
                    reclaimed.ended = 1;
                    reclaimed
                }
            })
            .chain((100..102).map(|index| running(index, "a", hour + 10)))
            .collect();
        for (trials, at_once) in [(grown, 100.0), (fallen, 2.0)] {
            let now = at(hour + 100);
            let left = seconds_left(1_000, &trials, now).unwrap_or(f64::NAN);
            let open: f64 =
                trials.iter().filter(|trial| !trial.is_over()).map(|trial| 3_600.0 - ran_seconds(trial, now)).sum();
            let truth = (open + (1_000 - trials.len()) as f64 * 3_600.0) / at_once;
            assert!((left / truth - 1.0).abs() < 0.15, "{left} of {truth}, {at_once} at once");
        }
    }
}
