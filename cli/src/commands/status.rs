//! `spotsweep status`: shows one sweep and its trials.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_ranking::{ranked, ranking};
use spotsweep_records::sweep::{Ranking, Sweep};
use spotsweep_records::trial::{JobStatus, Trial, fetching};
use spotsweep_report::diagnosis::{reason, why};
use spotsweep_report::warnings::texts;
use spotsweep_sweep_file::Warning;

use crate::commands::ls;
use crate::progress::Figures;
use crate::target::Table;
use crate::{out, show, sweeps};
use spotsweep_protocol::failure::Failure;
use spotsweep_protocol::words::{counted, dollars, figure, rounded};

/// `spotsweep status`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  spotsweep status digits-1a2b3c4d5e6f")]
pub(crate) struct Status {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    pub(crate) sweep: String,
    /// Print everything as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// Trials that are shown to people. `--json` lists all.
const SHOWN_TRIALS: usize = 50;

/// Runs the command. It fails if there is no such sweep.
pub(crate) async fn run(args: Status) -> Result<ExitCode, Failure> {
    let found = sweeps::find(args.table, &args.sweep).await?;
    let (sweep, trials) = (&found.sweep, found.trials().await?);
    let by = sweep.plan.as_ref().and_then(|plan| ranking(plan, &trials));
    let warnings = texts(sweep, &trials, Timestamp::now());
    if args.json {
        let status = as_json(sweep, &trials, &warnings);
        out::results(|to| writeln!(to, "{status}"))?;
    } else {
        let plan = sweep.plan.as_ref();
        let ranked = plan.map(|plan| ranked(plan, &trials)).unwrap_or_default();
        let rows = rows(&ranked.iter().map(|place| place.trial).collect::<Vec<_>>(), by.as_ref());
        out::results(|to| {
            writeln!(to, "{}: {} ({})", sweep.id, sweep.stage.name(), show::line(&sweep.upload.key))?;
            writeln!(to, "{}", Figures::of(plan, &trials))?;
            if let Some(spent) = sweep.spent {
                let kept = Some(spent.kept_usd).filter(|usd| *usd > 0.0).map(dollars);
                let kept = kept.map(|usd| format!(", {usd} of it for kept workspaces")).unwrap_or_default();
                writeln!(to, "{}{kept}", spent.sentence())?;
            }
            if let Some((count, fetch)) = fetching(&trials) {
                writeln!(to, "fetching data for {}: {fetch}", counted(count, "trial"))?;
            }
            if let Some(kept) = kept(&trials) {
                writeln!(to, "{kept}")?;
            }
            if let Some(stopped) = &sweep.stopped {
                writeln!(to, "no further attempt starts: {}", show::line(stopped))?;
            }
            for Warning(problem) in sweep.plan.iter().flat_map(|plan| &plan.warnings) {
                writeln!(to, "warning: line {} of the file: {}", problem.line, problem.message)?;
            }
            for warning in &warnings {
                writeln!(to, "warning: {}", show::line(warning))?;
            }
            writeln!(to)?;
            show::table(to, &rows)
        })?;
        if trials.len() > SHOWN_TRIALS {
            out::note(format_args!("and {} more; --json lists them all", trials.len() - SHOWN_TRIALS));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is kept and billed of ended trials, and until when.
fn kept(trials: &[Trial]) -> Option<String> {
    let kept = trials.iter().filter_map(|trial| trial.workspace.as_ref()?.kept());
    let until: Vec<Timestamp> = kept.map(|kept| kept.until).collect();
    let last = until.iter().max()?.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    let verb = if until.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} {verb} kept for `retry --continue`, until {last} at the latest",
        counted(until.len(), "workspace")
    ))
}

/// The line of `ls --json`, with counts and every trial that has had an event.
fn as_json(sweep: &Sweep, trials: &[Trial], warnings: &[String]) -> Value {
    let figures = Figures::of(sweep.plan.as_ref(), trials);
    let best = figures.best.as_ref().map(|best| best.json("index"));
    let more = json!({
        "waiting": figures.waiting,
        "starting": figures.starting,
        "running": figures.running,
        "succeeded": figures.succeeded,
        "failed": figures.failed,
        "cancelled": figures.cancelled,
        "stopped_early": figures.stopped,
        "best": best,
        "warnings": warnings,
        "file_warnings": sweep.plan.as_ref().map(|plan| &plan.warnings),
        "each": trials.iter().map(trial_json).collect::<Vec<_>>(),
    });
    let mut status = ls::line(sweep);
    if let (Some(status), Value::Object(more)) = (status.as_object_mut(), more) {
        status.extend(more);
    }
    status
}

fn trial_json(trial: &Trial) -> Value {
    json!({
        "index": trial.index,
        "status": trial.standing().name(),
        "attempts": trial.attempts.len(),
        "job": trial.job.to_string(),
        "reason": reason(trial),
        "notes": trial.notes(),
        "run_seconds": trial.run_seconds(),
        "metrics": trial.metrics,
    })
}

fn rows(trials: &[&Trial], by: Option<&Ranking>) -> Vec<Vec<String>> {
    let metric = by.map_or("METRIC", |by| by.name.as_str());
    let header = ["TRIAL", "STATE", "ATTEMPT", metric, "STEP", "ZONE", "INSTANCE", "NOTE"].map(String::from);
    let row = |trial: &&Trial| {
        let measured = by.and_then(|by| trial.metrics.get(&by.name));
        let attempt = trial.attempts.last_key_value();
        let of_attempt = |pick: fn(&spotsweep_records::trial::Attempt) -> &Option<String>| {
            attempt.and_then(|(_, attempt)| pick(attempt).clone()).unwrap_or_default()
        };
        vec![
            trial.index.to_string(),
            trial.standing().name().to_owned(),
            attempt.map_or_else(String::new, |(number, _)| number.to_string()),
            measured.map_or_else(String::new, |metric| rounded(metric.last, 5)),
            measured.and_then(|metric| metric.step).map_or_else(String::new, figure),
            of_attempt(|attempt| &attempt.zone),
            of_attempt(|attempt| &attempt.instance),
            note(trial),
        ]
    };
    std::iter::once(header.into()).chain(trials.iter().take(SHOWN_TRIALS).map(row)).collect()
}

/// Why a trial has failed. For other trials, the newest note about its checkpoints, such as one that could not be
/// loaded.
fn note(trial: &Trial) -> String {
    if trial.status != JobStatus::Failed {
        return trial.notes().pop().unwrap_or_default();
    }
    let kept = trial.kept_note().map(|kept| format!("; {kept}")).unwrap_or_default();
    why(trial) + &kept
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::metric::{Metric, Source};

    use super::*;
    use crate::live::samples::{attached, look, running};

    #[test]
    fn a_metric_that_never_appears_is_among_the_warnings() {
        let look = look(20, 24, Vec::new());
        let mut trial = running(0, "us-east-1a", 0);
        trial.metrics = [("loss".to_owned(), Metric::of(0.5, None, Source::Stated))].into();
        trial.attempt(1).sequence = Some(2);
        let trials = [trial];
        let warnings = texts(&look.sweep, &trials, look.at);
        assert!(
            warnings[0].starts_with("no trial has reported `accuracy` yet, in 2 reports of trial 0"),
            "{warnings:?}"
        );
        assert_eq!(as_json(&look.sweep, &trials, &warnings)["warnings"], json!(warnings));
    }

    #[test]
    fn a_checkpoint_that_could_not_be_loaded_is_shown_until_the_trial_has_failed() {
        let said = "attempt 2: epoch_3.pt could not be loaded (exit code 1); went back to epoch_2.pt";
        let mut trial = running(0, "us-east-1a", 0);
        assert_eq!(note(&trial), "");
        let workspace = trial.workspace.insert(attached("us-east-1a"));
        workspace.notes = vec!["started from snap-1".to_owned(), said.to_owned()];
        assert_eq!(rows(&[&trial], None)[1].last().map(String::as_str), Some(said));
        assert_eq!(trial_json(&trial)["notes"][1], said);
        trial.status = JobStatus::Failed;
        trial.reason = Some("exit code 1".to_owned().into());
        assert_eq!(note(&trial), "exit code 1");
    }
}
