//! `spotsweep ls`: every sweep of the control plane.

use std::process::ExitCode;

use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_control_plane::sweep::Sweep;

use crate::target::Table;
use crate::{out, show, target};
use spotsweep_protocol::failure::{Context, Failure};

/// `spotsweep ls`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  spotsweep ls --json")]
pub(crate) struct Ls {
    /// One line of JSON per sweep
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// Newest first.
pub(crate) async fn run(args: Ls) -> Result<ExitCode, Failure> {
    let target = target::table(args.table.name).await?;
    let cannot_read = || format!("cannot read the table {}", target.name);
    let sweeps = Reader::new(&target.config, target.name.clone()).sweeps().await.context(cannot_read)?;
    if args.json {
        out::results(|to| sweeps.iter().try_for_each(|sweep| writeln!(to, "{}", line(sweep))))?;
    } else if sweeps.is_empty() {
        out::note(format_args!("no sweeps yet"));
    } else {
        let header = ["SWEEP", "STAGE", "TRIALS", "FILE", "UPLOADED"].map(String::from);
        let rows: Vec<Vec<String>> = std::iter::once(header.into()).chain(sweeps.iter().map(row)).collect();
        out::results(|to| show::table(to, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A sweep as `--json` prints it; `trials` is null until the file has been read.
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

fn row(sweep: &Sweep) -> Vec<String> {
    let trials = sweep.plan.as_ref().map_or_else(String::new, |plan| plan.trials.to_string());
    let uploaded = sweep.upload.uploaded_at.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    vec![sweep.id.to_string(), sweep.stage.name().to_owned(), trials, sweep.upload.key.clone(), uploaded]
}
