//! Makes the page's data from the stored records.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::columns::{Parameters, cell, columns, flat, observed};
use super::importance::{Importance, weigh};
use super::model::{Column, Counts, CurveLine, Ending, Leader, RankedBy, Report, Row, Rungs, Totals};
use super::render::{cut, rounded};
use super::search::searched;
use super::sets::of_sets;
use super::{
    MAX_CHARTED_METRICS, MAX_COLUMNS, MAX_FAILURES, MAX_FILE_BYTES, MAX_POINTS, MAX_ROWS, MAX_SAMPLE, Sources,
};
use super::{attempts, cost, curves, failures};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_ranking::sets::{Set, sets};
use spotsweep_ranking::{Ranked, Score, leader, ranked, ranked_value, ranking, score};
use spotsweep_records::sweep::{EarlyStopping, Plan, Ranking, Stage, Sweep};
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_search::stop::Rule;
use spotsweep_sweep_file::Repeats;

/// Most rungs that are listed.
const MAX_RUNGS: usize = 12;
/// Most metrics in the table, of up to 100 that a trial may have.
const MAX_METRICS: usize = 30;

impl Report {
    /// Returns the metrics whose curves the page shows: see [`curves::read`].
    pub fn charted(plan: &Plan, trials: &[Trial]) -> Vec<String> {
        let mut names = metrics(ranking(plan, trials).as_ref(), trials);
        names.truncate(MAX_CHARTED_METRICS);
        names
    }

    /// Returns the page of a sweep in its present state.
    pub fn of(sources: &Sources<'_>) -> Self {
        let Sources { sweep, plan, trials, .. } = sources;
        let by = ranking(plan, trials);
        let mut places = ranked(plan, trials);
        places.truncate(MAX_ROWS);
        let ranked: Vec<&Trial> = places.iter().map(|place| place.trial).collect();
        let repeats = plan.repeats.as_ref();
        let sets = repeats.map(|repeats| sets(by.as_ref(), repeats, trials)).unwrap_or_default();
        let totals = totals(trials, sources.now);
        let metrics = metrics(by.as_ref(), trials);
        let sample = sample(trials);
        let parameters = parameters(sources.parameters, &ranked, &sample);
        let (all_columns, constants) = columns(parameters.values());
        let importance = by.as_ref().map(|by| match repeats {
            Some(repeats) => importance_of_sets(repeats, &all_columns, &sets, &parameters),
            None => importance(by, &all_columns, &sample, &parameters),
        });
        let columns = kept(&all_columns, importance.as_ref());
        let counts = counts(plan, trials);
        let row = |Ranked { trial, rank }: &Ranked<'_>| Row {
            rank: *rank,
            set: repeats.map(|repeats| repeats.set_of(trial.index.into())),
            ..row(trial, by.as_ref(), &metrics, &columns, &parameters, sources)
        };
        Self {
            sweep: sweep.id.to_string(),
            file: sweep.upload.key.clone(),
            results: format!("s3://{}/{}", sweep.upload.bucket, sweep.id.results_prefix()),
            stage: stage(sweep, &counts).name(),
            partial: counts.ended() < counts.trials,
            uploaded_ms: sweep.upload.uploaded_at.as_millisecond(),
            generated_ms: sources.now.as_millisecond(),
            ended_ms: trials.iter().filter_map(Trial::stopped_at).max().map(Timestamp::as_millisecond),
            rows: places.iter().map(row).collect(),
            search: searched(plan, by.as_ref(), trials, &sets),
            rungs: plan.early_stopping.as_ref().map(rungs),
            sets: repeats.map(|repeats| of_sets(repeats, &sets, &columns, &parameters)),
            curves: curve_lines(&ranked, &metrics, sources),
            cost: cost::totals(sources),
            failures: failures::failures(sources),
            source: sources.file.map(|text| cut(&plan.hidden.shown(text), MAX_FILE_BYTES)),
            warnings: sources.warnings.to_vec(),
            omitted: omitted(sources, &counts, &all_columns, &metrics),
            leader: leader(plan, trials).map(|best| Leader { index: best.trial.index, value: best.value }),
            ranking: by.map(|by| RankedBy { metric: by.name, maximize: by.maximize, stated: plan.metric.is_some() }),
            version: env!("CARGO_PKG_VERSION"),
            metrics: metrics.into_iter().take(MAX_METRICS).collect(),
            counts,
            totals,
            columns,
            constants,
            importance,
        }
    }
}

fn rungs(stopping: &EarlyStopping) -> Rungs {
    let steps = stopping.rule.rungs();
    let rule = match stopping.rule {
        Rule::Hyperband { .. } => "hyperband",
        Rule::Asha { .. } => "asha",
        Rule::Median { .. } => "median",
        Rule::Interruption { .. } => "interruption",
    };
    Rungs { rule, unit: stopping.unit, steps: steps.iter().copied().take(MAX_RUNGS).collect(), count: steps.len() }
}

/// Returns all metric names. The one that ranks comes first, even if no trial has reported it yet.
fn metrics(by: Option<&Ranking>, trials: &[Trial]) -> Vec<String> {
    let mut names: BTreeSet<&String> = trials.iter().flat_map(|trial| trial.metrics.keys()).collect();
    let first = by.map(|by| &by.name);
    names.retain(|name| Some(*name) != first);
    first.into_iter().chain(names).cloned().collect()
}

/// Returns the trials for the parameters' importance: all, or evenly spaced ones.
fn sample(trials: &[Trial]) -> Vec<&Trial> {
    trials.iter().step_by(trials.len().div_ceil(MAX_SAMPLE).max(1)).collect()
}

fn parameters(lines: &[u8], ranked: &[&Trial], sample: &[&Trial]) -> Parameters {
    let wanted: BTreeSet<u32> = ranked.iter().chain(sample).map(|trial| trial.index).collect();
    let lines = (0..).zip(lines.split(|byte| *byte == b'\n')).filter(|(index, _)| wanted.contains(index));
    lines
        .filter_map(|(index, line)| Some((index, flat(serde_json::from_slice::<TrialLine>(line).ok()?.parameters))))
        .collect()
}

fn importance(by: &Ranking, columns: &[Column], sample: &[&Trial], parameters: &Parameters) -> Importance {
    let reached = |trial: &&Trial| Some((parameters.get(&trial.index)?, ranked_value(by, trial)?));
    let reached: Vec<_> = sample.iter().filter_map(reached).collect();
    let observed: Vec<_> = columns.iter().map(|column| (column.name.clone(), observed(column, &reached))).collect();
    weigh(reached.len(), &observed)
}

/// Returns the importance by sets: those that have a result, with their mean.
fn importance_of_sets(repeats: &Repeats, columns: &[Column], sets: &[Set<'_>], parameters: &Parameters) -> Importance {
    let of_set = |set: &Set<'_>| set.trials.iter().find_map(|trial| parameters.get(&trial.index));
    let reached: Vec<_> = sets.iter().filter_map(|set| Some((of_set(set)?, set.mean?.mean))).collect();
    let of_sets = columns.iter().filter(|column| column.name != repeats.parameter);
    let observed: Vec<_> = of_sets.map(|column| (column.name.clone(), observed(column, &reached))).collect();
    weigh(reached.len(), &observed)
}

/// Returns the most important columns that fit, in the file's order.
fn kept(columns: &[Column], importance: Option<&Importance>) -> Vec<Column> {
    let weights = importance.map_or(&[][..], |importance| &importance.weights);
    let place = |column: &Column| weights.iter().position(|weight| weight.name == column.name).unwrap_or(usize::MAX);
    let mut by_weight: Vec<usize> = (0..columns.len()).collect();
    by_weight.sort_by_key(|at| place(&columns[*at]));
    by_weight.truncate(MAX_COLUMNS);
    by_weight.sort_unstable();
    by_weight.into_iter().map(|at| columns[at].clone()).collect()
}

fn counts(plan: &Plan, trials: &[Trial]) -> Counts {
    let mut counts = Counts { trials: plan.trials as usize, ..Counts::default() };
    for trial in trials {
        match trial.standing() {
            Standing::Waiting => {}
            Standing::Starting | Standing::Running => counts.running += 1,
            Standing::Succeeded => counts.succeeded += 1,
            Standing::Failed => counts.failed += 1,
            Standing::Cancelled => counts.cancelled += 1,
            Standing::Stopped => counts.stopped += 1,
        }
    }
    // A trial without a record waits for its first attempt.
    counts.waiting = counts.trials.saturating_sub(counts.running + counts.ended());
    counts
}

/// Returns the stage that the page shows. The last page is made while the sweep settles, and no later one replaces it,
/// so it shows that the sweep has settled.
fn stage<'a>(sweep: &'a Sweep, counts: &Counts) -> &'a Stage {
    match &sweep.stage {
        Stage::Settling if counts.ended() == counts.trials => &Stage::Settled,
        stage => stage,
    }
}

fn totals(trials: &[Trial], now: Timestamp) -> Totals {
    let mut totals = Totals::default();
    for trial in trials {
        let bars = attempts::bars(trial, now);
        totals.attempts += bars.len();
        totals.interruptions += bars.iter().filter(|bar| bar.ending == Ending::Interrupted).count();
        totals.zone_moves += bars.iter().filter(|bar| bar.moved_from.is_some()).count();
        totals.run_seconds += trial.run_seconds();
    }
    totals
}

fn row(
    trial: &Trial,
    by: Option<&Ranking>,
    metrics: &[String],
    columns: &[Column],
    parameters: &Parameters,
    sources: &Sources<'_>,
) -> Row {
    let bars = attempts::bars(trial, sources.now);
    let last = |name: &String| trial.metrics.get(name).map(|metric| metric.last).filter(|value| value.is_finite());
    let value = |name: &String| match by.filter(|by| by.name == *name).map(|by| score(by, trial)) {
        Some(Score::Value(value)) => Some(value),
        Some(Score::Diverged | Score::Missing) => None,
        None => last(name),
    };
    let diverged =
        by.filter(|by| score(by, trial) == Score::Diverged).map(|by| trial.metrics[&by.name].last.to_string());
    Row {
        rank: None,
        set: None,
        diverged,
        index: trial.index,
        status: trial.standing(),
        stopped: trial.stopped.as_ref().map(ToString::to_string),
        cancelled_by: trial.cancelled_by().map(|by| cut(by, 200)),
        metrics: metrics.iter().take(MAX_METRICS).map(value).collect(),
        parameters: columns.iter().map(|column| cell(column, parameters.get(&trial.index))).collect(),
        seconds: rounded(trial.run_seconds()),
        interruptions: bars.iter().filter(|bar| bar.ending == Ending::Interrupted).count(),
        attempts: bars,
        notes: trial.notes().iter().map(|note| cut(note, 200)).collect(),
        cost: sources.costs.get(&trial.index).map(cost::of_trial),
    }
}

fn curve_lines(ranked: &[&Trial], metrics: &[String], sources: &Sources<'_>) -> Vec<CurveLine> {
    let charted = &metrics[..metrics.len().min(MAX_CHARTED_METRICS)];
    let most = MAX_POINTS / (ranked.len() * charted.len()).max(1);
    let most = most.clamp(curves::MIN_POINTS, curves::MAX_POINTS);
    let mut lines = Vec::new();
    for (metric, name) in charted.iter().enumerate() {
        for trial in ranked {
            let Some(curve) = sources.curves.get(&trial.index).and_then(|of_trial| of_trial.get(name)) else {
                continue;
            };
            let points = curve.points(most).into_iter().flat_map(|(step, value)| [step, rounded(value)]).collect();
            lines.push(CurveLine { metric, index: trial.index, points });
        }
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

fn omitted(sources: &Sources<'_>, counts: &Counts, columns: &[Column], metrics: &[String]) -> Vec<String> {
    let trials = sources.trials.len();
    let over = |count: usize, most: usize, text: String| (count > most).then_some(text);
    let rest = "the rest is in leaderboard.csv";
    [
        over(trials, MAX_ROWS, format!("The best {MAX_ROWS} of {trials} trials are shown; {rest}.")),
        over(trials, MAX_SAMPLE, format!("Importance is taken from every {}th trial.", trials.div_ceil(MAX_SAMPLE))),
        over(
            columns.len(),
            MAX_COLUMNS,
            format!("The {MAX_COLUMNS} most important of {} parameters are shown; {rest}.", columns.len()),
        ),
        over(metrics.len(), MAX_METRICS, format!("{MAX_METRICS} of {} metrics are shown; {rest}.", metrics.len())),
        over(
            counts.failed,
            MAX_FAILURES,
            format!("The last lines of the first {MAX_FAILURES} of {} failed trials are shown.", counts.failed),
        ),
        over(
            sources.file.map_or(0, str::len),
            MAX_FILE_BYTES,
            format!("The first {MAX_FILE_BYTES} bytes of the sweep file are shown."),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
