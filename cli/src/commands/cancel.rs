//! `spotsweep cancel`: ends the jobs of a sweep or of some trials. The rest happens as usual: Batch reports their ends,
//! and the control plane deletes their workspaces and settles the sweep.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_control_plane::command::STOPPED_IDS;
use spotsweep_protocol::ids::PART_TRIALS;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::Trial;
use tokio::time::{Instant, sleep};

use crate::consent::Loss;
use crate::signals::unless_stopped;
use crate::sweeps::Found;
use crate::target::Table;
use crate::{out, sweeps};
use spotsweep_protocol::failure::{Context, FAILED, Failure};
use spotsweep_protocol::visible::stripped;
use spotsweep_protocol::words::counted;

const POLL: Duration = Duration::from_millis(500);
/// A file is read and submitted within some seconds. If a function has died meanwhile, `reconcile` repeats its work.
const SUBMISSION_DEADLINE: Duration = Duration::from_secs(600);
/// Trials have two minutes to stop. If an event is lost, `reconcile` learns of it within its period.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(1_800);
/// Number of jobs whose trials are named in the question to the user.
const MOST_NAMED: usize = 5;
/// Used if the system does not know the user's name.
const UNKNOWN_USER: &str = "an unknown user";
/// Characters of a user's name in the reason.
const LONGEST_NAME: usize = 64;

/// `spotsweep cancel`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Trials that run get SIGTERM, and SIGKILL after two minutes; those that wait never start. What they have collected by \
then stays. The sweep settles, with these trials as cancelled by you. Their workspaces are kept for as long as `keep_failed` in the \
sweep file says, three days by default: `spotsweep retry SWEEP --cancelled --continue` goes on from their last \
checkpoints. With --delete nothing is kept. It needs batch:TerminateJob.

At a terminal it shows the trials, the sweep and the control plane, and asks. Elsewhere it takes the whole id of a \
sweep, or the beginning of one with --yes; never `latest`.

Examples:
  spotsweep cancel digits-1a2b3c4d5e6f          every trial that has not ended
  spotsweep cancel digits-1a2b3c4d5e6f 3 7      two of them; the others go on
  spotsweep cancel digits-1a2b3c4d5e6f --delete and keep no checkpoint of them
  spotsweep cancel digits-1a2b3c4d5e6f --wait   and wait until the sweep has settled

Exit codes: 0 nothing of it goes on, 1 something may, 2 wrong usage.")]
pub(crate) struct Cancel {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// Only these trials, by their index from 0
    #[arg(value_name = "INDEX")]
    indices: Vec<u32>,
    /// Delete the trials' volumes and snapshots at once, and keep no checkpoint for `retry --continue`
    #[arg(long)]
    delete: bool,
    /// Wait until all have ended and nothing is left of them but what is kept
    #[arg(long)]
    wait: bool,
    /// Do not ask at the terminal
    #[arg(long, short)]
    yes: bool,
    /// Print what was ended as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: Table,
}

/// What a cancellation ends, and what it does not.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ends {
    /// Batch jobs, and the trials of each.
    jobs: Vec<(String, Trials)>,
    /// Trials that have ended already, and how.
    over: Vec<(u32, &'static str)>,
    /// Trials that are being submitted again, so that their next job is not known yet.
    unknown: Vec<u32>,
}

/// First and last index of trials.
type Trials = (u32, u32);

impl Ends {
    /// The trials whose jobs are to be ended, or none if there is no such job.
    fn trials(&self) -> Option<String> {
        let some: Vec<String> = self.jobs.iter().take(MOST_NAMED).map(|(_, trials)| names(*trials)).collect();
        let more = self.jobs.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {}", counted(more, "other job")) } else { String::new() };
        (!some.is_empty()).then(|| some.join(", ") + &more)
    }
}

/// Runs the command. It fails if a trial may go on.
pub(super) async fn run(args: Cancel) -> Result<ExitCode, Failure> {
    unless_stopped(cancel(args)).await
}

async fn cancel(args: Cancel) -> Result<ExitCode, Failure> {
    let mut found = sweeps::find(args.table, &args.sweep).await?;
    submitted(&mut found).await?;
    let trials = found.trials().await?;
    let has_ended = matches!(found.sweep.stage, Stage::Rejected | Stage::Settling | Stage::Settled);
    let ends = match args.indices.is_empty() {
        true if has_ended => Ends::default(),
        true => whole(found.plan()?, &trials),
        false => some(found.plan()?, &trials, found.indices(&args.indices)?),
    };
    if let Some(trials) = ends.trials() {
        let Found { sweep, target, .. } = &found;
        let what = format!("cancel {trials} of sweep {} on {}", sweep.id, target.described());
        Loss { what: &what, named: Some(&args.sweep), id: Some(sweep.id.as_str()) }.agreed(args.yes).await?;
    }
    end(&found, &ends, args.delete).await?;
    tell(args.json, &found.sweep, &ends)?;
    if !ends.unknown.is_empty() {
        let (unknown, sweep) = (&ends.unknown, &found.sweep.id);
        out::note(format_args!(
            "being submitted again just now: trials {unknown:?}; run `spotsweep cancel {sweep}` again"
        ));
        return Ok(ExitCode::from(FAILED));
    }
    if args.wait {
        wait(found, &args.indices).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends a sweep that has not ended, and waits until everything is cleaned up.
pub(super) async fn whole_sweep(mut found: Found) -> Result<(), Failure> {
    if matches!(found.sweep.stage, Stage::Rejected | Stage::Settled) {
        return Ok(());
    }
    submitted(&mut found).await?;
    if let Some(plan) = &found.sweep.plan {
        let ends = whole(plan, &found.trials().await?);
        end(&found, &ends, true).await?;
    }
    wait(found, &[]).await
}

/// Waits until all parts of the sweep are submitted, because later parts would go on.
async fn submitted(found: &mut Found) -> Result<(), Failure> {
    let deadline = Instant::now() + SUBMISSION_DEADLINE;
    let mut is_noted = false;
    while found.sweep.stage.is_upload() {
        if Instant::now() >= deadline {
            let stage = found.sweep.stage.name();
            return Err(Failure::new(format!("the sweep is still {stage}: nothing was cancelled; try again later")));
        }
        if !is_noted {
            out::note(format_args!(
                "the sweep is {}; waiting until all of it is submitted …",
                found.sweep.stage.name()
            ));
            is_noted = true;
        }
        sleep(POLL).await;
        found.refresh().await?;
    }
    Ok(())
}

/// The array jobs as a whole, and the jobs of single trials.
fn whole(plan: &Plan, trials: &[Trial]) -> Ends {
    let mut ends = Ends::default();
    for (number, part) in (0..).zip(&plan.parts) {
        let first: u32 = number * PART_TRIALS;
        if let Some(job) = part.job.clone().filter(|_| part.ended.is_none()) {
            ends.jobs.push((job, (first, first + part.trials.saturating_sub(1))));
        }
    }
    for trial in trials.iter().filter(|trial| !trial.is_over()) {
        match trial.resubmitting {
            true => ends.unknown.push(trial.index),
            false if trial.round > 0 => ends.jobs.push((trial.job.to_string(), (trial.index, trial.index))),
            false => {}
        }
    }
    ends
}

fn some(plan: &Plan, trials: &[Trial], indices: impl IntoIterator<Item = u32>) -> Ends {
    let known: BTreeMap<u32, &Trial> = trials.iter().map(|trial| (trial.index, trial)).collect();
    let mut ends = Ends::default();
    for index in indices {
        match known.get(&index) {
            Some(trial) if trial.is_over() => ends.over.push((index, trial.standing().name())),
            Some(trial) if trial.resubmitting => ends.unknown.push(index),
            Some(trial) => ends.jobs.push((trial.job.to_string(), (index, index))),
            None => ends.jobs.extend(plan.job_of(index).map(|job| (job.to_string(), (index, index)))),
        }
    }
    ends
}

/// Ends the jobs. TerminateJobs also accepts a job that has ended, and does nothing then.
async fn end(found: &Found, ends: &Ends, discard: bool) -> Result<(), Failure> {
    let client = aws_sdk_batch::Client::new(&found.target.batch);
    let reason = StopReason::Cancelled { by: user(), discard }.for_batch();
    for some in ends.jobs.chunks(STOPPED_IDS) {
        let (_, trials) = some[0];
        let jobs = some.iter().map(|(job, _)| job.clone()).collect();
        let ended = client.terminate_jobs().set_jobs(Some(jobs)).reason(&reason).send().await;
        let ended = ended.context(|| format!("cannot end {}; it and what comes after it goes on", names(trials)))?;
        if let Some(failed) = ended.errors().first() {
            let [job, code, message] = [failed.job(), failed.code(), failed.message()].map(Option::unwrap_or_default);
            return Err(Failure::new(format!("cannot end job {job}: {code}: {message}")));
        }
    }
    Ok(())
}

/// Name of the user, as far as the system knows it.
fn user() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    let name = name.unwrap_or_else(|| UNKNOWN_USER.to_owned());
    stripped(&name).chars().take(LONGEST_NAME).collect()
}

fn names((first, last): Trials) -> String {
    if first == last { format!("trial {first}") } else { format!("trials {first} to {last}") }
}

fn tell(is_json: bool, sweep: &Sweep, ends: &Ends) -> Result<(), Failure> {
    if ends.jobs.is_empty() && ends.over.is_empty() && ends.unknown.is_empty() {
        out::note(format_args!("nothing to cancel: sweep {} is {}", sweep.id, sweep.stage.name()));
    }
    out::results(|to| if is_json { writeln!(to, "{}", as_json(sweep, ends)) } else { lines(ends, to) })
}

fn as_json(sweep: &Sweep, ends: &Ends) -> Value {
    let job = |(job, (first, last)): &(String, Trials)| json!({ "job": job, "first": first, "last": last });
    let over = |(index, how): &(u32, &str)| json!({ "index": index, "status": how });
    json!({
        "sweep": sweep.id.as_str(),
        "ended": ends.jobs.iter().map(job).collect::<Vec<_>>(),
        "over": ends.over.iter().map(over).collect::<Vec<_>>(),
        "unknown": ends.unknown,
    })
}

fn lines(ends: &Ends, to: &mut dyn Write) -> io::Result<()> {
    for (job, trials) in &ends.jobs {
        writeln!(to, "cancelled {}: job {job}", names(*trials))?;
    }
    ends.over.iter().try_for_each(|(index, how)| writeln!(to, "trial {index} has ended already: {how}"))
}

/// Waits until the control plane has cleaned up.
async fn wait(mut found: Found, indices: &[u32]) -> Result<(), Failure> {
    let deadline = Instant::now() + CLEAN_UP_DEADLINE;
    loop {
        let is_done = if indices.is_empty() {
            matches!(found.sweep.stage, Stage::Settled | Stage::Rejected)
        } else {
            let is_gone = |trial: &&Trial| indices.contains(&trial.index) && trial.is_done();
            found.trials().await?.iter().filter(is_gone).count() == found.indices(indices)?.len()
        };
        if is_done {
            out::note(format_args!("all have ended, and nothing is left of them but what `workspace` keeps"));
            return Ok(());
        }
        if Instant::now() >= deadline {
            let (sweep, minutes) = (&found.sweep.id, CLEAN_UP_DEADLINE.as_secs() / 60);
            return Err(Failure::new(format!(
                "cancelled, but not all is cleaned up after {minutes} minutes: `spotsweep status {sweep}` tells what \
                 is left, and reconcile goes on"
            )));
        }
        sleep(POLL).await;
        found.refresh().await?;
    }
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_records::trial::JobStatus;

    use super::*;

    fn plan() -> Option<Plan> {
        let text = json!({ "trials": 10_003, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [
            { "trials": 10_000, "job": "a", "ended": "SUCCEEDED" }, { "trials": 3, "job": "b" }] });
        serde_json::from_value(text).ok()
    }

    fn trial(index: u32, job: &str, status: JobStatus, round: u32) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(job.to_owned()));
        (trial.status, trial.round) = (status, round);
        trial
    }

    #[test]
    fn what_ends_is_what_runs() {
        let Some(plan) = plan() else { unreachable!("a plan") };
        let again = trial(7, "again", JobStatus::Running, 1);
        let mut between = trial(8, "before", JobStatus::Failed, 1);
        (between.status, between.resubmitting) = (JobStatus::Runnable, true);
        let first = trial(10_001, "b:1", JobStatus::Running, 0);
        let done = trial(2, "a:2", JobStatus::Succeeded, 0);
        let trials = [done, again, between, first];

        let job = |job: &str, trials: Trials| (job.to_owned(), trials);
        let expected =
            Ends { jobs: vec![job("b", (10_000, 10_002)), job("again", (7, 7))], over: vec![], unknown: vec![8] };
        assert_eq!(whole(&plan, &trials), expected);

        let expected = Ends {
            jobs: vec![job("again", (7, 7)), job("b:1", (10_001, 10_001)), job("b:2", (10_002, 10_002))],
            over: vec![(2, "succeeded")],
            unknown: vec![8],
        };
        assert_eq!(some(&plan, &trials, [2, 7, 8, 10_001, 10_002]), expected);
    }
}
