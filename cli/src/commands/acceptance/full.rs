//! Makes a whole run. Everything that it has made is deleted at its end, for whatever reason it ends.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use spotsweep_aws::Reader;
use spotsweep_protocol::ids::SweepId;
use tokio::time::{Instant, sleep};

use super::chaos::{Chaos, Made};
use super::checks::run::{Facts, judge as judge_run};
use super::checks::{Check, Verdict, judge};
use super::course::{Course, must_be_alone};
use super::estimate::Estimate;
use super::injection::Injection;
use super::page::About;
use super::recording::{self, Recorded};
use super::subject::{Seen, Subject};
use super::{preflight, remove, sweep, written};
use crate::out;
use crate::signals::unless_stopped;
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::{counted, dollars};

/// Checks for which a good run may have no case. Under a notice the runner ends by itself, with an exit code. Events of
/// volumes are sent at best effort.
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

/// Makes a run. The exit code is 0 if every check held.
pub(super) async fn run(subject: &Subject, max_usd: f64, output: &Path) -> Result<ExitCode, Failure> {
    let chaos = Chaos::new(subject);
    let estimate = unless_stopped(async {
        let Subject { instance_types, zones, pace, .. } = subject;
        let estimate = Estimate::of(&subject.ec2(), instance_types, zones, max_usd, *pace).await?;
        out::note(format_args!("{}", estimate.line()));
        preflight::check(subject).await?;
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

/// Waits until no instance of an earlier sweep is left. The recording would lack its first events, so it could not be
/// said which attempt ran there.
async fn idle(subject: &Subject) -> Result<(), Failure> {
    let deadline = Instant::now() + IDLE_DEADLINE;
    let mut is_noted = false;
    loop {
        let live = subject.instances().await?;
        let Some(Seen { id, .. }) = live.first() else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(Failure::new(format!(
                "instance {id} of the deployment runs, and no sweep is open: end what keeps it. A compute environment with \
                 minvCpus above 0 always keeps one; set that to 0 for the run"
            )));
        }
        if !is_noted {
            out::note(format_args!("waiting until Batch has ended {} of an earlier sweep …", names(&live)));
            is_noted = true;
        }
        sleep(subject.pace.poll).await;
    }
}

fn names(instances: &[Seen]) -> String {
    instances.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(", ")
}

/// Runs the sweep, and reports its name as soon as it is known.
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
    let mut course = Course::begin(subject, chaos, &made, estimate, max_usd).await?;
    *sweep = Some(course.sweep.clone());
    course.follow().await?;
    let leftovers = left_over(&course, subject).await?;
    let results = course.results().await?;
    let recording = recorded(&course, subject, &made).await?;
    let Course { sweep, trials, injections, access, troubles, .. } = course;
    let facts = Facts {
        pace: subject.pace,
        estimate,
        trials,
        injections,
        stories: results.stories,
        models: results.models,
        access,
        spent: results.spent,
        leftovers,
        gpus: subject.gpus,
    };
    let instance_types = subject.instance_types.clone();
    Ok(Found { facts, recording, sweep: sweep.to_string(), instance_types, troubles })
}

/// Waits for what is being deleted, and returns what still exists afterwards.
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

/// The run's own events. It waits first until the last of them can have arrived.
async fn recorded(course: &Course<'_>, subject: &Subject, made: &Made) -> Result<Vec<Recorded>, Failure> {
    sleep(subject.pace.late).await;
    let logs = aws_sdk_cloudwatchlogs::Client::new(&subject.target.batch);
    Ok(course.own.of(recording::fetch(&logs, &made.recording).await?))
}

/// Judges the run, writes the results, and prints what it has cost.
fn report(found: &Found, output: &Path) -> Result<ExitCode, Failure> {
    let Found { facts, recording, .. } = found;
    let mut checks = judge_run(facts, recording);
    checks.extend(judge(recording));
    let about =
        About { done: done(found), trials_usd: facts.spent.map(|spent| spent.usd), estimate_usd: facts.estimate.usd };
    written::write(output, &checks, recording, &about)?;
    if let Some(spent) = facts.spent {
        let (spent, expected) = (dollars(spent.usd), dollars(facts.estimate.usd));
        out::note(format_args!("the trials have cost {spent}, {expected} expected"));
    }
    Ok(if checks.iter().all(is_good) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Whether a check is good. If nothing was seen, nothing is proven.
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
        format!("sweep {sweep}: {}, {}", counted(sweep::trials(), "trial"), counted(attempts, "attempt")),
    ];
    done.extend(facts.injections.iter().map(Injection::line));
    done.extend(troubles.iter().map(|trouble| format!("trouble: {trouble}")));
    let spent = facts.spent.map_or("unknown".to_owned(), |spent| dollars(spent.usd));
    done.push(format!("the trials have cost {spent}, {} expected", dollars(facts.estimate.usd)));
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
