//! `spotsweep try`: one trial on this machine, interrupted at several moments.

mod attempt;
mod findings;
mod library;
mod lost;
mod moments;
mod one_trial;
mod report;
mod saves;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use serde_json::Value;
use spotsweep_local_stack::checkout::Checkout;
use spotsweep_local_stack::deploy::BUCKET;
use spotsweep_local_stack::stack::{Logs, Ready, Stack, StackOptions};
use spotsweep_protocol::failure::{Context, FAILED, Failure};
use spotsweep_protocol::ids::SweepId;
use spotsweep_sweep_file::SweepFile;

use crate::commands::local::clear_killed;
use crate::dropped::{Answer, Dropped, rejected, upload};
use crate::signals::unless_stopped;
use crate::{out, sweep_file};
use findings::Trial;
use library::Library;
use watch::{Outcome, Times, watch};

/// The name of the sweep file that is dropped.
const NAME: &str = "try.yaml";

/// `spotsweep try`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the first trial of FILE, or COMMAND, on the local stack. Takes its instance away in the first seconds, between two \
checkpoints with a notice, twice in a row, while it saves, and in evaluation. Each time it goes on as on AWS: \
in a new container, with the same volume. Exit code 1 with every problem, and how to fix it.

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
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u16).range(5..=120))]
    notice: u16,
    /// Stop after so many seconds, whatever was tried by then
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u32).range(10..))]
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

/// Exit code 0 only where the training goes on from each interruption.
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
    let code = code_folder(&args)?;
    let text = one_trial::text(file.as_ref(), &args.command);
    let library = library(&text, &code);
    args.stack.as_on_aws = true;
    let mut stack = unless_stopped(start(&args, &code)).await?;
    let outcome = unless_stopped(tried(&mut stack, &text, &args, file.as_ref())).await;
    let outcome = outcome.map_err(|failure| stack.check().err().unwrap_or(failure));
    let logs = stack.functions_log().to_owned();
    stack.stop(if outcome.is_ok() { Logs::Remove } else { Logs::Keep }).await;
    let outcome = outcome.inspect_err(|_| out::note(format_args!("the functions' log: {}", logs.display())))?;
    let Some(outcome) = outcome else { return Ok(ExitCode::from(FAILED)) };
    let metric = file.as_ref().and_then(|file| file.metric.as_ref()).map(|metric| metric.name.as_str());
    let metrics: Vec<String> = outcome.metrics.keys().cloned().collect();
    let lost = outcome.lost.models();
    let attempts: Vec<_> = outcome.attempts.values().cloned().collect();
    let trial = Trial { attempts: &attempts, metric, metrics: &metrics, lost: &lost, library };
    let is_sound = report::print(&trial, &outcome, (args.notice, args.hours))?;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

async fn start(args: &TryOut, code: &Path) -> Result<Stack, Failure> {
    let checkout = Checkout::locate()?;
    clear_killed(&checkout).await?;
    let ready = Ready::make(checkout, &args.stack).await?;
    Stack::start(&ready, code, &args.stack).await
}

fn code_folder(args: &TryOut) -> Result<PathBuf, Failure> {
    let own = args.sweep.as_ref().and_then(|file| file.parent()).filter(|parent| !parent.as_os_str().is_empty());
    let folder = args.code.as_deref().or(own).unwrap_or(Path::new("."));
    folder.canonicalize().context(|| format!("cannot find the code folder {}", folder.display()))
}

fn library(text: &str, code: &Path) -> Library {
    let sources = one_trial::scripts(text, code).into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    Library::of(&sources.collect::<String>())
}

/// `None` where the file was rejected.
async fn tried(
    stack: &mut Stack,
    text: &str,
    args: &TryOut,
    file: Option<&SweepFile>,
) -> Result<Option<Outcome>, Failure> {
    let s3 = spotsweep_aws::path_style_s3(stack.config());
    let upload = upload(BUCKET, Path::new(NAME))?;
    let dropped = Dropped::put_body(s3, upload, ByteStream::from(text.as_bytes().to_vec()), None).await?;
    let plan = match dropped.answer().await? {
        Answer::Planned(plan) => plan,
        Answer::Rejected(rejection) => {
            sweep_file::explain(&rejected(&rejection));
            return Ok(None);
        }
    };
    let sweep = plan.get("sweep").and_then(Value::as_str).and_then(SweepId::parse);
    let sweep = sweep.ok_or_else(|| Failure::new(format!("the plan names no sweep: {plan}")))?;
    let metric = file.and_then(|file| file.metric.as_ref()).map(|metric| metric.name.as_str());
    let times = Times { notice: Duration::from_secs(args.notice.into()), limit: args.limit.into() };
    watch(stack, &sweep, metric, times).await.map(Some)
}
