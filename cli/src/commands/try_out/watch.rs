//! Follows the trial, and interrupts it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use spotsweep_aws::Reader;
use spotsweep_control_plane::trial::Trial;
use spotsweep_local_stack::stack::Stack;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::ids::SweepId;
use tokio::time::sleep;

use super::attempt::{Attempt, interval};
use super::lost::Lost;
use super::moments::{INTERRUPTIONS, Seen};
use super::saves::{Look, Saves};
use crate::out;

/// Between two looks.
const POLL: Duration = Duration::from_millis(50);
/// Looks at the folder of checkpoints between two looks at the record.
const LOOKS: u32 = 4;

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// EC2's notice.
    pub(super) notice: Duration,
    /// Seconds for everything.
    pub(super) limit: f64,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// By number. A trial that was submitted again has no attempts of some numbers.
    pub(super) attempts: BTreeMap<u32, Attempt>,
    /// The newest value of each metric that reached the control plane.
    pub(super) metrics: BTreeMap<String, f64>,
    /// Files that are lost with the containers.
    pub(super) lost: Lost,
    /// Whether the training was over before all interruptions.
    pub(super) is_over: bool,
    /// Whether the time was over before.
    pub(super) timed_out: bool,
}

/// Follows trial 0 until it is back from the last interruption, or over, or the time is.
pub(super) async fn watch(
    stack: &mut Stack,
    sweep: &SweepId,
    metric: Option<&str>,
    times: Times,
) -> Result<Outcome, Failure> {
    let reader = Reader::new(stack.config(), stack.table().to_owned());
    let (mut outcome, began) = (Outcome::default(), Instant::now());
    let (mut saves, mut next) = (Saves::default(), 0);
    loop {
        stack.check()?;
        let trial = reader.trial(sweep, 0).await.context(|| "cannot read the trial")?;
        let mut is_saving = false;
        for _ in 0..LOOKS {
            let now = began.elapsed().as_secs_f64();
            let look = saves.look(&checkpoint_folders(stack), now);
            is_saving |= look == Look::Writing;
            if let (Look::Complete(at), Some(mut newest)) = (look, outcome.attempts.last_entry()) {
                let attempt = newest.get_mut();
                // What the runner restores before the training starts is no save.
                let is_of_training = attempt.started.is_some_and(|started| at > started);
                attempt.saves.extend(is_of_training.then_some(at));
            }
            sleep(POLL).await;
        }
        let now = began.elapsed().as_secs_f64();
        outcome.lost.look(&stack.jobs().join("attempts"));
        if let Some(trial) = &trial {
            follow(&mut outcome, trial, stack, metric, now);
            outcome.is_over = trial.is_over();
        }
        outcome.timed_out = now >= times.limit;
        if outcome.is_over || outcome.timed_out || (next == INTERRUPTIONS.len() && is_back(&outcome)) {
            outcome.lost.attempt_ends();
            return Ok(outcome);
        }
        if let Some(trial) = trial.filter(|_| next < INTERRUPTIONS.len())
            && interrupt(&mut outcome, &trial, stack, (next, times.notice), (now, is_saving))
        {
            next += 1;
            outcome.lost.attempt_ends();
        }
    }
}

fn checkpoint_folders(stack: &Stack) -> Vec<PathBuf> {
    let attempts = fs::read_dir(stack.jobs().join("attempts")).into_iter().flatten().flatten();
    attempts.map(|attempt| attempt.path().join("dltraining/checkpoints")).collect()
}

/// Takes in what each attempt has printed.
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
        let has_trained = attempt.said.steps.is_some_and(|(first, last)| last > first);
        attempt.interrupted.is_none() && (has_trained || !attempt.saves.is_empty())
    })
}

/// Interrupts the newest attempt where it is time for the interruption at place `next`.
fn interrupt(
    outcome: &mut Outcome,
    trial: &Trial,
    stack: &Stack,
    (next, notice): (usize, Duration),
    (now, is_saving): (f64, bool),
) -> bool {
    let interval = interval(outcome.attempts.values());
    let shows_evaluation = outcome.attempts.values().any(|attempt| attempt.said.shows_evaluation);
    let (Some((number, attempt)), Some(interruption)) =
        (outcome.attempts.iter_mut().next_back(), INTERRUPTIONS.get(next))
    else {
        return false;
    };
    let seen = Seen {
        now,
        started: attempt.started,
        saves: attempt.saves.clone(),
        is_saving,
        is_evaluating: attempt.said.is_evaluating,
        shows_evaluation,
        interval,
    };
    let Some(interruption) =
        interruption.due(&seen).filter(|_| attempt.interrupted.is_none() && attempt.ended.is_none())
    else {
        return false;
    };
    let Some(instance) = trial.attempts.get(number).and_then(|record| record.instance.as_ref()) else { return false };
    let notice = interruption.with_notice.then_some(notice);
    if stack.with_world(|world, at| world.reclaim(instance, notice, at)).is_err() {
        return false;
    }
    attempt.interrupted = Some((interruption, now));
    let how = if interruption.with_notice { "with a notice" } else { "without a notice" };
    out::note(format_args!("{now:>6.1} s  interrupted {}, {how}", interruption.moment));
    true
}
