//! When a sweep will be done, as far as its own trials tell.

use jiff::Timestamp;
use spotsweep_control_plane::trial::{JobStatus, Trial};

/// Seconds until the last trial has ended: what is left of the trials, each as long as those that have succeeded so
/// far on average, over as many at once as run or start now. Nothing is known before the first has succeeded, or while
/// none runs.
pub(super) fn seconds_left(total: u32, trials: &[Trial], now: Timestamp) -> Option<f64> {
    let done: Vec<f64> =
        trials.iter().filter(|trial| trial.status == JobStatus::Succeeded).map(Trial::run_seconds).collect();
    let usual = done.iter().sum::<f64>() / done.len() as f64;
    let is_placed = |trial: &&Trial| matches!(trial.status, JobStatus::Starting | JobStatus::Running);
    let left: Vec<f64> =
        trials.iter().filter(is_placed).map(|trial| (usual - ran_seconds(trial, now)).max(0.0)).collect();
    let over = trials.iter().filter(|trial| trial.is_over()).count();
    if done.is_empty() || (left.is_empty() && over < total as usize) {
        return None;
    }
    let waiting = (total as usize).saturating_sub(over + left.len()) as f64;
    let longest = left.iter().copied().fold(0.0, f64::max);
    let evenly = (left.iter().sum::<f64>() + waiting * usual) / left.len().max(1) as f64;
    Some(evenly.max(longest))
}

/// Seconds in containers, the present one included.
fn ran_seconds(trial: &Trial, now: Timestamp) -> f64 {
    let current = trial.attempts.get(&(trial.ended + 1)).and_then(|attempt| attempt.started_at);
    trial.run_seconds() + current.map_or(0.0, |started| now.duration_since(started).as_secs_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::{at, running, succeeded, trial};

    #[test]
    fn what_is_left_is_shared_by_what_runs() {
        let two_done = || vec![succeeded(0, 0, 20, 0.5), succeeded(1, 0, 40, 0.5)];
        let with = |more: Vec<Trial>| [two_done(), more].concat();
        // Trials take 30 s. One has run for 10 s, the other for 50: more than usual.
        let running = with(vec![running(2, "a", 90), running(3, "a", 50)]);
        assert_eq!(seconds_left(4, &running, at(100)), Some(20.0), "the longest of them");
        assert_eq!(seconds_left(10, &running, at(100)), Some((20.0 + 6.0 * 30.0) / 2.0));
        let cases = [
            (vec![], 4, None, "nothing has ended"),
            (two_done(), 4, None, "nothing runs"),
            (two_done(), 2, Some(0.0), "everything has ended"),
            (with(vec![trial(2, JobStatus::Starting)]), 3, Some(30.0), "all of it is to come"),
            (vec![trial(0, JobStatus::Failed), trial(1, JobStatus::Running)], 2, None, "a failure tells no duration"),
        ];
        for (trials, total, expected, why) in cases {
            assert_eq!(seconds_left(total, &trials, at(100)), expected, "{why}");
        }
    }
}
