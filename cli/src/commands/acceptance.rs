//! `spotsweep acceptance`: runs four trials of its own on a real account, interrupts two of their instances, and compares
//! what happens with what this product assumes of AWS.

mod access;
mod chaos;
mod checks;
mod course;
mod estimate;
mod full;
mod injection;
mod meter;
mod own;
mod page;
mod preflight;
mod recording;
mod remove;
mod subject;
mod sweep;
mod written;

use std::path::PathBuf;
use std::process::ExitCode;

use self::subject::Subject;
use crate::signals::unless_stopped;
use crate::target;
use spotsweep_protocol::failure::Failure;

/// `spotsweep acceptance`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs a sweep of four trials of thirteen minutes on CPUs, has FIS interrupt one of its instances, terminates another one, \
and judges what happens. Before that it looks at the deployment as `doctor` does, at FIS and at the quota of Spot vCPUs. \
Another sweep must not be open meanwhile. It makes the CloudFormation stack STACK-acceptance (infra/chaos.yaml), and \
deletes that and its objects at the end, also after Ctrl-C.

Into DIR go acceptance.md and acceptance.json. They name resources of your account.

Examples:
  spotsweep acceptance --stack spotsweep
  spotsweep acceptance --stack spotsweep --queue my-cpu-queue --job-definition my-cpu-trial --max-usd 1
  spotsweep acceptance --stack spotsweep --queue my-two-gpu-queue --gpus --max-usd 10

Exit codes: 0 every assumption held. 1 one did not hold or was not seen. 2 wrong usage, or an expected cost above \
--max-usd.")]
pub(crate) struct Acceptance {
    /// The deployment's CloudFormation stack; without it the local stack is used where one is running
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK")]
    stack: Option<String>,
    /// Do not start a run that is expected to cost more, and end its jobs before they do
    #[arg(long, value_name = "USD", default_value_t = 2.0, value_parser = usd)]
    max_usd: f64,
    /// Queue of the trials [default: the deployment's]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Job definition of the trials, with a POSIX shell and the runner in its image [default: the deployment's]
    #[arg(long, value_name = "NAME")]
    job_definition: Option<String>,
    /// Have each trial ask for a GPU, and check that two trials on one instance have one each: for a queue whose instances
    /// have several
    #[arg(long)]
    gpus: bool,
    /// Where the page and the document go
    #[arg(long, value_name = "DIR", default_value = "acceptance")]
    output: PathBuf,
}

/// Parses a positive amount in USD.
fn usd(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
    amount.ok_or_else(|| "give an amount above zero, such as 2 or 0.5".to_owned())
}

/// Runs the command. The exit code is 1 if an assumption did not hold, or was not seen.
pub(super) async fn run(args: Acceptance) -> Result<ExitCode, Failure> {
    let find =
        async { Subject::find(target::stack(args.stack).await?, args.queue, args.job_definition, args.gpus).await };
    full::run(&unless_stopped(find).await?, args.max_usd, &args.output).await
}
