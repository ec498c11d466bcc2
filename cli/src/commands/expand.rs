//! `spotsweep expand`: prints the trials of a file, one after the other. Only one of them is in memory at a time, and
//! formats with columns go through them twice.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use spotsweep_report::csv_cell::csv_cell;
use spotsweep_sweep_file::SweepFile;

use crate::{out, show, sweep_file};
use spotsweep_protocol::failure::{FAILED, Failure};

/// `spotsweep expand`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep expand sweep.yaml
  spotsweep expand sweep.yaml --limit 10 --format table")]
pub(crate) struct Expand {
    /// The sweep file; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only the first N trials
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
    /// Stands for the upload's version, which seeds random sampling in files that fix no seed
    #[arg(long, value_name = "VERSION", default_value = "")]
    pub(crate) file_version: String,
}

/// How `expand` prints trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header
    Csv,
    /// Aligned columns
    Table,
}

/// Runs the command. The exit code is 1 for an invalid file.
pub(crate) fn run(args: &Expand) -> Result<ExitCode, Failure> {
    let file = match sweep_file::read(&args.file, &args.file_version)? {
        Ok(file) => file,
        Err(rejected) => {
            sweep_file::explain(&rejected);
            return Ok(ExitCode::from(FAILED));
        }
    };
    let limit = args.limit.unwrap_or(u64::MAX);
    match args.format {
        Format::Json => out::results(|to| json_lines(&file, limit, to)),
        Format::Csv => out::file(|to| csv_lines(&file, limit, to)),
        Format::Table => out::results(|to| table(&file, limit, to)),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The trials to print, with their indexes.
fn trials(file: &SweepFile, limit: u64) -> impl Iterator<Item = (u64, Map<String, Value>)> + '_ {
    (0..limit).zip(file.trials())
}

fn json_lines(file: &SweepFile, limit: u64, to: &mut dyn Write) -> io::Result<()> {
    trials(file, limit)
        .try_for_each(|(index, parameters)| writeln!(to, "{}", json!({ "index": index, "parameters": parameters })))
}

fn csv_lines(file: &SweepFile, limit: u64, to: &mut dyn Write) -> io::Result<()> {
    let columns = columns(file, limit);
    let mut csv = csv::Writer::from_writer(to);
    let names = columns.iter().map(|(name, _)| csv_cell(name).into_owned());
    csv.write_record(std::iter::once("index".to_owned()).chain(names)).map_err(as_io)?;
    for (index, parameters) in trials(file, limit) {
        let cells = cells(&columns, &parameters).map(|text| csv_cell(&text).into_owned());
        csv.write_record(std::iter::once(index.to_string()).chain(cells)).map_err(as_io)?;
    }
    csv.flush()
}

/// The I/O error beneath, which the csv crate's conversion would hide. A closed pipe must be recognized.
fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn table(file: &SweepFile, limit: u64, to: &mut dyn Write) -> io::Result<()> {
    let columns = columns(file, limit);
    let last = file.trial_count().min(limit).saturating_sub(1).to_string();
    let widths: Vec<usize> =
        std::iter::once(last.len().max("index".len())).chain(columns.iter().map(|(_, width)| *width)).collect();
    let names = std::iter::once("index").chain(columns.iter().map(|(name, _)| name.as_str()));
    show::row(to, &widths, names)?;
    for (index, parameters) in trials(file, limit) {
        show::row(to, &widths, std::iter::once(index.to_string()).chain(cells(&columns, &parameters)))?;
    }
    Ok(())
}

/// Every parameter in the order of its first appearance, with the width of its widest value.
fn columns(file: &SweepFile, limit: u64) -> Vec<(String, usize)> {
    let mut columns: Vec<(String, usize)> = Vec::new();
    for (_, parameters) in trials(file, limit) {
        for (name, value) in &parameters {
            let width = show::width(&show::line(show::text(value)));
            match columns.iter_mut().find(|(known, _)| known == name) {
                Some((_, widest)) => *widest = width.max(*widest),
                None => columns.push((name.clone(), width.max(show::width(&show::line(name))))),
            }
        }
    }
    columns
}

/// A trial's values in the order of the columns. They are empty where the trial has none.
fn cells<'a>(columns: &'a [(String, usize)], parameters: &'a Map<String, Value>) -> impl Iterator<Item = String> + 'a {
    columns.iter().map(|(name, _)| parameters.get(name).map_or_else(String::new, show::text))
}
