//! What the page shows, in the page's own words: this becomes its data, field by field.

use serde::Serialize;
use serde_json::Value;

use super::importance::Importance;
use spotsweep_protocol::rungs::Unit;
use spotsweep_ranking::sets::Mean;
use spotsweep_records::trial::Standing;

/// One page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub(super) sweep: String,
    pub(super) file: String,
    pub(super) results: String,
    pub(super) stage: &'static str,
    /// Whether trials are still to end.
    pub(super) partial: bool,
    pub(super) uploaded_ms: i64,
    pub(super) generated_ms: i64,
    pub(super) ended_ms: Option<i64>,
    pub(super) counts: Counts,
    pub(super) totals: Totals,
    pub(super) ranking: Option<RankedBy>,
    /// The trial that still trains and is better so far than all others.
    pub(super) leader: Option<Leader>,
    /// What a person should know before trusting the results.
    pub(super) warnings: Vec<String>,
    /// Parameters that differ between trials, in the file's order.
    pub(super) columns: Vec<Column>,
    /// Parameters that are the same in all trials.
    pub(super) constants: Vec<Constant>,
    /// Metric names, the one that ranks first.
    pub(super) metrics: Vec<String>,
    /// Trials from the best.
    pub(super) rows: Vec<Row>,
    /// Of a sweep that repeats its parameter sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sets: Option<Sets>,
    /// Of a sweep whose parameters are suggested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<Searched>,
    /// Of a sweep with early stopping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rungs: Option<Rungs>,
    pub(super) curves: Vec<CurveLine>,
    pub(super) importance: Option<Importance>,
    pub(super) cost: Option<CostTotals>,
    pub(super) failures: Failures,
    pub(super) source: Option<String>,
    /// What the page leaves out, and where that lies.
    pub(super) omitted: Vec<String>,
    pub(super) version: &'static str,
}

/// Trials by where they stand.
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
    /// Trials that have ended for good.
    pub(super) fn ended(&self) -> usize {
        self.succeeded + self.failed + self.cancelled + self.stopped
    }
}

/// Over all trials, shown or not.
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
    /// Whether the sweep file names it.
    pub(super) stated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Leader {
    pub(super) index: u32,
    /// Of the metric that ranks.
    pub(super) value: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// How a parameter's axis is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A number on an even scale.
    Linear,
    /// A positive number over a wide range.
    Log,
    /// Anything else.
    Category,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: String,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// Of those that succeeded with a finite value of the metric that ranks; or of its parameter set.
    pub(super) rank: Option<usize>,
    /// Its parameter set, where the sweep has repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) set: Option<u64>,
    pub(super) index: u32,
    pub(super) status: Standing,
    /// Who cancelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cancelled_by: Option<String>,
    /// Why it was stopped early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    /// The newest value of the metric that ranks, where it is NaN or infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diverged: Option<String>,
    /// By metric, as in [`Report::metrics`].
    pub(super) metrics: Vec<Option<f64>>,
    /// By parameter, as in [`Report::columns`]: a number, a text, or null where the trial has none.
    pub(super) parameters: Vec<Value>,
    pub(super) seconds: f64,
    pub(super) interruptions: usize,
    pub(super) attempts: Vec<AttemptBar>,
    /// What was not as usual with its workspace.
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
    /// Sets from the best.
    pub(super) rows: Vec<SetRow>,
}

/// One parameter set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SetRow {
    /// Of those each trial of which has a result.
    pub(super) rank: Option<usize>,
    pub(super) number: u32,
    /// Those of its trials that have started.
    pub(super) trials: Vec<u32>,
    pub(super) mean: Option<Mean>,
    /// Why results are lacking.
    pub(super) lacks: Option<String>,
    /// Whether they will never come.
    pub(super) is_flagged: bool,
    /// By parameter, as in [`Report::columns`]; null for the one that differs between the trials of a set.
    pub(super) parameters: Vec<Value>,
}

/// What a search has suggested, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Searched {
    /// By trial; with repeats only the first trial of a set has one.
    pub(super) predictions: Vec<Prediction>,
    /// How many there are, shown or not.
    pub(super) suggestions: usize,
    /// Trials that have run and ended.
    pub(super) ended: usize,
    /// Each time that a better value was found.
    pub(super) best: Vec<BestSoFar>,
}

/// One suggestion: what the model predicted, in values of the metric, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Prediction {
    pub(super) index: u32,
    pub(super) status: Standing,
    /// `model`, `initial` or `random`.
    pub(super) basis: &'static str,
    pub(super) mean: Option<f64>,
    /// Its standard deviation.
    pub(super) deviation: Option<f64>,
    /// The trial's value so far, or the mean of its set's results.
    pub(super) found: Option<f64>,
    /// Whether that ranks it.
    pub(super) is_result: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct BestSoFar {
    /// The trial that brought it.
    pub(super) index: u32,
    pub(super) at_ms: i64,
    /// Trials that had ended by then, this one included.
    pub(super) ended: usize,
    /// Of the trial, or the mean of its set.
    pub(super) value: f64,
}

/// Where trials are compared, of a sweep with early stopping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Rungs {
    /// The word of the sweep file.
    pub(super) rule: &'static str,
    pub(super) unit: Unit,
    /// The first of them.
    pub(super) steps: Vec<u64>,
    pub(super) count: usize,
}

/// One attempt in the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AttemptBar {
    pub(super) number: u32,
    pub(super) zone: Option<String>,
    pub(super) instance: Option<String>,
    pub(super) started_ms: Option<i64>,
    /// The end, or the page's own time where it still runs.
    pub(super) stopped_ms: Option<i64>,
    pub(super) ending: Ending,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: Option<String>,
    /// The zone of the attempt before, where that is another one.
    pub(super) moved_from: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ending {
    Running,
    Succeeded,
    Failed,
    Interrupted,
    /// It is over, and nothing tells how.
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
    /// All of what was paid.
    pub(super) paid: f64,
    /// Share of the on-demand price that was not paid; negative where spot was more expensive.
    pub(super) saving: Option<f64>,
}

/// Failed trials: all of them by cause, the first with their last words.
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
    /// The first of them.
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
