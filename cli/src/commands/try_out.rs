//! `spotsweep try`: runs one trial on this machine, and interrupts it at several moments.

mod attempt;
mod bucket;
mod followed;
mod library;
mod lost;
mod moments;
mod more_steps;
mod one_trial;
mod problems;
mod proof;
mod record;
mod report;
mod saves;
mod starts;
mod steps;
mod trial;
mod verdict;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aws_sdk_s3::primitives::ByteStream;
use serde_json::Value;
use spotsweep_local_stack::deploy::BUCKET;
use spotsweep_local_stack::installation::Installation;
use spotsweep_local_stack::stack::{Logs, Ready, Stack, StackOptions};
use spotsweep_protocol::failure::{Context, FAILED, Failure};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::upload::Given;
use spotsweep_sweep_file::SweepFile;

use crate::code_folder::below;
use crate::commands::local::clear_killed;
use crate::dropped::{self, Dropped, rejected, upload};
use crate::secrets;
use crate::signals::unless_stopped;
use crate::{out, sweep_file, tried_metrics};
use bucket::Bucket;
use library::Library;
use one_trial::OneTrial;
use proof::{LIMIT, Made, NOTICES};
use trial::Trial;
use verdict::{Answer, verdict};
use watch::{End, Outcome, Times, watch};

/// Name of the sweep file that is dropped.
const NAME: &str = "try.yaml";
/// Exit code if nothing is wrong, but the proof is incomplete.
const NOT_PROVEN: u8 = 2;

/// `spotsweep try`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the first trial of FILE, or COMMAND, on the local stack. Takes its instance away in the first seconds, between two \
checkpoints with a notice, twice in a row, while it saves, and in evaluation. Each time it goes on as on AWS: \
in a new container, with the same volume.

Exit codes: 0 where all interruptions were made and the training was seen to go on (the last line says in how many \
attempts), 1 with every problem and how to fix it, 2 with \
what was not seen and the command that would prove it (also for wrong usage). A training that is over too soon is tried \
once more: with more steps, if an argument for them is found, and a shorter notice.

Examples:
  spotsweep try sweep.yaml
  spotsweep try -- python train.py --lr 0.1
  spotsweep try sweep.yaml -- torchrun train.py")]
pub(crate) struct TryOut {
    /// The sweep file: its first trial is tried
    #[arg(value_name = "FILE")]
    sweep: Option<PathBuf>,
    /// The folder of the code, and where the command runs [default: that of FILE, or the current one]
    #[arg(long, value_name = "DIR")]
    code: Option<PathBuf>,
    /// Seconds that EC2 leaves after its notice
    #[arg(long, value_name = "SECONDS", default_value_t = NOTICES.1, value_parser = clap::value_parser!(u16).range(i64::from(NOTICES.0)..=i64::from(NOTICES.1)))]
    notice: u16,
    /// Stop after so many seconds, whatever was tried by then
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT, value_parser = clap::value_parser!(u32).range(10..))]
    limit: u32,
    /// Hours that the whole training takes, for its expected costs
    #[arg(long, value_name = "HOURS", default_value_t = 10.0)]
    hours: f64,
    #[command(flatten)]
    stack: StackOptions,
    /// The command to try, in place of the file's own
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command. The exit code is 0 only if the training was seen to go on from its checkpoint.
pub(super) async fn run(mut args: TryOut) -> Result<ExitCode, Failure> {
    if args.sweep.is_none() && args.command.is_empty() {
        return Err(Failure::usage("name a sweep file, or a command after `--`".to_owned()));
    }
    let file = match &args.sweep {
        Some(path) => match sweep_file::read(path, "")? {
            Ok(file) => Some(file),
            Err(rejected) => {
                sweep_file::explain(&rejected);
                return Ok(ExitCode::from(FAILED));
            }
        },
        None => None,
    };
    let code = code_folder(&args, file.as_ref())?;
    let script = Script::new(file.as_ref(), &args.command, &code);
    for variable in script.trial.lacks_data() {
        out::note(format_args!("no data set is fetched here: set {variable} to a folder with some of the data"));
    }
    args.stack.as_on_aws = true;
    args.stack.secrets = file.iter().flat_map(|file| secrets::patterns(&file.settings)).collect();
    let mut stack = unless_stopped(start(&args, &code)).await?;
    let answer = unless_stopped(async {
        if let Some(file) = &file {
            secrets::take_from_shell(stack.config(), BUCKET, &file.settings).await?;
        }
        tried(&mut stack, (&script, &code), &args).await
    })
    .await;
    let answer = answer.map_err(|failure| stack.check().err().unwrap_or(failure));
    let logs = stack.functions_log().to_owned();
    stack.stop(if answer.is_ok() { Logs::Remove } else { Logs::Keep }).await;
    let answer = answer.inspect_err(|_| out::note(format_args!("the functions' log: {}", logs.display())))?;
    Ok(match answer {
        Some(Answer::Proven) => ExitCode::SUCCESS,
        Some(Answer::NotProven) => ExitCode::from(NOT_PROVEN),
        Some(Answer::Problem) | None => ExitCode::from(FAILED),
    })
}

/// The script that is tried.
struct Script {
    trial: OneTrial,
    /// The text of its files.
    source: String,
    library: Library,
    /// The metric that the sweep file names.
    metric: Option<String>,
}

impl Script {
    fn new(file: Option<&SweepFile>, command: &[String], code: &Path) -> Self {
        let trial = OneTrial::new(file, command);
        let source = trial.source(code);
        let metric = file.and_then(|file| file.metric.as_ref()).map(|metric| metric.name.clone());
        Self { trial, library: Library::of(&source), source, metric }
    }

    fn metric(&self) -> Option<&str> {
        self.metric.as_deref()
    }
}

async fn start(args: &TryOut, code: &Path) -> Result<Stack, Failure> {
    let installation = Installation::locate()?;
    clear_killed(&installation).await?;
    let ready = Ready::make(installation, &args.stack).await?;
    Stack::start(&ready, code, &args.stack).await
}

/// The folder of `--code`, of the file's `code`, or of the file.
fn code_folder(args: &TryOut, file: Option<&SweepFile>) -> Result<PathBuf, Failure> {
    let named = file.and_then(|file| file.settings.code.as_ref()?.folder()).map_or(".", |named| &named.folder);
    let own = args.sweep.as_ref().map(|file| below(file, named));
    let folder = args.code.clone().or(own).unwrap_or_else(|| ".".into());
    folder.canonicalize().context(|| format!("cannot find the code folder {}", folder.display()))
}

/// Tries the script, and prints the results. If the training ended too soon to show whether it goes on, it is tried
/// once more. Returns `None` if the file was rejected.
async fn tried(stack: &mut Stack, (script, code): (&Script, &Path), args: &TryOut) -> Result<Option<Answer>, Failure> {
    let began = Instant::now();
    let (metric, source) = (script.metric(), script.source.as_str());
    let Some(outcome) = once(stack, &script.trial, metric, (args.notice, args.limit.into())).await? else {
        return Ok(None);
    };
    tried_metrics::note(code, outcome.metrics.keys().cloned().collect());
    let seen = Trial::new(&outcome, metric, script.library);
    let made = Made::new((args, args.notice), (&script.trial, source), (&seen, outcome.end));
    let is_too_short = outcome.end == End::Over && !verdict(&seen.facts()).gaps.is_empty();
    let Some((trial, notice)) = made.for_longer().filter(|_| is_too_short) else {
        return report::print(&seen, &outcome, &made, Vec::new()).map(Some);
    };
    out::note(format_args!(
        "the training was over after {:.0} s: it is tried again with {}a notice of {notice} s",
        made.seconds(),
        made.change()
    ));
    let left = f64::from(args.limit) - began.elapsed().as_secs_f64();
    let Some(outcome) = once(stack, &trial, metric, (notice, left)).await? else { return Ok(None) };
    let problems = seen.problems();
    let seen = Trial::new(&outcome, metric, script.library);
    let made = Made::new((args, notice), (&trial, source), (&seen, outcome.end));
    report::print(&seen, &outcome, &made, problems).map(Some)
}

/// Makes one try with this notice, within so many seconds. Returns `None` if the file was rejected.
async fn once(
    stack: &mut Stack,
    trial: &OneTrial,
    metric: Option<&str>,
    (notice, limit): (u16, f64),
) -> Result<Option<Outcome>, Failure> {
    let s3 = spotsweep_aws::path_style_s3(stack.config());
    let upload = upload(BUCKET, Path::new(NAME))?;
    let dropped = Dropped::put_body(s3, upload, ByteStream::from(trial.text().into_bytes()), Given::default()).await?;
    let plan = match dropped.answer().await? {
        dropped::Answer::Planned(plan) => plan,
        dropped::Answer::Rejected(rejection) => {
            sweep_file::explain(&rejected(&rejection));
            return Ok(None);
        }
    };
    let sweep = plan.get("sweep").and_then(Value::as_str).and_then(SweepId::parse);
    let sweep = sweep.ok_or_else(|| Failure::new(format!("the plan names no sweep: {plan}")))?;
    let times = Times { notice: Duration::from_secs(notice.into()), limit };
    let mut outcome = watch(stack, &sweep, metric, times).await?;
    outcome.bucket = Bucket::of(stack, &sweep, &trial.outputs, outcome.end == End::Over).await?;
    Ok(Some(outcome))
}
