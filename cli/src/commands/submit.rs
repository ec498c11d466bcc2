//! `spotsweep submit`: uploads a file to the bucket, and shows the answer.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;
use spotsweep_sweep_file::Warning;

use crate::dropped::{Answer, Dropped, rejected};
use crate::signals::unless_stopped;
use crate::{out, sweep_file, target};
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::counted;

/// `spotsweep submit`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --bucket the local stack is used where one is running.

Examples:
  spotsweep submit sweep.yaml
  spotsweep submit sweep.yaml --bucket my-sweeps
  spotsweep submit sweep.yaml --trials 20       20 trials, whatever `run_cap` says")]
pub(crate) struct Submit {
    /// The sweep file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The control plane's bucket
    #[arg(long, env = "SPOTSWEEP_BUCKET", value_name = "BUCKET")]
    pub(crate) bucket: Option<String>,
    /// Number of trials of a random search, or the most of a grid, in place of the file's `run_cap`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) trials: Option<u64>,
    /// Print the plan as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command. It validates the file first, and does not upload one with mistakes.
pub(crate) async fn run(args: Submit) -> Result<ExitCode, Failure> {
    if args.file == Path::new("-") {
        return Err(Failure::usage("submit takes a file: its name becomes the sweep's"));
    }
    let shown = match sweep_file::read_with(&args.file, "", args.trials)? {
        Ok(file) if args.trials.is_some_and(|most| file.trial_count() > most) => {
            let count = counted(file.trial_count(), "trial");
            return Err(Failure::usage(format!(
                "--trials limits a grid or a random search; the file lists {count}: shorten the list"
            )));
        }
        Ok(file) => file.warnings,
        Err(rejected) => {
            sweep_file::explain(&rejected);
            return Ok(ExitCode::from(FAILED));
        }
    };
    sweep_file::warn(&shown);
    let target = target::bucket(args.bucket).await?;
    let s3 = spotsweep_aws::path_style_s3(&target.config);
    let dropped = unless_stopped(Dropped::put(s3, &target.name, &args.file, args.trials)).await?;
    out::note(format_args!("uploaded to s3://{}, waiting for the plan …", target.name));
    match dropped.answer_unless_stopped().await? {
        Answer::Planned(plan) if args.json => out::results(|to| writeln!(to, "{plan}"))?,
        Answer::Planned(plan) => {
            sweep_file::warn(&further(&plan, &shown));
            let sweep = plan.get("sweep").and_then(Value::as_str).unwrap_or_default();
            out::results(|to| writeln!(to, "{sweep}"))?;
            let trials = counted(plan.get("trials").and_then(Value::as_u64).unwrap_or_default(), "trial");
            out::note(format_args!("{trials} submitted; follow with: spotsweep watch {sweep}"));
        }
        Answer::Rejected(rejection) => {
            sweep_file::explain(&rejected(&rejection));
            return Ok(ExitCode::from(FAILED));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Warnings of the plan that were not shown before: the deployment has defaults of its own.
fn further(plan: &Value, shown: &[Warning]) -> Vec<Warning> {
    let planned: Vec<Warning> = plan.get("warnings").and_then(|all| Vec::deserialize(all).ok()).unwrap_or_default();
    let is_shown = |Warning(new): &Warning| {
        shown.iter().any(|Warning(held)| (held.line, &held.message) == (new.line, &new.message))
    };
    planned.into_iter().filter(|warning| !is_shown(warning)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_the_deployment_warns_of_is_shown() {
        let text = b"method: random\nprogram: train.py\nparameters: {lr: {min: 0.1, max: 0.2}}\n";
        let shown = spotsweep_sweep_file::parse("a.yaml", "", text).unwrap().warnings;
        assert!(!shown.is_empty());
        let defaults = spotsweep_sweep_file::Defaults { trials: 7, ..Default::default() };
        let planned = spotsweep_sweep_file::parse_with("sweeps/a.yaml", "v", text, &defaults).unwrap().warnings;
        assert!(further(&json!({ "warnings": shown }), &shown).is_empty());
        assert_eq!(further(&json!({ "warnings": planned }), &shown).len(), 1);
        assert!(further(&json!({}), &shown).is_empty());
    }
}
