//! `spotsweep submit`: uploads a file to the bucket, and shows the answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};
use spotsweep_records::sweep::upload::Given;
use spotsweep_sweep_file::{Code, Warning, variable_problem};

use crate::dropped::{Answer, Dropped, rejected};
use crate::signals::unless_stopped;
use crate::{code_folder, out, sweep_file, target};
use spotsweep_protocol::claim::Environment;
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::counted;

/// The most bytes of variables. S3 takes 2 KB of metadata, with the keys and the other values
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
const MOST_ENV_BYTES: usize = 1800;

/// `spotsweep submit`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --bucket the local stack is used where one is running.

Examples:
  spotsweep submit sweep.yaml
  spotsweep submit sweep.yaml --bucket my-sweeps
  spotsweep submit sweep.yaml --trials 20       20 trials, whatever `run_cap` says
  spotsweep submit sweep.yaml --env WANDB_PROJECT=mine")]
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
    /// An environment variable of the trainings, in place of the file's own; without a value, that of this shell
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Send more than 100 MiB of code without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print the plan as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command. It validates the file first, and does not upload one with mistakes.
pub(crate) async fn run(args: Submit) -> Result<ExitCode, Failure> {
    if args.file == Path::new("-") {
        return Err(Failure::usage("submit takes a file: its name becomes the sweep's"));
    }
    let file = match sweep_file::read_with(&args.file, "", args.trials)? {
        Ok(file) if args.trials.is_some_and(|most| file.trial_count() > most) => {
            let count = counted(file.trial_count(), "trial");
            return Err(Failure::usage(format!(
                "--trials limits a grid or a random search; the file lists {count}: shorten the list"
            )));
        }
        Ok(file) => file,
        Err(rejected) => {
            sweep_file::explain(&rejected);
            return Ok(ExitCode::from(FAILED));
        }
    };
    let shown = file.warnings;
    sweep_file::warn(&shown);
    let env = variables(&args.env, &file.settings.secrets, &|name| std::env::var(name).ok())?;
    let folder = file.settings.code.as_ref().and_then(Code::folder);
    let code = folder.map(|folder| code_folder::look(&args.file, folder)).transpose()?;
    let target = target::bucket(args.bucket).await?;
    let s3 = spotsweep_aws::path_style_s3(&target.config);
    let dropped = unless_stopped(async {
        let code = match &code {
            Some(found) => Some(found.send(&s3, &target.name, args.yes).await?),
            None => None,
        };
        let run_cap = args.trials.map(|trials| trials.to_string());
        Dropped::put(s3.clone(), &target.name, &args.file, Given { run_cap, code, env }).await
    })
    .await?;
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

/// The variables of `--env` as the object's metadata. `own` reads those of this shell.
fn variables(
    words: &[String],
    secrets: &BTreeMap<String, String>,
    own: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let mut variables = Environment::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), own(word)),
        };
        let unset = || Failure::usage(format!("--env {name}: this shell has no such variable; write {name}=VALUE"));
        let value = value.ok_or_else(unset)?;
        if let Some((message, help)) = variable_problem(name, &value) {
            return Err(Failure::usage(format!("--env: {message}; {help}")));
        }
        if secrets.contains_key(name) {
            return Err(Failure::usage(format!(
                "--env {name}: the file has it in `secrets`; leave out one of the two"
            )));
        }
        variables.insert(name.to_owned(), value);
    }
    if variables.is_empty() {
        return Ok(None);
    }
    let written = ascii(&json!(variables).to_string());
    if written.len() > MOST_ENV_BYTES {
        let message = format!("--env: {} bytes of variables, and {MOST_ENV_BYTES} are the most", written.len());
        return Err(Failure::usage(format!("{message}: write them into the file, under `spotsweep: {{env: …}}`")));
    }
    Ok(Some(written))
}

/// JSON with escapes for everything outside of ASCII, which an object's metadata cannot have.
fn ascii(json: &str) -> String {
    let mut units = [0; 2];
    let mut escaped = String::new();
    for letter in json.chars() {
        if letter.is_ascii() {
            escaped.push(letter);
        } else {
            letter.encode_utf16(&mut units).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        }
    }
    escaped
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
