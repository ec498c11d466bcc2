//! Warnings of what a person should know before trusting a sweep's results: a metric that no trial reports, trials that
//! all fail, rungs that no trial reaches, values that mean nothing.

mod bad_instances;
mod doubtful;
mod fruitless;
mod odd;
mod silent;
mod unranked;
mod unreached;
mod unseen;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::page::cut;
use spotsweep_protocol::words::counted;
use spotsweep_ranking::{Score, ranked_value, ranking, score};
use spotsweep_records::sweep::{Plan, Ranking, Stage, Sweep};
use spotsweep_records::trial::{Attempt, Standing, Trial};

/// Most trials that a warning lists.
const LISTED_TRIALS: usize = 8;
/// Most metrics that a warning lists.
const LISTED_METRICS: usize = 6;
/// Most log lines that a warning quotes, and most bytes of each.
const QUOTED_LINES: usize = 2;
const QUOTED_BYTES: usize = 100;
/// Most trials whose logs are searched for such lines.
const SEARCHED_LOGS: usize = 3;

/// The subject of a warning. There is at most one warning of each subject at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// No trial has the sweep's metric, or no rung counts it as it was reported.
    Metric,
    /// Some trials that succeeded never reported the metric.
    Missing,
    /// The newest value of the metric is not finite.
    Diverged,
    /// Two readings of the newest value disagree.
    Doubtful,
    /// All trials ended with the same value.
    Same,
    /// Parameter sets lack results of repeats.
    Repeats,
    /// No trial has a usable result.
    Failures,
    /// Rungs are beyond the end of the training.
    Rungs,
    /// A value lies apart from all others.
    Odd,
    /// Nothing can be trained on some instances.
    Instances,
    /// Runners of running attempts do not report.
    Silence,
}

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warned {
    /// The subject.
    pub about: About,
    /// One sentence without its full stop.
    pub text: String,
}

/// Returns the warnings of a running sweep, by the newest records of its trials. Where the control plane has stored the
/// same warning with quoted log lines, that text is used.
pub fn current(sweep: &Sweep, trials: &[Trial], now: Timestamp) -> Vec<Warned> {
    let Some(plan) = sweep.plan.as_ref().filter(|_| sweep.stage == Stage::Running) else { return Vec::new() };
    let mut warned = warnings(plan, trials, &BTreeMap::new(), now);
    for Warned { text, .. } in &mut warned {
        if let Some(known) = sweep.warnings.iter().find(|known| known.starts_with(text.as_str())) {
            text.clone_from(known);
        }
    }
    warned
}

/// Returns the warnings of a sweep: for one that runs by the newest records, otherwise those that were stored last.
pub fn texts(sweep: &Sweep, trials: &[Trial], now: Timestamp) -> Vec<String> {
    match sweep.stage {
        Stage::Running => current(sweep, trials, now).into_iter().map(|warned| warned.text).collect(),
        Stage::Reading
        | Stage::Keeping { .. }
        | Stage::Submitting { .. }
        | Stage::Announcing
        | Stage::Settling
        | Stage::Settled
        | Stage::Withdrawing { .. }
        | Stage::Rejected => sweep.warnings.clone(),
    }
}

/// Returns the metrics that a trial has reported, if it has reported long enough without the wanted metric.
pub fn lacks(metric: &str, trial: &Trial) -> Option<Vec<String>> {
    let lacks = !trial.metrics.contains_key(metric) && reports(trial) >= unseen::REPORTS;
    lacks.then(|| trial.metrics.keys().cloned().collect())
}

/// Returns the trials whose log may show why they have no value: the first ones that succeeded without one.
pub(crate) fn searched(plan: &Plan, trials: &[Trial]) -> Vec<u32> {
    let by = ranking(plan, trials);
    let is_missing = |trial: &&Trial| by.as_ref().is_none_or(|by| score(by, trial) == Score::Missing);
    succeeded(trials).filter(is_missing).take(SEARCHED_LOGS).map(|trial| trial.index).collect()
}

/// Returns all warnings. `logs` has the last lines of trials' logs.
pub(crate) fn warnings(
    plan: &Plan,
    trials: &[Trial],
    logs: &BTreeMap<u32, Vec<String>>,
    now: Timestamp,
) -> Vec<Warned> {
    let about = |about: About| move |text: String| Warned { about, text };
    let mut warnings = Vec::from_iter(unseen::unseen(plan, trials, now).map(about(About::Metric)));
    warnings.extend(of_results(plan, trials, logs));
    let doubtful = ranking(plan, trials).and_then(|by| doubtful::doubtful(&by, trials));
    warnings.extend(doubtful.map(about(About::Doubtful)));
    warnings.extend(fruitless::fruitless(plan, trials).map(about(About::Failures)));
    warnings.extend(odd::odd(plan, trials).map(about(About::Odd)));
    warnings.extend(unreached::unreached(plan, trials).map(about(About::Rungs)));
    warnings.extend(bad_instances::bad_instances(trials).map(about(About::Instances)));
    warnings.extend(silent::silent(trials).map(about(About::Silence)));
    warnings
}

/// Returns the warnings about the trials that succeeded.
fn of_results(plan: &Plan, trials: &[Trial], logs: &BTreeMap<u32, Vec<String>>) -> Vec<Warned> {
    let ended = succeeded(trials).count();
    if ended == 0 {
        return Vec::new();
    }
    let Some(by) = ranking(plan, trials) else {
        let lines = quoted(&lines_like_metrics(None, logs));
        let text = format!("no trial printed a metric as name=value, so that none has a rank{lines}");
        return vec![Warned { about: About::Metric, text }];
    };
    let those = |wanted: Score| -> Vec<u32> {
        succeeded(trials).filter(|trial| score(&by, trial) == wanted).map(|trial| trial.index).collect()
    };
    let (missing, diverged) = (those(Score::Missing), those(Score::Diverged));
    let name = &by.name;
    let mut warnings = Vec::new();
    if missing.len() == ended {
        warnings.push(Warned { about: About::Metric, text: nothing_printed(&by, trials, logs) });
    } else if !missing.is_empty() {
        let (count, list) = (missing.len(), listed(&missing));
        let text = format!("{count} of {ended} trials that succeeded never printed {name}; no rank for {list}");
        warnings.push(Warned { about: About::Missing, text });
    }
    if !diverged.is_empty() {
        let (count, list) = (diverged.len(), listed(&diverged));
        let of = counted(ended, "trial");
        let text = format!("{count} of {of} diverged: {name} was not finite at the end of {list}");
        warnings.push(Warned { about: About::Diverged, text });
    }
    warnings.extend(all_the_same(&by, trials).map(|text| Warned { about: About::Same, text }));
    let lacking = plan.repeats.as_ref().and_then(|repeats| unranked::unranked(Some(&by), repeats, trials));
    warnings.extend(lacking.map(|text| Warned { about: About::Repeats, text }));
    warnings
}

/// Returns how many reports the trial's attempts have sent.
fn reports(trial: &Trial) -> u64 {
    trial.attempts.values().filter_map(|attempt| attempt.sequence).fold(0, u64::saturating_add)
}

/// Returns the seconds for which the trial's containers have run until now.
fn seconds_trained(trial: &Trial, now: Timestamp) -> f64 {
    let running = trial.attempts.get(&trial.ended.saturating_add(1)).filter(|_| !trial.is_over());
    let since =
        running.filter(|attempt| attempt.stopped_at.is_none()).and_then(|Attempt { started_at, .. }| *started_at);
    trial.run_seconds() + since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0))
}

fn succeeded(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    trials.iter().filter(|trial| trial.standing() == Standing::Succeeded)
}

fn nothing_printed(by: &Ranking, trials: &[Trial], logs: &BTreeMap<u32, Vec<String>>) -> String {
    let name = &by.name;
    let lines = quoted(&lines_like_metrics(Some(name), logs));
    let (others, unread) = (others(by, trials), unread(trials));
    format!("no trial printed `{name}=…`, so that none has a rank{others}{unread}{lines}")
}

/// Names an output that the first such trial's attempt has not searched for the metric, if there is one.
fn unread(trials: &[Trial]) -> String {
    let what = |trial: &Trial| Some((trial.index, trial.end.as_ref()?.outputs.unread.first()?.clone()));
    let found = trials.iter().find_map(what);
    found.map(|(index, what)| format!("; not searched for it, in trial {index}: {what}")).unwrap_or_default()
}

/// Names the metrics that trials have reported instead, with advice. Those that share a word with the wanted metric
/// come first.
fn others(by: &Ranking, trials: &[Trial]) -> String {
    let mut names: Vec<&str> = trials.iter().flat_map(|trial| trial.metrics.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let words = |name: &str| -> Vec<String> {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let wanted = words(&by.name);
    names.sort_by_key(|name| !words(name).iter().any(|word| wanted.contains(word)));
    let more = if names.len() > LISTED_METRICS { ", …" } else { "" };
    names.truncate(LISTED_METRICS);
    format!(
        "; metrics that trials printed: {}{more}, one of which can be named as `metric: {{name: …}}`",
        names.join(", ")
    )
}

/// Warns if all results are equal, because a training that ignores its parameters gives the same result with all of
/// them.
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

/// Returns the newest lines with the metric's name and a number, or else those with any word and a number.
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

/// Whether a line has a word, then a colon or a gap, and then a number with a decimal point, such as `loss: 0.25`.
fn has_named_number(line: &str) -> bool {
    let words: Vec<&str> = line.split([' ', ':', ',', '|', '\t']).filter(|word| !word.is_empty()).collect();
    let is_name = |word: &str| word.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | '/'));
    let is_number = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    words.windows(2).any(|pair| is_name(pair[0]) && is_number(pair[1]))
}

#[cfg(test)]
mod tests;
