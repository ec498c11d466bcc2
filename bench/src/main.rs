//! `cargo run --release --bin bench`: measures the product against what people use instead (the peer, in the same run) or
//! against what is possible (the limit), prints a table, and writes `bench/results.json` into the target folder.
//!
//! `-- --only cold-start,submit` picks measurements, `-- --quick` repeats them less often, `-- --binaries FOLDER`
//! takes the product's programs from there instead of building them. Its exit code is 1 where a function's zip or memory
//! is over its target: sizes, unlike seconds, do not depend on the machine's mood.

mod cold_start;
mod cost;
mod row;
mod setup;
mod status;
mod submit;
mod table;
mod track;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};

use row::Row;
use setup::Setup;

/// Measures spotsweep against what people use instead, and against what is possible.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only these, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// Takes the product's programs from this folder instead of building them
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<std::path::PathBuf>,
    /// Repeats less often
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measurement {
    ColdStart,
    Submit,
    Track,
    Status,
    Cost,
}

impl Measurement {
    async fn rows(self, setup: &Setup) -> Vec<Row> {
        match self {
            Self::ColdStart => cold_start::rows(setup).await,
            Self::Submit => submit::rows(setup).await,
            Self::Track => track::rows(setup).await,
            Self::Status => status::rows(setup).await,
            Self::Cost => cost::rows(setup).await,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let setup = Setup::prepare(arguments.binaries, arguments.quick).await;
    let mut all = Vec::new();
    for measurement in Measurement::value_variants() {
        if !(arguments.only.is_empty() || arguments.only.contains(measurement)) {
            continue;
        }
        let begun = Instant::now();
        let rows = measurement.rows(&setup).await;
        table::print(measurement, &rows, begun.elapsed());
        all.extend(rows);
    }
    table::write(&setup.folder, &all);
    let is_too_large = |row: &Row| row.unit == cold_start::SIZE && row.met() == Some(false);
    if all.iter().any(is_too_large) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
