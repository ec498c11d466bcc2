//! `spotsweep suggest`: shows the parameters that the next trial would get, and why, and the results of earlier
//! suggestions.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use spotsweep_ranking::suggestion::{self, Chosen};
use spotsweep_ranking::{Score, best, score};
use spotsweep_records::sweep::{Plan, Ranking};
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_report::warnings::texts;
use spotsweep_search::suggest::Basis;
use spotsweep_sweep_file::{Search, trials};

use crate::sweeps::{self, Found};
use crate::target::Table;
use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::number::to_json;
use spotsweep_protocol::words::{counted, figure, rounded};

/// `spotsweep suggest`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of a sweep with `method: bayes`. A trial's parameters are suggested when it starts, so the next one may get others: \
what is reported until then counts.

Examples:
  spotsweep suggest latest
  spotsweep suggest digits-1a2b3c4d5e6f --json | jq .parameters")]
pub(crate) struct Suggest {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: Table,
}

/// Runs the command. It fails for a sweep whose parameters are not suggested.
pub(super) async fn run(args: Suggest) -> Result<ExitCode, Failure> {
    let found = sweeps::find(args.table, &args.sweep).await?;
    let plan = found.plan()?;
    let Some(metric) = plan.metric.as_ref().filter(|_| plan.suggests) else {
        return Err(Failure::new(format!(
            "{} has no `method: bayes`: its parameters are those of its file (`spotsweep expand`)",
            found.sweep.id
        )));
    };
    let (search, trials) = (space(&found).await?, found.trials().await?);
    let is_given = |index: &u32| trials.iter().any(|trial| trial.index == *index && trial.suggested.is_some());
    let next = (0..plan.trials).find(|index| !is_given(index));
    let chosen = next.and_then(|index| Some((index, suggestion::next(plan, &search, &trials, index)?)));
    let warnings = texts(&found.sweep, &trials, Timestamp::now());
    if args.json {
        let line = line(chosen.as_ref(), (plan, metric), &trials, &warnings);
        out::results(|to| writeln!(to, "{line}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = rows(&trials, metric);
    out::results(|to| {
        match &chosen {
            Some((index, chosen)) => {
                writeln!(to, "trial {index} would get {}", Value::Object(chosen.parameters.clone()))?;
                writeln!(to, "{}", why(chosen.basis, metric))?;
            }
            None => writeln!(to, "all {} have their parameters", counted(plan.trials, "trial"))?,
        }
        if let Some(best) = best(plan, &trials) {
            let by = best.set.map_or_else(|| figure(best.value), |(_, mean)| mean.to_string());
            writeln!(to, "best so far: {} {by} (trial {})", metric.name, best.trial.index)?;
        }
        for warning in &warnings {
            writeln!(to, "warning: {}", show::line(warning))?;
        }
        if rows.len() > 1 {
            writeln!(to)?;
            show::table(to, &rows)?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn space(found: &Found) -> Result<Search, Failure> {
    let key = trials::space_key(&found.sweep.id);
    let gone =
        || Failure::new(format!("s3://{}/{key} is gone: it has what the parameters are searched in", found.bucket()));
    let read = found.read(&key).await?.ok_or_else(gone)?;
    serde_json::from_slice(&read)
        .context(|| format!("s3://{}/{key} is not what sweep-upload has written", found.bucket()))
}

fn predicted(mean: f64, deviation: f64) -> String {
    format!("{} ± {}", rounded(mean, 4), rounded(deviation, 4))
}

/// A sentence on what a suggestion is based on.
fn why(basis: Option<Basis>, metric: &Ranking) -> String {
    match basis {
        Some(Basis::Model { mean, deviation }) => {
            format!("the model predicts {} {}", metric.name, predicted(mean, deviation))
        }
        Some(Basis::Initial) => "one of the first points, which cover the space evenly".to_owned(),
        Some(Basis::Random) => {
            format!("at random: no trial has reported a usable {} so far", metric.name)
        }
        None => "as the other trials of its parameter set".to_owned(),
    }
}

/// The expected and the actual value of each suggestion.
fn rows(trials: &[Trial], metric: &Ranking) -> Vec<Vec<String>> {
    let heads = ["trial", "status", "predicted", "found", "parameters"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for trial in trials {
        let Some(suggested) = &trial.suggested else { continue };
        let predicted = match suggested.basis {
            Some(Basis::Model { mean, deviation }) => predicted(mean, deviation),
            Some(Basis::Initial | Basis::Random) | None => "–".to_owned(),
        };
        let found = match score(metric, trial) {
            Score::Value(value) => rounded(value, 4),
            Score::Diverged => "diverged".to_owned(),
            Score::Missing => "–".to_owned(),
        };
        let standing = trial.standing().name().to_owned();
        rows.push(vec![trial.index.to_string(), standing, predicted, found, suggested.text().to_owned()]);
    }
    rows
}

fn line(
    chosen: Option<&(u32, Chosen)>,
    (plan, metric): (&Plan, &Ranking),
    trials: &[Trial],
    warnings: &[String],
) -> Value {
    let count = |standing| trials.iter().filter(|trial| trial.standing() == standing).count();
    let of = |chosen: &(u32, Chosen)| {
        let (index, Chosen { parameters, basis }) = chosen;
        (json!(index), json!(parameters), basis.map_or(Value::Null, of_basis))
    };
    let (trial, parameters, basis) = chosen.map_or((Value::Null, Value::Null, Value::Null), of);
    let best = best(plan, trials).map(|best| {
        let set = best.set.map(|(_, mean)| mean);
        json!({ "index": best.trial.index, "value": to_json(best.value), "set": set })
    });
    json!({ "trial": trial, "parameters": parameters, "basis": basis, "metric": metric.name, "best": best,
        "finished": count(Standing::Succeeded), "stopped_early": count(Standing::Stopped),
        "warnings": warnings })
}

fn of_basis(basis: Basis) -> Value {
    let mut fields = Map::new();
    let name = match basis {
        Basis::Model { mean, deviation } => {
            fields.insert("mean".to_owned(), to_json(mean));
            fields.insert("deviation".to_owned(), to_json(deviation));
            "model"
        }
        Basis::Initial => "initial",
        Basis::Random => "random",
    };
    fields.insert("of".to_owned(), json!(name));
    Value::Object(fields)
}
