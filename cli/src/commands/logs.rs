//! `spotsweep logs`: prints what a trial has printed, and follows it.

mod stream;

use std::process::ExitCode;
use std::time::Duration;

use spotsweep_records::trial::Trial;
use tokio::time::sleep;

use self::stream::{Read, Stream};
use crate::signals::unless_stopped;
use crate::sweeps::Found;
use crate::target::Table;
use crate::{out, sweeps};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::counted;

const POLL: Duration = Duration::from_secs(1);
/// After so many looks without anything new, the log of an ended attempt is complete. CloudWatch gets lines some
/// seconds late.
const QUIET_LOOKS: u32 = 4;

/// `spotsweep logs`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What the trial printed on standard output and standard error, from CloudWatch Logs; when that no longer has it, the end \
of it, `train.log` next to the trial's outputs. The log group is the one that the sweep's job definition names.

Examples:
  spotsweep logs digits-1a2b3c4d5e6f 7               its newest attempt
  spotsweep logs digits-1a2b3c4d5e6f 7 --tail 20     the last 20 lines
  spotsweep logs digits-1a2b3c4d5e6f 7 --attempt 1   its first
  spotsweep logs digits-1a2b3c4d5e6f 7 --follow      until the trial ends, from attempt to attempt")]
pub(crate) struct Logs {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// The trial's index within the sweep, from 0
    #[arg(value_name = "INDEX")]
    index: u32,
    /// One attempt, from 1 [default: the newest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Only the last N lines; with --follow, these and what comes after them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tail: Option<u32>,
    /// Go on until the trial, or the attempt that is named, ends
    #[arg(long, short)]
    follow: bool,
    /// The log group, in place of the job definition's
    #[arg(long, env = "SPOTSWEEP_TRIAL_LOGS", value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    table: Table,
}

/// Runs the command. It fails for a trial that has printed nothing because it has not started.
pub(super) async fn run(args: Logs) -> Result<ExitCode, Failure> {
    let found = sweeps::find(args.table, &args.sweep).await?;
    found.indices(&[args.index])?;
    let group = match args.group.filter(|group| !group.is_empty()) {
        Some(group) => group,
        None => stream::group(&found).await?,
    };
    let tail = args.tail.map(|lines| lines as usize);
    let wish = Wish { found: &found, index: args.index, attempt: args.attempt, tail, group };
    unless_stopped(async { if args.follow { wish.follow().await } else { wish.print().await } }).await?;
    Ok(ExitCode::SUCCESS)
}

/// The log that is asked for.
struct Wish<'a> {
    found: &'a Found,
    index: u32,
    attempt: Option<u32>,
    tail: Option<usize>,
    group: String,
}

impl Wish<'_> {
    async fn trial(&self) -> Result<Option<Trial>, Failure> {
        let trial = self.found.reader.trial(&self.found.sweep.id, self.index).await;
        trial.context(|| format!("cannot read trial {}", self.index))
    }

    /// Prints the log as it is now.
    async fn print(&self) -> Result<(), Failure> {
        let trial = self.trial().await?.ok_or_else(|| self.not_started())?;
        let (number, mut stream) = self.stream(&trial, None)?.ok_or_else(|| self.no_log(&trial))?;
        if self.begin(&mut stream).await? != Read::Missing {
            return Ok(());
        }
        let is_newest = trial.attempts.last_key_value().is_some_and(|(newest, _)| *newest == number);
        if trial.is_over() && is_newest && stream::print_end(self.found, self.index, self.tail).await? {
            return Ok(());
        }
        Err(stream.missing())
    }

    /// Prints the log as it grows, from attempt to attempt.
    async fn follow(&self) -> Result<(), Failure> {
        let mut followed = None;
        let mut is_noted = false;
        loop {
            let trial = self.trial().await?;
            let next = trial.as_ref().map(|trial| self.stream(trial, followed)).transpose()?.flatten();
            match next {
                Some((number, stream)) => {
                    out::note(format_args!("trial {} attempt {number}:", self.index));
                    if self.follow_one(number, stream, followed.is_none()).await? == Read::Unread
                        || self.attempt.is_some()
                    {
                        return Ok(());
                    }
                    followed = Some(number);
                }
                None if trial.is_some_and(|trial| trial.is_over()) => return Ok(()),
                None if !is_noted => {
                    out::note(format_args!("trial {} waits for an instance …", self.index));
                    is_noted = true;
                }
                None => sleep(POLL).await,
            }
        }
    }

    /// Prints what an attempt has printed so far, or the last lines of it.
    async fn begin(&self, stream: &mut Stream) -> Result<Read, Failure> {
        match self.tail {
            Some(lines) => stream.print_last(lines).await,
            None => stream.print().await,
        }
    }

    /// Follows one attempt to its end. `is_first` is whether no other was followed before it.
    async fn follow_one(&self, number: u32, mut stream: Stream, is_first: bool) -> Result<Read, Failure> {
        let (mut quiet, mut begins) = (0, is_first);
        loop {
            let read = if begins { self.begin(&mut stream).await? } else { stream.print().await? };
            begins = begins && read == Read::Missing;
            let trial = self.trial().await?;
            let has_ended = trial.is_none_or(|trial| trial.is_over() || trial.ended >= number);
            quiet = if read == Read::Lines || !has_ended { 0 } else { quiet + 1 };
            if read == Read::Unread || quiet >= QUIET_LOOKS {
                return Ok(read);
            }
            sleep(POLL).await;
        }
    }

    /// The attempt that is asked for, and its log: the newest one, or the next after one that was followed to its end.
    /// That one may have ended by now. None if there is none yet.
    fn stream(&self, trial: &Trial, followed: Option<u32>) -> Result<Option<(u32, Stream)>, Failure> {
        let attempts = &trial.attempts;
        if let Some(wanted) = self.attempt.filter(|wanted| !attempts.contains_key(wanted) && trial.is_over()) {
            let newest = attempts.last_key_value().map_or(0, |(newest, _)| *newest);
            let (index, ended) = (self.index, counted(newest, "attempt"));
            return Err(Failure::usage(format!("trial {index} has no attempt {wanted}: it ended after {ended}")));
        }
        let wanted = |number: &u32| self.attempt.is_none_or(|wanted| wanted == *number);
        let logs = attempts.iter().filter(|(number, _)| wanted(number));
        let mut logs = logs.filter_map(|(number, attempt)| Some((*number, attempt.log_stream.clone()?)));
        let next = match followed {
            None => logs.next_back(),
            Some(last) => logs.find(|(number, _)| *number > last),
        };
        let client = || aws_sdk_cloudwatchlogs::Client::new(&self.found.target.batch);
        Ok(next.map(|(number, name)| (number, Stream::new(client(), self.group.clone(), name))))
    }

    fn not_started(&self) -> Failure {
        let index = self.index;
        Failure::new(format!("trial {index} has not started yet: there is no log; --follow waits for it"))
    }

    /// Batch reports an attempt's log stream when its container has started.
    fn no_log(&self, trial: &Trial) -> Failure {
        let (index, sweep) = (self.index, &trial.sweep);
        let reason = trial.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        match self.attempt {
            Some(attempt) => Failure::new(format!(
                "attempt {attempt} of trial {index} has no log: no container of it has started{reason}"
            )),
            None => Failure::new(format!(
                "trial {index} has no log: no container of it has started{reason}; `spotsweep explain {sweep} {index}` tells more"
            )),
        }
    }
}
