//! `spotsweep pull`: downloads trials' outputs into a folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use spotsweep_ranking::ranking;

use crate::download::{Arrival, Listed, Object, Present, Trouble, fetch, list};
use crate::progress::Transfer;
use crate::show;
use crate::sweeps::Found;
use crate::target::Table;
use crate::{out, sweeps};
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::{counted, size};

/// `spotsweep pull`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything that trials have collected so far: models, metrics.jsonl, train.log, under DIR/trials/<index>/. A file that \
is there already, of the same size and not older than the object, is left as it is; so a pull that was stopped goes on \
where it was, and no file is ever half written under its own name. What cannot be fetched is named at the end, with exit \
code 1: two names that are one here, a name that is too long here, a link that is in the way. Links within DIR are not \
followed.

Examples:
  spotsweep pull digits-1a2b3c4d5e6f --best          the best trial's
  spotsweep pull digits-1a2b3c4d5e6f 3 7 --to models
  spotsweep pull digits-1a2b3c4d5e6f                 all, to spotsweep-results/digits-1a2b3c4d5e6f")]
pub(crate) struct Pull {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// Only these trials, by their index from 0
    #[arg(value_name = "INDEX")]
    indices: Vec<u32>,
    /// Only the best trial; with repeats, the best one of the best set
    #[arg(long, conflicts_with = "indices")]
    best: bool,
    /// The folder [default: spotsweep-results/<SWEEP>]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print what was fetched, and what could not be, as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: Table,
}

/// Number of files, and of their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    files: u64,
    bytes: u64,
}

impl Tally {
    fn add(&mut self, object: &Object) {
        self.files += 1;
        self.bytes += object.bytes;
    }
}

/// Runs the command. It fails if the trials have collected nothing, and at the end if an object could not be
/// downloaded.
pub(super) async fn run(args: Pull) -> Result<ExitCode, Failure> {
    let found = sweeps::find(args.table.clone(), &args.sweep).await?;
    let folder = args.to.clone().unwrap_or_else(|| Path::new("spotsweep-results").join(found.sweep.id.as_str()));
    let Listed { objects, mut troubles } = objects(&found, &args).await?;
    let (mut fetched, mut there, mut all) = (Tally::default(), Tally::default(), Tally::default());
    objects.iter().for_each(|object| all.add(object));
    let mut transfer = Transfer::new(all.bytes);
    let tell = |arrival| match arrival {
        Arrival::Fetched(object) => {
            fetched.add(&object);
            transfer.add(object.bytes, &object.path.to_string_lossy());
        }
        Arrival::WasThere(object) => {
            there.add(&object);
            transfer.add(object.bytes, &object.path.to_string_lossy());
        }
        Arrival::Failed(trouble) => troubles.push(trouble),
    };
    let outcome = fetch(&found.s3(), found.bucket(), objects, &folder, Present::Keep, tell).await;
    drop(transfer);
    for trouble in &troubles {
        out::note(format_args!("not fetched: {}", show::line(trouble)));
    }
    if let Err(failure) = outcome {
        out::note(format_args!(
            "{} of {} fetched; the same command goes on from there",
            fetched.files + there.files,
            counted(all.files, "file")
        ));
        return Err(failure);
    }
    tell_end(&args, &folder, fetched, there, &troubles)?;
    Ok(if troubles.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn tell_end(args: &Pull, folder: &Path, fetched: Tally, there: Tally, troubles: &[Trouble]) -> Result<(), Failure> {
    let skipped = if there.files > 0 { format!(", {} there already", there.files) } else { String::new() };
    let failed = if troubles.is_empty() { String::new() } else { format!(", {} not fetched", troubles.len()) };
    out::note(format_args!("{} fetched, {}{skipped}{failed}", counted(fetched.files, "file"), size(fetched.bytes)));
    let path = folder.display();
    let troubles: Vec<Value> = troubles.iter().map(Trouble::json).collect();
    out::results(|to| match args.json {
        false => writeln!(to, "{path}"),
        true => writeln!(
            to,
            "{}",
            json!({ "folder": path.to_string(), "fetched": fetched.files,
            "bytes": fetched.bytes, "present": there.files, "failed": troubles })
        ),
    })
}

async fn objects(found: &Found, args: &Pull) -> Result<Listed, Failure> {
    let (s3, above) = (found.s3(), found.sweep.id.results_prefix());
    let named = if args.best { vec![best(found).await?] } else { args.indices.clone() };
    let mut listed = Listed::default();
    if named.is_empty() {
        listed = list(&s3, found.bucket(), &format!("{above}trials/"), &above).await?;
    }
    for index in found.indices(&named)? {
        let of_trial = list(&s3, found.bucket(), &found.sweep.id.trial_prefix(index), &above).await?;
        if of_trial.is_empty() {
            out::note(format_args!("trial {index} has collected nothing yet"));
        }
        listed.extend(of_trial);
    }
    if listed.is_empty() {
        let (sweep, stage) = (&found.sweep.id, found.sweep.stage.name());
        return Err(Failure::new(format!("no results yet: sweep {sweep} is {stage}")));
    }
    Ok(listed)
}

/// Index of the best trial.
async fn best(found: &Found) -> Result<u32, Failure> {
    let trials = found.trials().await?;
    let plan = found.plan()?;
    let by = ranking(plan, &trials);
    let best = spotsweep_ranking::best(plan, &trials).ok_or_else(|| {
        let metric = by.as_ref().map_or("any of the usual metrics", |by| by.name.as_str());
        Failure::new(match &plan.repeats {
            None => format!("there is no best trial: none has succeeded with a finite value of {metric}"),
            Some(repeats) => format!(
                "there is no best trial: no parameter set has a finite value of {metric} from each of its {}; name \
                 the trials that you want",
                counted(repeats.values.len(), "repeat")
            ),
        })
    })?;
    let index = best.trial.index;
    match &best.set {
        None => out::note(format_args!("trial {index} is the best")),
        Some((set, mean)) => {
            let others: Vec<String> = set.indexes().iter().map(u32::to_string).collect();
            let (name, others) = (show::line(&best.by.name), others.join(", "));
            out::note(format_args!("trial {index} is the best of the best set, trials {others}: {name} {mean}"));
        }
    }
    Ok(index)
}
