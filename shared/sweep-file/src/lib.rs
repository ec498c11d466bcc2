//! The dropped sweep file: parsing, checking, and expansion into trials.
//!
//! Two forms, both described in `docs/sweep-file.md`: a plain list of parameter mappings, one per trial, and a W&B
//! sweep config with `method: grid`, `random` or `bayes`. Either may have a `spotsweep:` mapping with everything else.
//!
//! [`parse`] reports every problem at once, each with its place and how to fix it. A valid file is a [`SweepFile`],
//! which never holds the expanded trials: [`SweepFile::trials`] computes them one by one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spotsweep_protocol::claim::WandbPlace;
use spotsweep_protocol::metric::MetricPattern;
use spotsweep_protocol::rungs::Unit;
use spotsweep_search::stop::Rule;

mod choice;
mod conditions;
mod distribution;
mod document;
mod early_terminate;
pub mod expected;
mod fields;
mod hidden;
mod layout;
mod levels;
mod managed_secret;
mod meant;
mod metric;
mod names;
mod node;
mod parameter;
mod parameters;
mod plan;
mod problem;
mod program;
mod quantity;
#[cfg(test)]
mod reference;
mod repeats;
mod runnable;
mod scalar;
pub mod schema;
mod search_space;
mod secret_name;
mod secret_source;
mod settings;
mod size;
mod slips;
mod source;
mod space;
mod template;
mod tree;
pub mod trials;
mod unknown_keys;
mod values;

pub use hidden::Hidden;
pub use plan::Search;
pub use problem::{Problem, Rejected, Warning};
pub use repeats::Repeats;
pub use search_space::{MOST_STEPS, SearchSpace};
pub use secret_name::secret_name_problem;
pub use secret_source::SecretSource;
pub use settings::{
    ATTEMPTS, Budget, Code, DataSource, Folder, InitializationRate, Keep, Notifications, Outputs, Resources, Settings,
    Stalled, Start, Workspace, initialization_rate, variable_problem,
};

use problem::Report;

/// The largest sweep file in bytes. A plain list of 100 000 trials with four parameters each fits. Longer lists can be
/// written with `parameters`. Parsing such a list takes 150 MB, and the worst file of this size 360 MB, which fits into
/// a small function.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// The most trials of one sweep. So many settle in the simulation, within the limits of the table and of Lambda
/// (`tests/tests/scale`).
pub const MAX_TRIALS: u64 = 100_000;

/// The most trials of a sweep that compares them with each other: with `method: bayes` or `early_terminate`.
pub const MAX_COMPARED_TRIALS: u64 = 10_000;

/// The settings and the plan of a valid file. It does not hold the expanded trials, so it is small.
#[derive(Clone, Debug)]
pub struct SweepFile {
    /// Where and how trials run.
    pub settings: Settings,
    /// The metric that ranks the trials.
    pub metric: Option<MetricGoal>,
    /// The rule that stops trials before their end, by that metric's costs.
    pub early_terminate: Option<Rule>,
    /// `early_terminate` as written in the file, because its keys cannot be computed from the rule.
    pub early_terminate_written: Option<Map<String, Value>>,
    /// The unit in which the rungs of that rule are counted.
    pub rungs_by: Unit,
    /// Patterns that find metrics in the trainings' output.
    pub metrics: Vec<MetricPattern>,
    /// A name for people, from `name`.
    pub name: Option<String>,
    /// Where W&B puts the trials' runs.
    pub wandb: WandbPlace,
    /// What the author should know about a valid file, from top to bottom: at most 22 warnings.
    pub warnings: Vec<Warning>,
    /// The places of the credentials of URLs in the file.
    pub hidden: Hidden,
    plan: plan::Plan,
    /// A problem without text at each setting's place. The one of the whole file has the empty name.
    places: BTreeMap<String, Problem>,
}

/// The metric that ranks the trials, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricGoal {
    /// The metric's name as training code reports it.
    pub name: String,
    /// Which way is better.
    pub goal: Goal,
    /// Which of a trial's values counts.
    pub over: Over,
    /// The value at which the sweep has reached its aim. No further trial starts once a trial has reached it.
    pub target: Option<f64>,
}

impl MetricGoal {
    /// Whether `value` is as good as the target, or better. Always false without a target.
    pub fn is_reached_by(&self, value: f64) -> bool {
        self.target.is_some_and(|target| match self.goal {
            Goal::Minimize => value <= target,
            Goal::Maximize => value >= target,
        })
    }
}

/// Which of the values that a trial reports counts as its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// The newest value, as in W&B's summary: the collected model has this one.
    #[default]
    Last,
    /// The best value, for trials that keep their best checkpoint.
    Best,
}

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Less is better; W&B's default.
    Minimize,
    /// More is better.
    Maximize,
}

/// Values from outside of the file: defaults for absent keys, and replacements of written ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Defaults {
    /// Replaces the file's `run_cap`, at least 1: `submit --trials`. It does not limit a list of trials.
    pub run_cap: Option<u64>,
    /// Trials of a random search without `run_cap`. 0 counts as 1, and more than [`MAX_TRIALS`] as [`MAX_TRIALS`].
    pub trials: u64,
}

impl Default for Defaults {
    /// Returns 30 trials: enough to show which parameters matter, and cheap if the author has forgotten the number.
    fn default() -> Self {
        Self { run_cap: None, trials: 30 }
    }
}

/// Parses and checks a sweep file, with the [`Defaults`] of a deployment that sets none.
///
/// # Errors
/// As [`parse_with`].
pub fn parse(name: &str, version: &str, bytes: &[u8]) -> Result<SweepFile, Rejected> {
    parse_with(name, version, bytes, &Defaults::default())
}

/// Parses and checks a sweep file.
///
/// `name` is the file name or key for messages. `version` seeds random sampling if the file sets no seed: the same
/// version gives the same trials. [`SweepFile::warnings`] has what the author of a valid file should know.
///
/// # Errors
/// Returns everything that is wrong with the file, and its warnings.
pub fn parse_with(name: &str, version: &str, bytes: &[u8], defaults: &Defaults) -> Result<SweepFile, Rejected> {
    let text = source::decode(name, bytes).map_err(|problem| vec![*problem])?;
    let mut report = Report::new(name, text);
    let file = document::read(text, version, defaults, &mut report);
    match file {
        Some(file) if report.is_empty() => {
            let mut warnings = report.into_warnings();
            warnings.extend(file.long_without_checkpoints().filter(|_| !file.settings.has_workspace()));
            Ok(SweepFile { warnings, ..file })
        }
        Some(_) | None => Err(report.into_rejected()),
    }
}

impl SweepFile {
    /// Returns the number of trials: at least 1 and at most [`MAX_TRIALS`].
    pub fn trial_count(&self) -> u64 {
        self.plan.trial_count()
    }

    /// Returns the training length from which the rungs of early termination were computed: hyperband's `max_iter` if
    /// it has `s`. The unit is that of the rungs; `None` if they have no end.
    pub fn training_length(&self) -> Option<u64> {
        let written = self.early_terminate_written.as_ref().filter(|written| written.contains_key("s"))?;
        // A whole number may be written with a point or an exponent.
        written.get("max_iter")?.as_f64().map(|length| length as u64)
    }

    /// Returns which trials repeat one parameter set, if the file sets `repeats`.
    pub fn repeats(&self) -> Option<&Repeats> {
        self.plan.repeats.as_ref()
    }

    /// Returns the trials' parameters in order, computed one by one.
    ///
    /// A trial of [`Self::search`] has only the parameters with one value. The others are suggested when it begins.
    pub fn trials(&self) -> impl Iterator<Item = Map<String, Value>> + '_ {
        self.plan.trials()
    }

    /// Returns the search of a file with `method: bayes`.
    pub fn search(&self) -> Option<&Search> {
        self.plan.search()
    }

    /// Returns a problem with `setting` (a key under `spotsweep:`, or `program`) that only AWS or the deployment can
    /// find, such as a queue that does not exist.
    ///
    /// It points at the setting, or at the start of a file that does not have it.
    pub fn problem_at(&self, setting: &str, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let place = self.places.get(setting).or_else(|| self.places.get("")).cloned();
        let place = place.unwrap_or_else(|| source::unplaced(""));
        Problem { message: message.into(), help: help.into(), ..place }
    }
}
