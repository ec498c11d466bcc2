//! `spotsweep cost`: what a sweep has cost so far, and what it would have cost on demand.

use std::process::ExitCode;

use serde_json::Value;
use spotsweep_records::sweep::spent::Spent;

use crate::target::Table;
use crate::{out, show, sweeps};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::dollars;

/// Number of trials that are shown to people, most expensive first. `--json` lists all.
const SHOWN_TRIALS: usize = 20;

/// `spotsweep cost`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Updated every 10–15 min while the sweep runs, and at its end: each attempt from its container's \
start to its end at the spot price of its zone at the time, volumes and snapshots, and an estimate for the control \
plane. Boot, image pull and idle time of instances are not in it, nor are S3, logs and data transfer.

Examples:
  spotsweep cost digits-1a2b3c4d5e6f
  spotsweep cost digits-1a2b3c4d5e6f --json | jq .saving")]
pub(crate) struct Cost {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// Print the sweep's costs.json as it is: one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: Table,
}

/// Runs the command. It fails if no costs are known yet.
pub(super) async fn run(args: Cost) -> Result<ExitCode, Failure> {
    let found = sweeps::find(args.table, &args.sweep).await?;
    let key = format!("{}costs.json", found.sweep.id.results_prefix());
    let read = found.read(&key).await?.ok_or_else(|| {
        let (sweep, stage) = (&found.sweep.id, found.sweep.stage.name());
        Failure::new(format!("no costs yet: updated every 10–15 min and at the end; {sweep} is {stage}"))
    })?;
    let unreadable = || format!("s3://{}/{key} is not what spotsweep writes", found.bucket());
    let costs: Value = serde_json::from_slice(&read).context(unreadable)?;
    if args.json {
        out::results(|to| writeln!(to, "{costs}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let spent: Spent = serde_json::from_value(costs["spent"].clone()).context(unreadable)?;
    let rows = by_cost(&costs);
    out::results(|to| {
        writeln!(to, "{}, as of {}", found.sweep.id, costs["at"].as_str().unwrap_or("?"))?;
        show::table(to, &totals(&spent))?;
        writeln!(to)?;
        show::table(to, &rows)
    })?;
    if spent.unpriced_seconds > 0.0 {
        let seconds = spent.unpriced_seconds;
        out::note(format_args!("{seconds:.0} s of attempts have no known price and are in none of these figures"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What was paid for each part, and the comparison.
fn totals(spent: &Spent) -> Vec<Vec<String>> {
    let instances = spent.usd - spent.storage_usd - spent.control_plane_usd;
    let mut rows = vec![
        ("instances", dollars(instances)),
        ("EBS", dollars(spent.storage_usd)),
        ("control plane, estimated", dollars(spent.control_plane_usd)),
        ("in all", dollars(spent.usd)),
        ("on demand", dollars(spent.on_demand_usd)),
    ];
    if spent.kept_usd > 0.0 {
        rows.insert(2, ("of it, kept workspaces", dollars(spent.kept_usd)));
    }
    if spent.initialization_usd > 0.0 {
        rows.insert(2, ("of it, initialization rates", dollars(spent.initialization_usd)));
    }
    if let Some(saving) = spent.saving() {
        rows.push(("saving", format!("{:.1} %", saving * 100.0)));
    }
    rows.into_iter().map(|(what, much)| vec![what.to_owned(), much]).collect()
}

fn by_cost(costs: &Value) -> Vec<Vec<String>> {
    let part = |trial: &Value, name: &str| trial[name].as_f64().unwrap_or(0.0);
    let paid = |trial: &Value| part(trial, "instance_usd") + part(trial, "storage_usd");
    let mut trials: Vec<&Value> = costs["trials"].as_array().into_iter().flatten().collect();
    trials.sort_by(|left, right| paid(right).total_cmp(&paid(left)));
    let header = ["TRIAL", "INSTANCES", "EBS", "ON DEMAND"].map(String::from);
    let row = |trial: &&Value| {
        let much = |name| dollars(part(trial, name));
        vec![trial["index"].to_string(), much("instance_usd"), much("storage_usd"), much("on_demand_usd")]
    };
    std::iter::once(header.into()).chain(trials.iter().take(SHOWN_TRIALS).map(row)).collect()
}
