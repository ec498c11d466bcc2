//! `cargo run --release --bin bench` compares the product with what people use instead (the peer, in the same run), or
//! with what is possible (the limit). It prints a table, and writes `bench/results.json` into the target folder.
//!
//! `-- --only cold-start,submit` selects measurements, and `-- --quick` repeats them less often. `-- --binaries FOLDER`
//! uses the programs in a folder instead of building them. The exit code is 1 if a function's zip or memory exceeds its
//! target, because sizes, unlike times, do not depend on the machine's load.

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
