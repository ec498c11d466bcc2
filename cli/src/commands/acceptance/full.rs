//! A whole run: everything that it makes is deleted at its end, however that comes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use spotsweep_aws::Reader;
use spotsweep_control_plane::sweep::spent::dollars;
use spotsweep_protocol::ids::SweepId;
use tokio::time::{Instant, sleep};

use super::chaos::{Chaos, Made};
use super::checks::run::{Facts, judge as judge_run};
use super::checks::{Check, Verdict, judge};
use super::course::{Course, must_be_alone};
use super::estimate::Estimate;
use super::page::About;
use super::recording::{self, Recorded};
use super::strike::{self, Kind};
use super::subject::Subject;
use super::{remove, sweep, written};
use crate::out;
use crate::signals::unless_stopped;
use spotsweep_protocol::failure::{FAILED, Failure};

/// Checks that a good run may not see. Under a notice the runner leaves by itself, with an exit code; volumes' events
/// are sent at best effort.
const OPTIONAL: [&str; 2] = ["status-reason", "no-detach-event"];

/// Batch keeps an idle instance for some minutes.
const IDLE_DEADLINE: Duration = Duration::from_secs(1_200);

/// What a run has found.
struct Found {
    facts: Facts,
    recording: Vec<Recorded>,
    sweep: String,
    instance_types: Vec<String>,
    troubles: Vec<String>,
}

/// Exit code 0 where every check held.
pub(super) async fn run(subject: &Subject, max_usd: f64, output: &Path) -> Result<ExitCode, Failure> {
    let chaos = Chaos::new(subject);
    let estimate = unless_stopped(async {
        let estimate = Estimate::of(&subject.ec2(), &subject.instance_types).await?;
        let (usd, hourly) = (estimate.usd, estimate.hourly_usd);
        if usd > max_usd {
            return Err(Failure::usage(format!(
                "a run may cost {usd:.2} USD ({hourly:.3} USD an instance-hour), more than --max-usd {max_usd}: raise \
                 that, or name a queue of cheaper instances by --queue"
            )));
        }
        out::note(format_args!("a run costs {usd:.2} USD at most ({hourly:.3} USD an instance-hour)"));
        chaos.must_be_absent().await?;
        must_be_alone(&Reader::new(&subject.target.config, subject.table.clone()), &subject.table, None).await?;
        idle(subject).await?;
        Ok(estimate)
    })
    .await?;
    let mut sweep = None;
    let outcome = unless_stopped(measure(subject, &chaos, estimate, max_usd, &mut sweep)).await;
    out::note(format_args!("deleting what the run has made …"));
    let removed = remove::all(subject, &chaos, sweep).await;
    let found = outcome.map_err(|failure| match &removed {
        Ok(()) => failure,
        Err(left) => Failure::new(format!("{failure}\n{left}")),
    })?;
    let code = report(&found, output)?;
    removed?;
    Ok(code)
}

/// Waits until no instance of an earlier sweep is left: FIS might choose it.
async fn idle(subject: &Subject) -> Result<(), Failure> {
    let deadline = Instant::now() + IDLE_DEADLINE;
    let mut is_told = false;
    loop {
        let running = subject.running().await?;
        let Some(instance) = running.first() else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(Failure::new(format!(
                "instance {instance} of the deployment runs, and no sweep is open: what runs on it would be interrupted, so \
                 end that first"
            )));
        }
        if !is_told {
            out::note(format_args!("waiting until Batch has ended {} of an earlier sweep …", names(&running)));
            is_told = true;
        }
        sleep(subject.pace.poll).await;
    }
}

fn names(instances: &BTreeSet<String>) -> String {
    instances.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Names the sweep as soon as it is known.
async fn measure(
    subject: &Subject,
    chaos: &Chaos<'_>,
    estimate: Estimate,
    max_usd: f64,
    sweep: &mut Option<SweepId>,
) -> Result<Found, Failure> {
    out::note(format_args!("creating the stack {} …", subject.chaos_stack()));
    let made = chaos.create().await?;
    sleep(subject.pace.new_rule).await;
    let mut course = Course::begin(subject, chaos, &made, max_usd).await?;
    *sweep = Some(course.sweep.clone());
    course.follow().await;
    let leftovers = left_over(&course, subject).await?;
    let results = course.results().await?;
    let recording = recorded(&course, subject, &made).await?;
    let Course { sweep, trials, strikes, access, troubles, .. } = course;
    let facts = Facts {
        pace: subject.pace,
        estimate,
        trials,
        strikes,
        stories: results.stories,
        models: results.models,
        access,
        spent: results.spent,
        leftovers,
    };
    let instance_types = subject.instance_types.clone();
    Ok(Found { facts, recording, sweep: sweep.to_string(), instance_types, troubles })
}

/// What is not deleted, after what is being deleted has had its time.
async fn left_over(course: &Course<'_>, subject: &Subject) -> Result<Vec<String>, Failure> {
    let deadline = Instant::now() + subject.pace.late;
    loop {
        let held = course.held().await?;
        if held.is_empty() || Instant::now() >= deadline {
            return Ok(held);
        }
        sleep(subject.pace.poll).await;
    }
}

/// The run's own events, after the last of them have had their time.
async fn recorded(course: &Course<'_>, subject: &Subject, made: &Made) -> Result<Vec<Recorded>, Failure> {
    sleep(subject.pace.late).await;
    let logs = aws_sdk_cloudwatchlogs::Client::new(&subject.target.batch);
    Ok(course.own.of(recording::fetch(&logs, &made.recording).await?))
}

/// Judges, writes and says what it cost.
fn report(found: &Found, output: &Path) -> Result<ExitCode, Failure> {
    let Found { facts, recording, .. } = found;
    let mut checks = judge_run(facts, recording);
    checks.extend(judge(recording));
    let about = About::run(done(found), facts.spent.map(|spent| spent.usd), facts.estimate.usd);
    written::write(output, &checks, recording, &about)?;
    if let Some(spent) = facts.spent {
        out::note(format_args!(
            "the trials have cost {}; the estimate was {:.2} USD",
            dollars(spent.usd),
            facts.estimate.usd
        ));
    }
    Ok(if checks.iter().all(is_good) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// What was not seen proves nothing.
fn is_good(check: &Check) -> bool {
    match check.verdict {
        Verdict::Held => true,
        Verdict::DidNotHold => false,
        Verdict::NotSeen => OPTIONAL.contains(&check.name),
    }
}

fn done(Found { facts, sweep, instance_types, troubles, .. }: &Found) -> Vec<String> {
    let attempts: usize = facts.trials.iter().map(|trial| trial.attempts.len()).sum();
    let mut done = vec![
        format!("spotsweep {} on {}", env!("CARGO_PKG_VERSION"), instance_types.join(", ")),
        format!("sweep {sweep}: {} trials, {attempts} attempts", sweep::trials()),
    ];
    done.extend(strike::ALL.map(|kind| {
        let strike = facts.strikes.iter().find(|strike| strike.kind == kind);
        match (kind, strike) {
            (Kind::Interruption, Some(strike)) => format!("{:.0}: FIS interrupted an instance", strike.at),
            (Kind::Interruption, None) => {
                "FIS interrupted no instance: they never all had a trial in training".to_owned()
            }
            (Kind::Termination, Some(strike)) => {
                let instance = strike.instance.as_deref().unwrap_or_default();
                format!("{:.0}: {instance} was terminated without a notice", strike.at)
            }
            (Kind::Termination, None) => "no instance was terminated: none had a trial in training".to_owned(),
        }
    }));
    done.extend(troubles.iter().map(|trouble| format!("trouble: {trouble}")));
    let spent = facts.spent.map_or("unknown".to_owned(), |spent| dollars(spent.usd));
    done.push(format!("the trials have cost {spent}, {:.2} USD were estimated", facts.estimate.usd));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_good_only_where_it_may_be() {
        let check = |name, verdict| Check { name, assumption: "", verdict, recorded: Vec::new() };
        assert!(is_good(&check("draining", Verdict::Held)));
        assert!(!is_good(&check("draining", Verdict::NotSeen)));
        assert!(is_good(&check("status-reason", Verdict::NotSeen)));
        assert!(!is_good(&check("status-reason", Verdict::DidNotHold)));
    }
}
