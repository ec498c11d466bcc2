//! What a person should know before trusting a sweep's results: trials without a value of the metric that ranks, and
//! values that say nothing.

use std::collections::BTreeMap;

use crate::results::ranking::{Score, ranked_value, ranking, score};
use crate::results::report::cut;
use crate::results::sets;
use crate::sweep::{Plan, Ranking};
use crate::trial::{Standing, Trial};
use spotsweep_protocol::words::counted;

/// Trials that a warning lists.
const LISTED_TRIALS: usize = 8;
/// Metrics that a warning lists.
const LISTED_METRICS: usize = 6;
/// Lines of logs that a warning quotes, and bytes of each.
const QUOTED_LINES: usize = 2;
const QUOTED_BYTES: usize = 100;
/// Trials whose logs are searched for such lines.
const SEARCHED_LOGS: usize = 3;

/// Trials the end of whose log helps to say why they have no value: the first that succeeded without one.
pub(super) fn searched(plan: &Plan, trials: &[Trial]) -> Vec<u32> {
    let by = ranking(plan, trials);
    let is_missing = |trial: &&Trial| by.as_ref().is_none_or(|by| score(by, trial) == Score::Missing);
    succeeded(trials).filter(is_missing).take(SEARCHED_LOGS).map(|trial| trial.index).collect()
}

/// One sentence for each. `logs` has the last lines of trials' logs.
pub(super) fn warnings(plan: &Plan, trials: &[Trial], logs: &BTreeMap<u32, Vec<String>>) -> Vec<String> {
    let ended = succeeded(trials).count();
    if ended == 0 {
        return Vec::new();
    }
    let Some(by) = ranking(plan, trials) else {
        let lines = quoted(&lines_like_metrics(None, logs));
        return vec![format!("no trial printed a metric as name=value, so that none has a rank{lines}")];
    };
    let those = |wanted: Score| -> Vec<u32> {
        succeeded(trials).filter(|trial| score(&by, trial) == wanted).map(|trial| trial.index).collect()
    };
    let (missing, diverged) = (those(Score::Missing), those(Score::Diverged));
    let name = &by.name;
    let mut warnings = Vec::new();
    if missing.len() == ended {
        warnings.push(nothing_printed(&by, trials, logs));
    } else if !missing.is_empty() {
        let (count, list) = (missing.len(), listed(&missing));
        warnings.push(format!("{count} of {ended} trials that succeeded never printed {name}; no rank for {list}"));
    }
    if !diverged.is_empty() {
        let (count, list) = (diverged.len(), listed(&diverged));
        warnings.push(format!(
            "{count} of {} diverged: {name} was not finite at the end of {list}",
            counted(ended, "trial")
        ));
    }
    warnings.extend(all_the_same(&by, trials));
    warnings.extend(plan.repeats.as_ref().and_then(|repeats| sets::warning(Some(&by), repeats, trials)));
    warnings
}

fn succeeded(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    trials.iter().filter(|trial| trial.standing() == Standing::Succeeded)
}

fn nothing_printed(by: &Ranking, trials: &[Trial], logs: &BTreeMap<u32, Vec<String>>) -> String {
    let name = &by.name;
    let mut others: Vec<&String> = succeeded(trials).flat_map(|trial| trial.metrics.keys()).collect();
    others.sort_unstable();
    others.dedup();
    let names: Vec<&str> = others.iter().take(LISTED_METRICS).map(|name| name.as_str()).collect();
    let others = if names.is_empty() {
        String::new()
    } else {
        format!(
            "; metrics that trials printed: {}, one of which can be named as `metric: {{name: …}}`",
            names.join(", ")
        )
    };
    let lines = quoted(&lines_like_metrics(Some(name), logs));
    format!("no trial printed `{name}=…`, so that none has a rank{others}{lines}")
}

/// A training that does not use its parameters gives the same result with all of them.
fn all_the_same(by: &Ranking, trials: &[Trial]) -> Option<String> {
    let values: Vec<f64> = succeeded(trials).filter_map(|trial| ranked_value(by, trial)).collect();
    let first = values.first()?;
    (values.len() > 1 && values.iter().all(|value| value == first)).then(|| {
        format!("all {} trials ended with {} = {first}: does the training use its parameters?", values.len(), by.name)
    })
}

fn listed(indices: &[u32]) -> String {
    let shown: Vec<String> = indices.iter().take(LISTED_TRIALS).map(|index| format!("trial {index}")).collect();
    let more = if indices.len() > LISTED_TRIALS { ", …" } else { "" };
    shown.join(", ") + more
}

fn quoted(lines: &[String]) -> String {
    let quoted: Vec<String> = lines.iter().map(|line| format!("`{}`", cut(line, QUOTED_BYTES))).collect();
    match quoted.is_empty() {
        true => String::new(),
        false => format!("; lines that look like metrics: {}; print them as name=value", quoted.join(", ")),
    }
}

/// The newest lines that have the metric's name and a number, else those with any word, a colon and a number.
fn lines_like_metrics(name: Option<&str>, logs: &BTreeMap<u32, Vec<String>>) -> Vec<String> {
    let newest = || logs.values().flat_map(|lines| lines.iter().rev()).map(|line| line.trim());
    let has_name =
        |line: &&str| name.is_some_and(|name| line.split_once(name).is_some_and(|(_, rest)| has_digit(rest)));
    let found: Vec<String> = newest().filter(has_name).take(QUOTED_LINES).map(str::to_owned).collect();
    if !found.is_empty() {
        return found;
    }
    newest().filter(|line| has_named_number(line)).take(QUOTED_LINES).map(str::to_owned).collect()
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// Whether a line has a word, a colon or a gap, and a number with a point, such as `loss: 0.25`.
fn has_named_number(line: &str) -> bool {
    let words: Vec<&str> = line.split([' ', ':', ',', '|', '\t']).filter(|word| !word.is_empty()).collect();
    let is_name = |word: &str| word.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | '/'));
    let is_number = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    words.windows(2).any(|pair| is_name(pair[0]) && is_number(pair[1]))
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::metric::{Metric, Source};

    use super::*;
    use crate::sweep::Over;
    use crate::trial::JobStatus;

    fn trials(losses: &[Option<f64>]) -> Vec<Trial> {
        let trial = |(index, loss): (u32, &Option<f64>)| {
            let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("j:{index}")));
            trial.status = JobStatus::Succeeded;
            trial.metrics.extend(loss.map(|loss| ("val_loss".to_owned(), Metric::of(loss, None, Source::Stated))));
            trial
        };
        (0..).zip(losses).map(trial).collect()
    }

    fn plan(metric: Option<&str>) -> Plan {
        let metric = metric.map(|name| Ranking { name: name.to_owned(), maximize: false, over: Over::Last });
        let plan = serde_json::json!({ "trials": 2, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [] });
        Plan { metric, ..serde_json::from_value(plan).unwrap() }
    }

    #[test]
    fn what_results_cannot_be_trusted_for_is_said() {
        let log =
            |line: &str| BTreeMap::from([(0, vec!["Loading data".to_owned(), line.to_owned(), "done".to_owned()])]);
        /// The file's metric, the trials' values, a line of a log, parts of the warning.
        type Case = (Option<&'static str>, &'static [Option<f64>], &'static str, &'static [&'static str]);
        let cases: [Case; 9] = [
            (Some("val_loss"), &[Some(0.5), Some(0.25)], "", &[]),
            (Some("val_loss"), &[], "", &[]),
            (
                Some("val_loss"),
                &[None, None],
                "Epoch 3: val_loss: 0.23",
                &["no trial printed `val_loss=…`", "`Epoch 3: val_loss: 0.23`"],
            ),
            (
                Some("score"),
                &[Some(0.5), Some(0.25)],
                "x",
                &["no trial printed `score=…`", "val_loss", "metric: {name: …}"],
            ),
            (
                Some("val_loss"),
                &[Some(0.5), None],
                "",
                &["1 of 2 trials that succeeded never printed val_loss", "trial 1"],
            ),
            (Some("val_loss"), &[Some(0.5), Some(f64::NAN)], "", &["1 of 2 trials diverged", "trial 1"]),
            (Some("val_loss"), &[Some(0.5), Some(0.5)], "", &["all 2 trials ended with val_loss = 0.5"]),
            (None, &[None, None], "train loss 0.31", &["no trial printed a metric", "`train loss 0.31`"]),
            (Some("val_loss"), &[Some(0.5)], "", &[]),
        ];
        for (metric, losses, line, parts) in cases {
            let found = warnings(&plan(metric), &trials(losses), &log(line));
            assert_eq!(found.len(), usize::from(!parts.is_empty()), "{found:?}");
            for part in parts {
                assert!(found[0].contains(part), "{found:?} lacks {part}");
            }
        }
    }
}
