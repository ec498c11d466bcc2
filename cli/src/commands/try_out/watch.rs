//! Follows the trial, and interrupts it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use spotsweep_aws::Reader;
use spotsweep_local_stack::stack::Stack;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::trial::Trial;
use tokio::time::sleep;

use super::attempt::{Attempt, interval};
use super::bucket::Bucket;
use super::lost::Lost;
use super::moments::{INTERRUPTIONS, Seen};
use super::record::Record;
use super::saves::{Look, Saves};
use crate::out;

const POLL: Duration = Duration::from_millis(50);
/// After so many seconds, the command says what it waits for.
const LONG: f64 = 5.0;
/// Looks at the folder of checkpoints for each look at the record.
const LOOKS: u32 = 4;

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// EC2's notice.
    pub(super) notice: Duration,
    /// Seconds for the whole try.
    pub(super) limit: f64,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Attempts by number. If a trial was submitted again, some numbers have no attempt.
    pub(super) attempts: BTreeMap<u32, Attempt>,
    /// The newest value of each metric that reached the control plane.
    pub(super) metrics: BTreeMap<String, f64>,
    /// Files that are lost with the containers.
    pub(super) lost: Lost,
    /// What the bucket gets of it, if that is known.
    pub(super) bucket: Option<Bucket>,
    pub(super) end: End,
}

/// How a try ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum End {
    /// The training was back after the last interruption.
    #[default]
    Back,
    /// The training had ended.
    Over,
    /// The time was used up.
    OutOfTime,
}

/// Follows trial 0 until it is back after the last interruption, or has ended, or the time is used up.
pub(super) async fn watch(
    stack: &mut Stack,
    sweep: &SweepId,
    metric: Option<&str>,
    times: Times,
) -> Result<Outcome, Failure> {
    let reader = Reader::new(stack.config(), stack.table().to_owned());
    let (mut outcome, began) = (Outcome::default(), Instant::now());
    let began_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut record = Record::default();
    let (mut saves, mut next, mut waiting) = (Saves::default(), 0, Waiting::default());
    loop {
        stack.check()?;
        let trial = reader.trial(sweep, 0).await.context(|| "cannot read the trial")?;
        let mut is_saving = false;
        for _ in 0..LOOKS {
            let now = began.elapsed().as_secs_f64();
            let look = saves.look(&checkpoint_folders(stack), now);
            is_saving |= look == Look::Writing;
            if let Some(mut newest) = outcome.attempts.last_entry() {
                let attempt = newest.get_mut();
                attempt.sees_checkpoints(!saves.are_removed(), now);
                attempt.has_written |= look != Look::Quiet && attempt.started.is_some();
                if let Look::Complete(written) = look {
                    attempt.saves(written);
                }
            }
            sleep(POLL).await;
        }
        let now = began.elapsed().as_secs_f64();
        outcome.lost.look(&stack.jobs().join("attempts"));
        if let Some(trial) = &trial {
            follow(&mut outcome, trial, stack, metric, now);
            // Until it is known when the newest attempt started, its values look like those of the one before.
            let starts = starts(trial);
            if starts.keys().next_back() == trial.attempts.keys().next_back() {
                record.look(&stack.jobs().join("attempts"), &mut outcome.attempts, (&starts, began_at));
            }
        }
        let end = if trial.as_ref().is_some_and(Trial::is_over) {
            Some(End::Over)
        } else if next == INTERRUPTIONS.len() && is_back(&outcome) {
            Some(End::Back)
        } else {
            (now >= times.limit).then_some(End::OutOfTime)
        };
        if let Some(end) = end {
            outcome.lost.attempt_ends();
            outcome.end = end;
            return Ok(outcome);
        }
        let seen = seen(&outcome, now, is_saving);
        if let Some(trial) = trial.filter(|_| next < INTERRUPTIONS.len())
            && interrupt(&mut outcome, &trial, stack, (next, times.notice), &seen)
        {
            next += 1;
            outcome.lost.attempt_ends();
        }
        if let Some(what) = waiting.look(waits_for(&outcome, next, &seen), now) {
            out::note(format_args!("{now:>6.1} s  waiting for {what}"));
        }
    }
}

/// What is waited for, and since when.
#[derive(Debug, Default)]
struct Waiting {
    what: String,
    since: f64,
    is_said: bool,
}

impl Waiting {
    /// What is to be said about the wait `now`. It is said once, if the wait takes long.
    fn look(&mut self, (what, at_most): (&str, f64), now: f64) -> Option<String> {
        if what != self.what {
            *self = Self { what: what.to_owned(), since: now, is_said: false };
        }
        if self.is_said || now - self.since < LONG {
            return None;
        }
        self.is_said = true;
        Some(if at_most.is_finite() { format!("{what}, {:.0} s at most", at_most.max(0.0)) } else { what.to_owned() })
    }
}

/// What the newest attempt has to do before something is done, and for how many seconds at most that is waited for.
fn waits_for(outcome: &Outcome, next: usize, seen: &Seen) -> (&'static str, f64) {
    let newest = outcome.attempts.last_key_value().map(|(_, attempt)| attempt);
    match (newest, INTERRUPTIONS.get(next)) {
        (Some(Attempt { interrupted: Some(_), ended: None, stopped, grace, .. }), _) => {
            let end = stopped.zip(*grace).map(|(stopped, grace)| stopped + grace - seen.now);
            ("the training to save and to end after the notice", end.unwrap_or(f64::INFINITY))
        }
        (Some(Attempt { ended: Some(_), .. }), _) => ("the next attempt", f64::INFINITY),
        (_, Some(interruption)) => interruption.waits_for(seen),
        (_, None) => ("the training to go on after the last interruption", f64::INFINITY),
    }
}

fn checkpoint_folders(stack: &Stack) -> Vec<PathBuf> {
    let attempts = fs::read_dir(stack.jobs().join("attempts")).into_iter().flatten().flatten();
    attempts.map(|attempt| attempt.path().join("dltraining/checkpoints")).collect()
}

/// When the attempts started, in seconds since 1970.
fn starts(trial: &Trial) -> BTreeMap<u32, f64> {
    let started = trial.attempts.iter().filter_map(|(number, attempt)| Some((*number, attempt.started_at?)));
    started.map(|(number, at)| (number, at.as_millisecond() as f64 / 1000.0)).collect()
}

/// Reads what each attempt has printed.
fn follow(outcome: &mut Outcome, trial: &Trial, stack: &Stack, metric: Option<&str>, now: f64) {
    outcome.metrics = trial.metrics.iter().map(|(name, metric)| (name.clone(), metric.last)).collect();
    for (number, record) in &trial.attempts {
        let attempt = outcome.attempts.entry(*number).or_insert_with(|| Attempt::new(metric));
        if let Some(stream) = &record.log_stream {
            // Until its container is started, it has no log.
            let _ = attempt.follow(&stack.jobs_logs().join(stream), now);
        }
    }
}

/// Whether the newest attempt has come further than where it began.
fn is_back(outcome: &Outcome) -> bool {
    outcome.attempts.last_key_value().is_some_and(|(_, attempt)| {
        attempt.interrupted.is_none() && (attempt.has_trained() || !attempt.saves.is_empty())
    })
}

/// What was seen of the newest attempt.
fn seen(outcome: &Outcome, now: f64, is_saving: bool) -> Seen {
    let newest = outcome.attempts.last_key_value().map(|(_, attempt)| attempt);
    Seen {
        now,
        started: newest.and_then(|attempt| attempt.started),
        saves: newest.map(|attempt| attempt.saves.iter().map(|save| save.at).collect()).unwrap_or_default(),
        is_saving,
        is_evaluating: newest.is_some_and(|attempt| attempt.said.is_evaluating),
        shows_evaluation: outcome.attempts.values().any(|attempt| attempt.said.shows_evaluation),
        interval: interval(outcome.attempts.values()),
    }
}

/// Interrupts the newest attempt if it is time for the interruption at place `next`.
fn interrupt(
    outcome: &mut Outcome,
    trial: &Trial,
    stack: &Stack,
    (next, notice): (usize, Duration),
    seen: &Seen,
) -> bool {
    let (Some((number, attempt)), Some(interruption)) =
        (outcome.attempts.iter_mut().next_back(), INTERRUPTIONS.get(next))
    else {
        return false;
    };
    let Some(interruption) =
        interruption.due(seen).filter(|_| attempt.interrupted.is_none() && attempt.ended.is_none())
    else {
        return false;
    };
    let Some(instance) = trial.attempts.get(number).and_then(|record| record.instance.as_ref()) else { return false };
    let notice = interruption.with_notice.then_some(notice);
    if stack.with_world(|world, at| world.reclaim(instance, notice, at)).is_err() {
        return false;
    }
    attempt.interrupted = Some((interruption, seen.now));
    let how = if interruption.with_notice { "with a notice" } else { "without a notice" };
    out::note(format_args!("{:>6.1} s  interrupted {}, {how}", seen.now, interruption.moment));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_said_once() {
        let mut waiting = Waiting::default();
        let mut said = Vec::new();
        for now in 0..30u8 {
            let now = f64::from(now);
            let what = if now < 10.0 { ("a checkpoint", 30.0 - now) } else { ("the next attempt", f64::INFINITY) };
            said.extend(waiting.look(what, now).map(|what| (now, what)));
        }
        let said: Vec<(f64, &str)> = said.iter().map(|(now, what)| (*now, what.as_str())).collect();
        assert_eq!(said, [(LONG, "a checkpoint, 25 s at most"), (10.0 + LONG, "the next attempt")]);
    }
}
