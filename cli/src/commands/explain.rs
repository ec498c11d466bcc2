//! `spotsweep explain`: what happened to one trial, and why.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;
use spotsweep_aws::Reader;
use spotsweep_control_plane::store;
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::ids::SweepId;

use crate::target::Table;
use crate::timeline::History;
use crate::{out, sweeps, target};
use spotsweep_protocol::failure::{Context, Failure};

/// `spotsweep explain`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep explain digits-1a2b3c4d5e6f 7
  spotsweep explain digits-1a2b3c4d5e6f 7 --kept out    after spotsweep demo --keep out")]
pub(crate) struct Explain {
    /// The sweep's id, as `ls` and `submit` print it
    #[arg(value_name = "SWEEP")]
    pub(crate) sweep: String,
    /// The trial's index within the sweep, from 0
    #[arg(value_name = "INDEX")]
    pub(crate) index: u32,
    /// Print everything as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read the copy of the table that `demo --keep DIR` made
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub(crate) kept: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// Fails for a trial that is not there.
pub(crate) async fn run(args: Explain) -> Result<ExitCode, Failure> {
    let id = sweeps::id(&args.sweep)?;
    let history = match &args.kept {
        Some(folder) => kept(&folder.join("table.jsonl"), &id, args.index)?,
        None => stored(args.table, &id, args.index).await?,
    };
    let history = history.ok_or_else(|| {
        Failure::new(format!(
            "trial {} of {id} has no record: no such sweep or index, or the trial has not started yet; `spotsweep \
             status {id}` lists those that have",
            args.index
        ))
    })?;
    out::results(|to| if args.json { writeln!(to, "{}", history.json()) } else { write!(to, "{}", history.text()) })?;
    Ok(ExitCode::SUCCESS)
}

async fn stored(table: Table, sweep: &SweepId, index: u32) -> Result<Option<History>, Failure> {
    let target = target::table(table.name).await?;
    let reader = Reader::new(&target.config, target.name.clone());
    read(&reader, sweep, index).await
}

/// A trial's record and history, as the table has them.
pub(crate) async fn read(reader: &Reader, sweep: &SweepId, index: u32) -> Result<Option<History>, Failure> {
    let cannot_read = || format!("cannot read trial {index} of {sweep}");
    let Some(trial) = reader.trial(sweep, index).await.context(cannot_read)? else { return Ok(None) };
    let entries = reader.history(sweep, Some(index)).await.context(cannot_read)?;
    Ok(Some(History { trial, entries }))
}

/// One line of `table.jsonl`, as far as it matters here.
#[derive(Deserialize)]
struct Row {
    pk: String,
    sk: String,
    record: Option<Value>,
    #[serde(default)]
    history: store::History,
}

/// The same from the table's copy that `demo --keep` makes.
fn kept(path: &Path, sweep: &SweepId, index: u32) -> Result<Option<History>, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::usage(format!("cannot read {}: name the folder that `demo --keep` made", path.display()))
            .caused_by(error)
    })?;
    let malformed = |line: usize| move || format!("{}:{}: not a row of the table", path.display(), line + 1);
    let (pk, record, log) = (format!("SWEEP#{sweep}"), format!("TRIAL#{index:06}"), format!("LOG#{index:06}#"));
    let (mut trial, mut entries) = (None, store::History::new());
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.context(|| format!("cannot read {}", path.display()))?;
        let row: Row = serde_json::from_str(&line).context(malformed(number))?;
        if row.pk != pk {
            continue;
        }
        if row.sk == record {
            let held = row.record.unwrap_or_default();
            trial = Some(serde_json::from_value::<Trial>(held).context(malformed(number))?);
        } else if !row.sk.starts_with(&log) {
            continue;
        }
        entries.extend(row.history);
    }
    Ok(trial.map(|trial| History { trial, entries: entries.into_values().collect() }))
}
