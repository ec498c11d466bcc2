//! `spotsweep ls`: lists every sweep of the control plane.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use spotsweep_aws::{ReadError, Reader};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::{Stage, Sweep};

use crate::progress::Figures;
use crate::target::Table;
use crate::{out, show, target};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::dollars;

/// Sweeps whose progress is read.
const MOST_OPEN: usize = 20;

/// `spotsweep ls`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
PROGRESS is trials that have ended, of the newest 20 sweeps that are not over.\n\nExample:\n  spotsweep ls --json")]
pub(crate) struct Ls {
    /// One line of JSON per sweep
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// Runs the command. The newest sweep comes first.
pub(crate) async fn run(args: Ls) -> Result<ExitCode, Failure> {
    let target = target::table(args.table.name).await?;
    let cannot_read = || format!("cannot read the table {}", target.name);
    let reader = Reader::new(&target.config, target.name.clone());
    let sweeps = reader.sweeps().await.context(cannot_read)?;
    let progress = progress(&reader, &sweeps).await.context(cannot_read)?;
    if args.json {
        out::results(|to| sweeps.iter().try_for_each(|sweep| writeln!(to, "{}", with_progress(sweep, &progress))))?;
    } else if sweeps.is_empty() {
        out::note(format_args!("no sweeps yet"));
    } else {
        let header = ["SWEEP", "STAGE", "TRIALS", "PROGRESS", "COST", "FILE", "UPLOADED"].map(String::from);
        let rows = sweeps.iter().map(|sweep| row(sweep, progress.get(&sweep.id)));
        let rows: Vec<Vec<String>> = std::iter::once(header.into()).chain(rows).collect();
        out::results(|to| show::table(to, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Progress of the newest sweeps that have not ended. Each one costs a Query of its trials.
async fn progress(reader: &Reader, sweeps: &[Sweep]) -> Result<BTreeMap<SweepId, Figures>, ReadError> {
    let is_open = |sweep: &&Sweep| !matches!(sweep.stage, Stage::Settled | Stage::Rejected);
    let mut progress = BTreeMap::new();
    for sweep in sweeps.iter().filter(is_open).take(MOST_OPEN) {
        let Some(plan) = &sweep.plan else { continue };
        let trials = reader.trials(&sweep.id).await?;
        progress.insert(sweep.id.clone(), Figures::counts(plan.trials.into(), &trials));
    }
    Ok(progress)
}

fn with_progress(sweep: &Sweep, progress: &BTreeMap<SweepId, Figures>) -> Value {
    let mut line = line(sweep);
    line["progress"] = progress.get(&sweep.id).map_or(Value::Null, |figures| {
        let Figures { waiting, starting, running, succeeded, failed, cancelled, stopped, .. } = figures;
        json!({ "waiting": waiting, "starting": starting, "running": running, "succeeded": succeeded,
            "failed": failed, "cancelled": cancelled, "stopped_early": stopped })
    });
    line
}

/// A sweep as `--json` prints it. `trials` is null until the file has been read.
pub(crate) fn line(sweep: &Sweep) -> Value {
    json!({
        "sweep": sweep.id.as_str(),
        "stage": sweep.stage.name(),
        "trials": sweep.plan.as_ref().map(|plan| plan.trials),
        "bucket": sweep.upload.bucket,
        "key": sweep.upload.key,
        "uploaded_at": sweep.upload.uploaded_at.to_string(),
        "usd": sweep.spent.map(|spent| spent.usd),
        "on_demand_usd": sweep.spent.map(|spent| spent.on_demand_usd),
        "warnings": sweep.warnings,
        "stopped": sweep.stopped.as_ref().map(ToString::to_string),
    })
}

fn row(sweep: &Sweep, progress: Option<&Figures>) -> Vec<String> {
    let trials = sweep.plan.as_ref().map_or_else(String::new, |plan| plan.trials.to_string());
    let uploaded = sweep.upload.uploaded_at.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    let progress = progress.map_or_else(String::new, ended);
    let cost = sweep.spent.filter(|spent| spent.usd > 0.0).map_or_else(String::new, |spent| dollars(spent.usd));
    vec![
        sweep.id.to_string(),
        sweep.stage.name().to_owned(),
        trials,
        progress,
        cost,
        sweep.upload.key.clone(),
        uploaded,
    ]
}

/// Text such as `12 of 24, 1 failed`.
fn ended(figures: &Figures) -> String {
    let Figures { trials, succeeded, failed, cancelled, .. } = figures;
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{} of {trials}{failed}", succeeded + figures.failed + cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_what_has_ended() {
        let figures = Figures { trials: 24, succeeded: 11, failed: 1, running: 2, ..Figures::default() };
        assert_eq!(ended(&figures), "12 of 24, 1 failed");
        assert_eq!(ended(&Figures { failed: 0, ..figures }), "11 of 24");
    }
}
