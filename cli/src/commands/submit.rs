//! `spotsweep submit`: a file into the bucket, and what becomes of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::dropped::{Answer, Dropped, problems};
use crate::signals::unless_stopped;
use crate::{out, sweep_file, target};
use spotsweep_protocol::failure::{FAILED, Failure};

/// `spotsweep submit`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --bucket the local stack is used where one is running.

Examples:
  spotsweep submit sweep.yaml
  spotsweep submit sweep.yaml --bucket my-sweeps")]
pub(crate) struct Submit {
    /// The sweep file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The control plane's bucket
    #[arg(long, env = "SPOTSWEEP_BUCKET", value_name = "BUCKET")]
    pub(crate) bucket: Option<String>,
    /// Print the plan as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Validates first: a file with mistakes is not uploaded.
pub(crate) async fn run(args: Submit) -> Result<ExitCode, Failure> {
    if args.file == Path::new("-") {
        return Err(Failure::usage("submit takes a file: its name becomes the sweep's"));
    }
    match sweep_file::read(&args.file, "")? {
        Ok(file) => sweep_file::warn(&file.warnings),
        Err(problems) => {
            sweep_file::explain(&problems);
            return Ok(ExitCode::from(FAILED));
        }
    }
    let target = target::bucket(args.bucket).await?;
    let answer = async {
        let dropped = Dropped::put(spotsweep_aws::path_style_s3(&target.config), &target.name, &args.file).await?;
        out::note(format_args!("uploaded to s3://{}, waiting for the plan …", target.name));
        dropped.answer().await
    };
    match unless_stopped(answer).await? {
        Answer::Planned(plan) if args.json => out::results(|to| writeln!(to, "{plan}"))?,
        Answer::Planned(plan) => {
            let sweep = plan.get("sweep").and_then(Value::as_str).unwrap_or_default();
            out::results(|to| writeln!(to, "{sweep}"))?;
            let trials = plan.get("trials").and_then(Value::as_u64).unwrap_or_default();
            out::note(format_args!("{trials} trials submitted; follow them with: spotsweep status {sweep}"));
        }
        Answer::Rejected(rejection) => {
            sweep_file::explain(&problems(&rejection));
            return Ok(ExitCode::from(FAILED));
        }
    }
    Ok(ExitCode::SUCCESS)
}
