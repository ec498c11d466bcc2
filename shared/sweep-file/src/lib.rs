//! The sweep file: what a person drops, and what it says.
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
mod settings;
mod size;
mod slips;
mod source;
mod space;
mod template;
mod tree;
pub mod trials;
mod values;

pub use hidden::Hidden;
pub use plan::Search;
pub use problem::{Problem, Rejected, Warning};
pub use repeats::Repeats;
pub use search_space::{MOST_STEPS, SearchSpace};
pub use settings::{
    ATTEMPTS, Budget, Code, InitializationRate, Keep, Notifications, Outputs, Resources, Settings, Stalled, Start,
    Workspace, initialization_rate,
};

use problem::Report;

/// Largest sweep file. A plain list of 100 000 trials with four parameters each fits; whoever has more describes the
/// trials with `parameters`. Parsing such a list takes 150 MB, and the worst file of this size 360 MB: small enough for
/// a small function, which the file could otherwise bring down.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Most trials of one sweep: so many settle in the simulation, within the limits of the table and of Lambda
/// (`tests/tests/scale`).
pub const MAX_TRIALS: u64 = 100_000;

/// Most trials of a sweep that compares all of them with each other: with `method: bayes` or `early_terminate`.
pub const MAX_COMPARED_TRIALS: u64 = 10_000;

/// Everything that a valid file says. Cheap to keep.
#[derive(Clone, Debug)]
pub struct SweepFile {
    /// Where and how trials run.
    pub settings: Settings,
    /// What makes one trial better than another.
    pub metric: Option<MetricGoal>,
    /// When trials stop before their end, by that metric's costs.
    pub early_terminate: Option<Rule>,
    /// `early_terminate` as the file has it: its keys do not follow from the rule.
    pub early_terminate_written: Option<Map<String, Value>>,
    /// What the rungs of that rule are counted by.
    pub rungs_by: Unit,
    /// Patterns that find metrics in the trainings' output.
    pub metrics: Vec<MetricPattern>,
    /// A name for people, from `name`.
    pub name: Option<String>,
    /// Where W&B puts the trials' runs.
    pub wandb: WandbPlace,
    /// What the author should know of a file that is valid, from top to bottom: at most 22.
    pub warnings: Vec<Warning>,
    /// Where the credentials of URLs are in it.
    pub hidden: Hidden,
    plan: plan::Plan,
    /// An unfinished problem at each setting's place; that of the file as a whole under the empty name.
    places: BTreeMap<String, Problem>,
}

/// What makes one trial better than another.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricGoal {
    /// Name as training code reports it.
    pub name: String,
    /// Which way is better.
    pub goal: Goal,
    /// Which of a trial's values counts.
    pub over: Over,
    /// The value at which the sweep has what it is for: no further trial starts once one has reached it.
    pub target: Option<f64>,
}

impl MetricGoal {
    /// Whether `value` is as good as the target, or better. Never without a target.
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
    /// The newest, as W&B's summary has it: the one that the collected model has.
    #[default]
    Last,
    /// The best of all, for trials that keep their best checkpoint.
    Best,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Less is better; W&B's default.
    Minimize,
    /// More is better.
    Maximize,
}

/// What is decided outside of the file: where it says nothing, or in place of what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Defaults {
    /// In place of the file's `run_cap`, at least 1: `submit --trials`. A list of trials has no such limit.
    pub run_cap: Option<u64>,
    /// Trials of a random search without `run_cap`. Counts as 1 if it is 0, and as [`MAX_TRIALS`] beyond that.
    pub trials: u64,
}

impl Default for Defaults {
    /// 30 trials: enough to see which parameters matter, and cheap if the file should have had a number.
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
/// `name` is for messages (file name or key). `version` seeds random sampling when the file fixes no seed: the same
/// version gives the same trials. What a valid file should be looked at for is in [`SweepFile::warnings`].
///
/// # Errors
/// Everything that is wrong with the file, and its warnings.
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
    /// How many trials there are: at least 1 and at most [`MAX_TRIALS`].
    pub fn trial_count(&self) -> u64 {
        self.plan.trial_count()
    }

    /// The length of a full training that the rungs of early termination were made for: `max_iter` of hyperband, with
    /// `s`. In the unit of the rungs; `None` where they have no end.
    pub fn training_length(&self) -> Option<u64> {
        let written = self.early_terminate_written.as_ref().filter(|written| written.contains_key("s"))?;
        // A whole number may be written with a point or an exponent.
        written.get("max_iter")?.as_f64().map(|length| length as u64)
    }

    /// Which trials are repeats of one parameter set, where the file asks for some.
    pub fn repeats(&self) -> Option<&Repeats> {
        self.plan.repeats.as_ref()
    }

    /// The trials' parameters in order, computed as they are asked for.
    ///
    /// A trial of [`Self::search`] has the parameters with one value only: the others are suggested when it begins.
    pub fn trials(&self) -> impl Iterator<Item = Map<String, Value>> + '_ {
        self.plan.trials()
    }

    /// What the parameters are searched in, of a file with `method: bayes`.
    pub fn search(&self) -> Option<&Search> {
        self.plan.search()
    }

    /// A problem with what the file says about `setting` (a key under `spotsweep:`, or `program`) that only AWS or
    /// the deployment can tell, such as a queue that does not exist.
    ///
    /// Points at the setting, or at the start of a file that does not have it.
    pub fn problem_at(&self, setting: &str, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let place = self.places.get(setting).or_else(|| self.places.get("")).cloned();
        let place = place.unwrap_or_else(|| source::unplaced(""));
        Problem { message: message.into(), help: help.into(), ..place }
    }
}
