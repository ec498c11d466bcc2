//! The page's data. The field names are those that its scripts read.

use serde::Serialize;
use serde_json::Value;

use super::importance::Importance;
use spotsweep_protocol::rungs::Unit;
use spotsweep_ranking::sets::Mean;
use spotsweep_records::trial::Standing;

/// The data of one page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub(super) sweep: String,
    pub(super) file: String,
    pub(super) results: String,
    pub(super) stage: &'static str,
    /// Whether some trials have not ended.
    pub(super) partial: bool,
    pub(super) uploaded_ms: i64,
    pub(super) generated_ms: i64,
    pub(super) ended_ms: Option<i64>,
    pub(super) counts: Counts,
    pub(super) totals: Totals,
    pub(super) ranking: Option<RankedBy>,
    /// The best trial so far, if it still trains.
    pub(super) leader: Option<Leader>,
    /// What a person should know before trusting the results.
    pub(super) warnings: Vec<String>,
    /// Parameters that differ between trials, in the file's order.
    pub(super) columns: Vec<Column>,
    /// Parameters that have the same value in all trials.
    pub(super) constants: Vec<Constant>,
    /// Metric names. The one that ranks comes first.
    pub(super) metrics: Vec<String>,
    /// Trials, best first.
    pub(super) rows: Vec<Row>,
    /// The parameter sets of a sweep that repeats them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sets: Option<Sets>,
    /// The suggestions of a sweep that makes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<Searched>,
    /// The rungs of a sweep with early stopping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rungs: Option<Rungs>,
    pub(super) curves: Vec<CurveLine>,
    pub(super) importance: Option<Importance>,
    pub(super) cost: Option<CostTotals>,
    pub(super) failures: Failures,
    pub(super) source: Option<String>,
    /// Sentences about what the page leaves out, and where that is.
    pub(super) omitted: Vec<String>,
    pub(super) version: &'static str,
}

/// How many trials have each standing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) trials: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) cancelled: usize,
    pub(super) stopped: usize,
    pub(super) running: usize,
    pub(super) waiting: usize,
}

impl Counts {
    /// Returns how many trials have ended for good.
    pub(super) fn ended(&self) -> usize {
        self.succeeded + self.failed + self.cancelled + self.stopped
    }
}

/// Sums over all trials, including those that the page does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Totals {
    pub(super) attempts: usize,
    pub(super) interruptions: usize,
    pub(super) zone_moves: usize,
    pub(super) run_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RankedBy {
    pub(super) metric: String,
    pub(super) maximize: bool,
    /// Whether the sweep file names the metric.
    pub(super) stated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Leader {
    pub(super) index: u32,
    /// The trial's value of the metric that ranks.
    pub(super) value: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// How the axis of a parameter is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// The parameter is a number on a linear scale.
    Linear,
    /// The parameter is a positive number on a logarithmic scale, because its range is wide.
    Log,
    /// The parameter is anything else.
    Category,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: String,
}

/// One trial's row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The rank among the trials that succeeded with a finite value, or that of the parameter set.
    pub(super) rank: Option<usize>,
    /// The number of the parameter set, where the sweep has repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) set: Option<u64>,
    pub(super) index: u32,
    pub(super) status: Standing,
    /// The name of the person who cancelled the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cancelled_by: Option<String>,
    /// Why the trial was stopped early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    /// The newest value of the metric that ranks, if it is NaN or infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diverged: Option<String>,
    /// The values in the order of [`Report::metrics`].
    pub(super) metrics: Vec<Option<f64>>,
    /// The values in the order of [`Report::columns`]: a number, a text, or null where the trial has none.
    pub(super) parameters: Vec<Value>,
    pub(super) seconds: f64,
    pub(super) interruptions: usize,
    pub(super) attempts: Vec<AttemptBar>,
    /// What was unusual with the trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<TrialCost>,
}

/// The parameter sets of a sweep that repeats them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Sets {
    /// The parameter that differs between the trials of a set.
    pub(super) parameter: String,
    /// How many sets the sweep has, started or not.
    pub(super) count: u64,
    /// How many trials each set has.
    pub(super) repeats: usize,
    /// The sets, best first.
    pub(super) rows: Vec<SetRow>,
}

/// One parameter set's row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SetRow {
    /// The rank; absent for a set in which some trial has no result.
    pub(super) rank: Option<usize>,
    pub(super) number: u32,
    /// The trials of the set that have started.
    pub(super) trials: Vec<u32>,
    pub(super) mean: Option<Mean>,
    /// Why results are missing.
    pub(super) lacks: Option<String>,
    /// Whether some missing results will never come.
    pub(super) is_flagged: bool,
    /// The values in the order of [`Report::columns`], with null for the parameter that differs between the trials of a
    /// set.
    pub(super) parameters: Vec<Value>,
}

/// The suggestions of a search, and the values that were found with them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Searched {
    /// The suggestions by trial. With repeats only the first trial of a set has one.
    pub(super) predictions: Vec<Prediction>,
    /// How many suggestions there are, including those that the page does not show.
    pub(super) suggestions: usize,
    /// How many trials have run and ended.
    pub(super) ended: usize,
    /// Each trial whose result was better than all before it.
    pub(super) best: Vec<BestSoFar>,
}

/// One suggestion: the value of the metric that the model predicted, and the value that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Prediction {
    pub(super) index: u32,
    pub(super) status: Standing,
    /// `model`, `initial` or `random`.
    pub(super) basis: &'static str,
    pub(super) mean: Option<f64>,
    /// The standard deviation of the prediction.
    pub(super) deviation: Option<f64>,
    /// The trial's value so far, or the mean of its set's results.
    pub(super) found: Option<f64>,
    /// Whether that value ranks the trial or its set.
    pub(super) is_result: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct BestSoFar {
    /// The trial whose end gave the better value.
    pub(super) index: u32,
    pub(super) at_ms: i64,
    /// How many trials had ended by then, including this one.
    pub(super) ended: usize,
    /// The value of the trial, or the mean of its set.
    pub(super) value: f64,
}

/// The rungs of a sweep with early stopping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Rungs {
    /// The name of the rule, as the sweep file has it.
    pub(super) rule: &'static str,
    pub(super) unit: Unit,
    /// The first rungs.
    pub(super) steps: Vec<u64>,
    pub(super) count: usize,
}

/// One attempt as a bar of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AttemptBar {
    pub(super) number: u32,
    pub(super) zone: Option<String>,
    pub(super) instance: Option<String>,
    pub(super) started_ms: Option<i64>,
    /// The end, or the time of the page if the attempt still runs.
    pub(super) stopped_ms: Option<i64>,
    pub(super) ending: Ending,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: Option<String>,
    /// The zone of the attempt before, if it was another one.
    pub(super) moved_from: Option<String>,
    /// How far it has fetched its data sets.
    pub(super) fetch: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ending {
    Running,
    Succeeded,
    Failed,
    Interrupted,
    /// The attempt is over, and nothing shows how it ended.
    Unknown,
}

/// One trial's curve of one metric: `[step, value, step, value, …]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CurveLine {
    pub(super) metric: usize,
    pub(super) index: u32,
    pub(super) points: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct TrialCost {
    pub(super) spot: f64,
    pub(super) on_demand: f64,
    pub(super) storage: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CostTotals {
    pub(super) priced_trials: usize,
    pub(super) spot: f64,
    pub(super) on_demand: f64,
    pub(super) storage: f64,
    pub(super) control_plane: Option<f64>,
    /// The sum of all that was paid.
    pub(super) paid: f64,
    /// Share of the on-demand price that was not paid. It is negative if Spot was more expensive.
    pub(super) saving: Option<f64>,
}

/// Failed trials: all of them by cause, and the first ones with the last lines of their logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Failures {
    pub(super) causes: Vec<Cause>,
    pub(super) trials: Vec<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Cause {
    pub(super) cause: String,
    pub(super) advice: Option<String>,
    pub(super) count: usize,
    /// The first trials with this cause.
    pub(super) indices: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    pub(super) index: u32,
    pub(super) cause: String,
    pub(super) exit_code: Option<i32>,
    pub(super) attempts: usize,
    pub(super) log_lines: Vec<String>,
}
