//! `spotsweep report A B`: compares two sweeps side by side.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_records::trial::Trial;

use crate::live::look::{Batch, Look};
use crate::live::model::Model;
use crate::progress::Best;
use crate::sweeps::Found;
use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{dollars, duration, rounded};

/// One of the two sweeps.
struct Side {
    model: Model,
    /// Parameters of its best trial.
    parameters: Map<String, Value>,
}

/// Prints both sweeps.
pub(super) async fn compare(left: &Found, right: &Found, is_json: bool) -> Result<(), Failure> {
    let sides = [side(left).await?, side(right).await?];
    let json = |side: &Side| {
        let mut model = side.model.json();
        model["run_seconds"] = json!(run_seconds(&side.model));
        model["best_parameters"] = json!(side.parameters);
        model
    };
    out::results(|to| match is_json {
        true => writeln!(to, "{}", json!(sides.each_ref().map(json))),
        false => show::table(to, &rows(&sides)),
    })
}

async fn side(found: &Found) -> Result<Side, Failure> {
    found.plan()?;
    let (sweep, trials) = (found.sweep.clone(), found.trials().await?);
    let look = Look { at: Timestamp::now(), sweep, trials, batch: Batch::default(), outcome: None };
    let (model, _) = Model::new(look);
    let parameters = match &model.figures.best {
        Some(best) => of_trial(&found.parameters().await?, best.trial)?,
        None => Map::new(),
    };
    Ok(Side { model, parameters })
}

/// A trial's parameters, from `trials.jsonl`.
fn of_trial(lines: &[u8], index: u32) -> Result<Map<String, Value>, Failure> {
    let line = lines.split(|byte| *byte == b'\n').nth(index as usize).unwrap_or_default();
    let line: TrialLine =
        serde_json::from_slice(line).context(|| "trials.jsonl is not what sweep-upload has written")?;
    Ok(line.parameters)
}

fn run_seconds(model: &Model) -> f64 {
    model.look.trials.iter().map(Trial::run_seconds).sum()
}

fn rows(sides: &[Side; 2]) -> Vec<Vec<String>> {
    let row = |name: &str, cell: &dyn Fn(&Side) -> String| {
        let [left, right] = sides.each_ref().map(cell);
        vec![name.to_owned(), left, right]
    };
    let figure = |cell: fn(&Model) -> String| move |side: &Side| cell(&side.model);
    let mut rows = vec![
        row("SWEEP", &figure(|model| model.look.sweep.id.to_string())),
        row("stage", &figure(|model| model.look.sweep.stage.name().to_owned())),
        row("trials", &figure(|model| model.figures.trials.to_string())),
        row("succeeded", &figure(|model| model.figures.succeeded.to_string())),
        row("failed", &figure(|model| model.figures.failed.to_string())),
        row("stopped early", &figure(|model| model.figures.stopped.to_string())),
        row("cancelled", &figure(|model| model.figures.cancelled.to_string())),
        row("best", &figure(best)),
    ];
    let names: BTreeSet<&String> = sides.iter().flat_map(|side| side.parameters.keys()).collect();
    rows.extend(
        names.into_iter().map(|name| {
            row(&format!("  {name}"), &|side| side.parameters.get(name).map_or_else(String::new, show::text))
        }),
    );
    rows.extend([
        row("attempts", &figure(|model| model.losses.attempts.to_string())),
        row("interruptions", &figure(|model| model.losses.interruptions.to_string())),
        row("zone moves", &figure(|model| model.losses.zone_moves.to_string())),
        row("lost between attempts", &figure(|model| duration(model.losses.seconds_lost))),
        row("time in containers", &figure(|model| duration(run_seconds(model)))),
        row("time", &figure(|model| duration(model.elapsed(model.look.at)))),
        row("cost", &figure(|model| model.cost.map_or_else(String::new, |(usd, _)| dollars(usd)))),
        row("on demand", &figure(|model| model.cost.map_or_else(String::new, |(_, usd)| dollars(usd)))),
    ]);
    rows
}

fn best(model: &Model) -> String {
    let best = model.figures.best.as_ref();
    let figure = |Best { metric, value, trial, mean }: &Best| match mean {
        None => format!("{metric} {} (trial {trial})", rounded(*value, 5)),
        Some(mean) => format!("{metric} {mean} (trial {trial})"),
    };
    best.map_or_else(|| "none".to_owned(), figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::{look, running, succeeded};

    #[test]
    fn two_sweeps_are_side_by_side() {
        let side = |trials: Vec<Trial>, cost| {
            let (mut model, _) = Model::new(look(90, 2, trials));
            model.cost = cost;
            let parameters = model.figures.best.iter().map(|_| ("lr".to_owned(), json!(0.01))).collect();
            Side { model, parameters }
        };
        let sides = [
            side(vec![succeeded(0, 0, 60, 0.5), succeeded(1, 0, 30, 0.75)], Some((0.000_28, 0.5))),
            side(vec![running(0, "a", 10)], None),
        ];
        let rows = rows(&sides);
        let cells = |name: &str| {
            let row = rows.iter().find(|row| row[0] == name);
            row.map(|row| (row[1].clone(), row[2].clone())).unwrap_or_default()
        };
        let both = |left: &str, right: &str| (left.to_owned(), right.to_owned());
        assert_eq!(cells("succeeded"), both("2", "0"));
        assert_eq!(cells("best"), both("accuracy 0.75000 (trial 1)", "none"));
        assert_eq!(cells("  lr"), both("0.01", ""));
        assert_eq!(cells("cost"), both("$0.00028", ""));
        assert_eq!(cells("time in containers"), both("1 min 30 s", "0 s"));
        assert!(rows.iter().all(|row| row.len() == 3));
    }
}
