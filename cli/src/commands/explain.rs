//! `spotsweep explain`: shows what happened to one trial, and why.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;
use spotsweep_aws::Reader;
use spotsweep_control_plane::store;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;

use crate::target::Table;
use crate::timeline::History;
use crate::{out, sweeps};
use spotsweep_protocol::failure::{Context, Failure};

/// `spotsweep explain`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep explain digits-1a2b3c4d5e6f 7
  spotsweep explain digits-1a2b3c4d5e6f 7 --verbose    every attempt and every event
  spotsweep explain digits-1a2b3c4d5e6f 7 --kept out    after spotsweep demo --keep out")]
pub(crate) struct Explain {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    pub(crate) sweep: String,
    /// The trial's index within the sweep, from 0
    #[arg(value_name = "INDEX")]
    pub(crate) index: u32,
    /// Show every attempt and every event too
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print everything as one line of JSON
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) json: bool,
    /// Read the copy of the table that `demo --keep DIR` made
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub(crate) kept: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// Runs the command. It fails if there is no such trial.
pub(crate) async fn run(args: Explain) -> Result<ExitCode, Failure> {
    let (id, history) = match &args.kept {
        Some(folder) => kept(&folder.join("table.jsonl"), &args.sweep, args.index)?,
        None => stored(args.table, &args.sweep, args.index).await?,
    };
    let history = history.ok_or_else(|| {
        Failure::new(format!(
            "trial {} of {id} has no record: no such sweep or index, or the trial has not started yet; `spotsweep \
             status {id}` lists those that have",
            args.index
        ))
    })?;
    out::results(|to| match (args.json, args.verbose) {
        (true, _) => writeln!(to, "{}", history.json()),
        (false, false) => write!(to, "{}", history.brief()),
        (false, true) => write!(to, "{}", history.text()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A sweep's id, and the history of one of its trials if that has a record.
type Found = (SweepId, Option<History>);

async fn stored(table: Table, sweep: &str, index: u32) -> Result<Found, Failure> {
    let found = sweeps::find(table, sweep).await?;
    let history = read(&found.reader, &found.sweep.id, index).await?;
    let metric = metric(&found.sweep);
    Ok((found.sweep.id, history.map(|history| History { metric, ..history })))
}

fn metric(sweep: &Sweep) -> Option<String> {
    sweep.plan.as_ref()?.metric.as_ref().map(|by| by.name.clone())
}

/// Reads a trial's record and history from the table.
pub(crate) async fn read(reader: &Reader, sweep: &SweepId, index: u32) -> Result<Option<History>, Failure> {
    let cannot_read = || format!("cannot read trial {index} of {sweep}");
    let Some(trial) = reader.trial(sweep, index).await.context(cannot_read)? else { return Ok(None) };
    let entries = reader.history(sweep, Some(index)).await.context(cannot_read)?;
    Ok(Some(History { trial, entries, metric: None }))
}

/// The fields of a line of `table.jsonl` that are needed here.
#[derive(Deserialize)]
struct Row {
    pk: String,
    sk: String,
    record: Option<Value>,
    #[serde(default)]
    history: store::History,
}

/// Reads them from the copy of the table that `demo --keep` makes.
fn kept(path: &Path, wanted: &str, index: u32) -> Result<Found, Failure> {
    let mut sweeps = Vec::new();
    each_row(path, |row| {
        if row.sk == "META" {
            sweeps.push(serde_json::from_value::<Sweep>(row.record.unwrap_or_default())?);
        }
        Ok(())
    })?;
    sweeps.sort_by_key(|sweep| std::cmp::Reverse(sweep.upload.uploaded_at));
    let sweep = sweeps::chosen(wanted, sweeps)?;
    let (sweep, metric) = (sweep.id.clone(), metric(&sweep));
    let (pk, record, log) = (format!("SWEEP#{sweep}"), format!("TRIAL#{index:06}"), format!("LOG#{index:06}#"));
    let (mut trial, mut entries) = (None, store::History::new());
    each_row(path, |row| {
        if row.pk == pk && row.sk == record {
            trial = Some(serde_json::from_value::<Trial>(row.record.unwrap_or_default())?);
            entries.extend(row.history);
        } else if row.pk == pk && row.sk.starts_with(&log) {
            entries.extend(row.history);
        }
        Ok(())
    })?;
    Ok((sweep, trial.map(|trial| History { trial, entries: entries.into_values().collect(), metric })))
}

/// Reads a copy of a table row by row.
fn each_row(path: &Path, mut take: impl FnMut(Row) -> Result<(), serde_json::Error>) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::usage(format!("cannot read {}: name the folder that `demo --keep` made", path.display()))
            .caused_by(error)
    })?;
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.context(|| format!("cannot read {}", path.display()))?;
        let taken = serde_json::from_str(&line).and_then(&mut take);
        taken.context(|| format!("{}:{number}: not a row of the table", path.display()))?;
    }
    Ok(())
}
