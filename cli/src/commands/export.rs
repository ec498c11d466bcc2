//! `spotsweep export`: writes a sweep's records for other programs.

mod document;
mod mlflow;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Map, Value};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_ranking::ranking;
use spotsweep_records::sweep::{Plan, Ranking, Sweep};
use spotsweep_records::trial::Trial;

use crate::sweeps::Found;
use crate::target::Table;
use crate::{out, save, sweeps};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::counted;

/// `spotsweep export`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
json and mlflow work while the sweep runs, too, with what is known by then. MLflow 3 reads such a folder only with \
MLFLOW_ALLOW_FILE_STORE=true, or after `mlflow migrate-filestore --source mlruns --target sqlite:///mlflow.db`.

Examples:
  spotsweep export digits-1a2b3c4d5e6f --format csv --to leaderboard.csv
  spotsweep export digits-1a2b3c4d5e6f --format json | jq '.trials[] | {index, status, parameters}'
  spotsweep export digits-1a2b3c4d5e6f --format mlflow --to mlruns")]
pub(crate) struct Export {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// What to write
    #[arg(long, value_enum)]
    format: Format,
    /// Where it goes [default: standard output; for mlflow the folder mlruns]
    #[arg(long, value_name = "PATH")]
    to: Option<PathBuf>,
    #[command(flatten)]
    table: Table,
}

/// Format of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The leaderboard, once the sweep has settled: a row a trial, best first
    Csv,
    /// One document: every trial's parameters, metrics and attempts
    Json,
    /// A folder that MLflow's file store reads: an experiment, a run a trial, metrics step by step
    Mlflow,
}

/// The records that are written.
struct Records<'a> {
    sweep: &'a Sweep,
    plan: &'a Plan,
    trials: &'a [Trial],
    by: Option<Ranking>,
    lines: &'a [u8],
}

/// A trial: its index, its parameters and, if it has started, its record.
type Each<'a> = (u32, Map<String, Value>, Option<&'a Trial>);

impl Records<'_> {
    /// Every trial of the plan.
    fn each(&self) -> impl Iterator<Item = Result<Each<'_>, Failure>> {
        let lines = self.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut records = self.trials.iter().peekable();
        lines.map(move |line| {
            let line: Result<TrialLine, _> = serde_json::from_slice(line);
            let TrialLine { index, parameters } =
                line.context(|| "trials.jsonl is not what sweep-upload has written")?;
            // Plan and records are both ordered by index.
            Ok((index, parameters, records.next_if(|trial| trial.index == index)))
        })
    }
}

/// Runs the command. It fails if the sweep has no trials, or if a folder would be overwritten.
pub(super) async fn run(args: Export) -> Result<ExitCode, Failure> {
    export(args).await.map(|()| ExitCode::SUCCESS)
}

async fn export(args: Export) -> Result<(), Failure> {
    let found = sweeps::find(args.table, &args.sweep).await?;
    let (plan, to) = (found.plan()?, args.to.as_deref());
    if args.format == Format::Csv {
        return write(to, &leaderboard(&found).await?);
    }
    let (trials, lines) = (found.trials().await?, found.parameters().await?);
    let records = Records { sweep: &found.sweep, plan, trials: &trials, by: ranking(plan, &trials), lines: &lines };
    if args.format == Format::Json {
        let document = serde_json::to_vec_pretty(&document::of(&records)?).context(|| "cannot write JSON")?;
        return write(to, &[document.as_slice(), b"\n"].concat());
    }
    let folder = to.unwrap_or(Path::new("mlruns"));
    let experiment = mlflow::write(&found, &records, folder).await?;
    let (runs, path) = (counted(plan.trials, "run"), folder.display());
    out::note(format_args!(
        "{runs}; show them with: MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {path}"
    ));
    out::results(|to| writeln!(to, "{}", experiment.display()))
}

/// The control plane's leaderboard, which has the costs, too.
async fn leaderboard(found: &Found) -> Result<Vec<u8>, Failure> {
    let leaderboard = found.read(&format!("{}leaderboard.csv", found.sweep.id.results_prefix())).await?;
    leaderboard.ok_or_else(|| {
        let (sweep, stage) = (&found.sweep.id, found.sweep.stage.name());
        Failure::new(format!(
            "no leaderboard yet: updated every 10–15 min and at the end; {sweep} is {stage}; --format json has what is \
             known now"
        ))
    })
}

/// Writes to a file, completely or not at all, or to standard output.
fn write(to: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    let Some(path) = to else { return out::file(|to| to.write_all(bytes)) };
    save::whole(path, bytes)?;
    out::note(format_args!("written to {}", path.display()));
    Ok(())
}
