//! `spotsweep submit`: a file into the bucket, and what becomes of it.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::args::Submit;
use crate::dropped::{Answer, Dropped, problems};
use crate::failure::{FAILED, Failure};
use crate::signals::unless_stopped;
use crate::{out, sdk, sweep_file, target};

/// Validates first: a file with mistakes is not uploaded.
pub(crate) async fn run(args: Submit) -> Result<ExitCode, Failure> {
    if args.file == Path::new("-") {
        return Err(Failure::usage("submit takes a file: its name becomes the sweep's"));
    }
    if let Err(problems) = sweep_file::read(&args.file, "")? {
        sweep_file::explain(&problems);
        return Ok(ExitCode::from(FAILED));
    }
    let target = target::bucket(args.bucket).await?;
    let answer = async {
        let dropped = Dropped::put(sdk::s3(&target.config), &target.name, &args.file).await?;
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
