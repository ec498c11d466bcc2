//! A runner that does not report although AWS Batch shows its attempt as running. A missing report proves nothing, so
//! ECS and EC2 are asked about the instance. First people are notified, then the silence is noted in the trial's
//! record, and then the instance is terminated if both services report it dead. Batch's event about that is the same as
//! for any other interruption.

use super::{Context, Decision, workspace};
use crate::command::Command;
use crate::store::{Versioned, View};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::sweep::notification::{Notification, SilentAttempt};
use spotsweep_records::trial::{Host, Silence, Trial, is_dead};

/// Decides about an overdue trial after Batch was asked: looks up its instance if its attempt runs without reports.
pub(super) fn overdue(view: &View, context: Context<'_>) -> Decision {
    match records(view).and_then(|(_, trial)| Some((trial, trial.silent_since(context.now)?))) {
        Some((trial, since)) => {
            let due = workspace::due(trial, context);
            Decision::advance(format!("no report since {since}")).trial(trial.clone(), due).then(check(trial))
        }
        None => Decision::ignore("no running attempt without reports"),
    }
}

/// Decides about the answers of ECS and EC2. `host` is absent if Batch does not show the attempt on an instance.
pub(super) fn checked(view: &View, attempt: u32, host: Option<&Host>, context: Context<'_>) -> Decision {
    let Some((sweep, held)) = records(view) else { return Decision::ignore("no such trial here") };
    let Some(since) = since(held, attempt, context) else {
        return Decision::ignore(format!("attempt {attempt} has reported, or has ended"));
    };
    let Some(host) = host else { return Decision::ignore("AWS Batch does not show on which instance it runs") };
    let Some(known) = held.known_silence(attempt) else {
        let of = SilentAttempt { index: held.index, attempt, since, agent: host.agent, status: host.status };
        let seconds = context.now.duration_since(since).as_secs();
        let notification = Notification::silent(sweep, of, host, seconds);
        return Decision::advance(format!("attempt {attempt} does not report")).then(Command::Notify(notification));
    };
    let end = host.to_end().map(|instance| {
        let instance = instance.to_owned();
        Command::EndInstance { trial: held.of(), attempt, instance }
    });
    let end: Vec<Command> = end.into_iter().collect();
    if (known.agent, known.status) == (host.agent, host.status) {
        return match end.is_empty() {
            true => Decision::ignore(format!("known: {known}")),
            false => Decision::advance(known.to_string()).then_all(end),
        };
    }
    let silence = Silence { agent: host.agent, status: host.status, ..known.clone() };
    let what = silence.to_string();
    let trial = Trial { silence: Some(silence), ..held.clone() };
    workspace::changed(sweep, Some(held), trial, what, context).then_all(end)
}

/// Notes the silence, once people are notified. A dead instance is looked up once more before it is terminated.
pub(super) fn announced(view: &View, of: &SilentAttempt, context: Context<'_>) -> Decision {
    let Some((sweep, held)) = records(view) else { return Decision::ignore("no such trial here") };
    if since(held, of.attempt, context) != Some(of.since) {
        return Decision::ignore("the attempt has reported meanwhile, or has ended");
    }
    let SilentAttempt { attempt, since, agent, status, .. } = *of;
    let silence = Silence { attempt, since, agent, status, refusal: None };
    let what = silence.to_string();
    let trial = Trial { silence: Some(silence), ..held.clone() };
    let again = is_dead(agent, status).then(|| check(&trial));
    workspace::changed(sweep, Some(held), trial, what, context).then_all(again.into_iter().collect())
}

/// Notes that EC2 terminates the instance, or why it refuses to.
pub(super) fn ended(view: &View, attempt: u32, refusal: Option<&str>, context: Context<'_>) -> Decision {
    let Some((sweep, held)) = records(view) else { return Decision::ignore("no such trial here") };
    let Some(known) = held.known_silence(attempt).filter(|known| known.refusal.as_deref() != refusal) else {
        return Decision::ignore("AWS Batch reports the end of the attempt");
    };
    let silence = Silence { refusal: refusal.map(str::to_owned), ..known.clone() };
    let what = silence.to_string();
    workspace::changed(sweep, Some(held), Trial { silence: Some(silence), ..held.clone() }, what, context)
}

fn records(view: &View) -> Option<(&Sweep, &Trial)> {
    let (Versioned { record: sweep, .. }, Versioned { record: trial, .. }) =
        (view.sweep.as_ref()?, view.trial.as_ref()?);
    Some((sweep, trial))
}

/// Returns the last report of the attempt, if the attempt runs without reports.
fn since(trial: &Trial, attempt: u32, context: Context<'_>) -> Option<jiff::Timestamp> {
    trial.silent_since(context.now).filter(|_| trial.claimed_by == Some(attempt))
}

fn check(trial: &Trial) -> Command {
    let attempt = trial.ended.saturating_add(1);
    let instance = trial.attempts.get(&attempt).and_then(|attempt| attempt.instance.clone());
    Command::CheckInstance { trial: trial.of(), attempt, job: trial.job.clone(), instance }
}

#[cfg(test)]
mod tests;
