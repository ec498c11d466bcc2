//! Counts the trials of a file, and checks that there are not too many.

use serde_json::Value;
use spotsweep_protocol::words::counted;

use super::plan::{Candidates, Plan, Shuffle};
use super::problem::{Place, Report};
use super::repeats::Wanted;
use super::space::{Condition, Dimension, Space, Values};
use super::{MAX_COMPARED_TRIALS, MAX_TRIALS};

/// The most work of counting the trials, in parameters and conditions looked at: about a second.
const MAX_WORK: u64 = 50_000_000;
/// The work of making one candidate, before its parameters are looked at.
const CANDIDATE_WORK: usize = 4;
/// The work of one name in a pattern over a list, whose values are compared as texts.
const LISTED_NAME_WORK: usize = 12;

/// The most random draws from which excluded combinations are removed.
const MAX_DRAWS: u64 = 2 * MAX_TRIALS;
/// The draws that show whether nearly everything is excluded.
const PROBE_DRAWS: u64 = 10_000;

/// The most bytes of one trial's parameters as JSON. The runner reads them with one request and passes them as
/// arguments.
const MAX_TRIAL_BYTES: u64 = 64 << 10;

/// The most bytes of all trials as JSON, computed from the largest one.
const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// The bounds on the number of trials.
pub(crate) struct Limits<'s> {
    /// The number of candidates: entries of the list or points of the grid. `None` if 64 bits cannot number them, or if
    /// they are drawn at random.
    pub(crate) points: Option<u64>,
    /// `run_cap` or `spotsweep: {trials: …}`, in parameter sets.
    pub(crate) cap: Option<u64>,
    /// The place of the list or of `parameters`.
    pub(crate) place: Place,
    pub(crate) repeats: Option<&'s Wanted>,
}

/// Counts the trials and makes the plan, if the sweep is not too large.
pub(crate) fn plan(
    candidates: Candidates,
    limits: &Limits<'_>,
    shuffle: Option<Shuffle>,
    report: &mut Report<'_>,
) -> Option<Plan> {
    let place = limits.place;
    let wanted = limits.cap.unwrap_or(u64::MAX);
    let bytes = largest_trial_bytes(&candidates) + limits.repeats.map_or(0, Wanted::bytes);
    if bytes > MAX_TRIAL_BYTES {
        let message = format!("one trial's parameters take {bytes} bytes as JSON; {MAX_TRIAL_BYTES} is the most");
        report.add(place, message, "put large values into a file and pass its name");
        return None;
    }
    let (count, limit) = match work_per_candidate(&candidates) {
        None => simple_count(&candidates, limits, wanted),
        Some(work) => surveyed_count(&candidates, limits, wanted, work, report)?,
    };
    let trials = count.saturating_mul(limits.repeats.map_or(1, Wanted::times));
    let (most, which) = match candidates {
        Candidates::Bayes(_) => (MAX_COMPARED_TRIALS, " with `method: bayes`"),
        Candidates::List { .. } | Candidates::Grid(_) | Candidates::Random { .. } => (MAX_TRIALS, ""),
    };
    if trials > most {
        let number =
            if limits.points.is_none() && count == u64::MAX { "more than 2^64".to_owned() } else { trials.to_string() };
        let message = format!("the sweep has {number} trials; {most} is the most{which}");
        let help = if limits.cap.is_some() {
            "lower `run_cap`"
        } else {
            "list fewer values, or limit the sweep with `run_cap`"
        };
        report.add(place, message, help);
        return None;
    }
    if count == 0 {
        report.add(place, "the sweep has no trials: everything is excluded", "correct `exclude` and `when`");
        return None;
    }
    if trials.saturating_mul(bytes) > MAX_TOTAL_BYTES {
        let message = format!(
            "{} of up to {bytes} bytes: more than {} MiB, the most a sweep may take",
            counted(trials, "trial"),
            MAX_TOTAL_BYTES >> 20
        );
        report.add(place, message, "list fewer or shorter values");
        return None;
    }
    let repeats = limits.repeats.map(|repeats| repeats.of(count));
    Some(Plan { candidates, limit, count, shuffle, repeats })
}

/// Checks whether so many trials can be compared with each other, as early termination does at `place`.
pub(crate) fn check_compared(trials: u64, place: Place, report: &mut Report<'_>) {
    if trials > MAX_COMPARED_TRIALS {
        let message =
            format!("the sweep has {trials} trials; {MAX_COMPARED_TRIALS} is the most with `early_terminate`");
        report.add(place, message, "lower `run_cap`, list fewer values, or delete `early_terminate`");
    }
}

/// Counts the trials if every candidate is one.
fn simple_count(candidates: &Candidates, limits: &Limits<'_>, wanted: u64) -> (u64, u64) {
    let points = match candidates {
        Candidates::Random { .. } => wanted,
        Candidates::List { .. } | Candidates::Grid(_) | Candidates::Bayes(_) => limits.points.unwrap_or(u64::MAX),
    };
    // A shuffled grid is visited in any order, but only as many points as trials are wanted.
    (points.min(wanted), points.min(wanted))
}

/// Returns the work for one candidate; `None` if no candidate needs to be looked at.
fn work_per_candidate(candidates: &Candidates) -> Option<u64> {
    let names = |patterns: &[Vec<Condition>]| -> usize { patterns.iter().map(Vec::len).sum() };
    let of_space = |space: &Space| {
        let conditions: usize = space.dimensions.iter().map(|dimension| dimension.when.len()).sum();
        let looked_at = space.dimensions.len() + conditions + names(&space.excluded) + names(&space.first);
        (looked_at + CANDIDATE_WORK) as u64
    };
    match candidates {
        Candidates::List { excluded, first, .. } => {
            let names: usize = excluded.iter().chain(first).map(Vec::len).sum();
            (names > 0).then_some((names * LISTED_NAME_WORK + CANDIDATE_WORK) as u64)
        }
        Candidates::Grid(space) => {
            let is_plain = space.conditional.is_empty() && space.excluded.is_empty() && space.first.is_empty();
            (!is_plain).then(|| of_space(space))
        }
        // Conditions remove parameters from a random trial, and `first` moves it. Only `exclude` removes the trial.
        Candidates::Random { space, .. } => (!space.excluded.is_empty()).then(|| of_space(space)),
        Candidates::Bayes(search) => {
            let space = search.space.inner();
            let is_plain = space.conditional.is_empty() && space.excluded.is_empty();
            (!is_plain).then(|| of_space(space))
        }
    }
}

/// Looks at the candidates. Returns the number of trials, and of the candidates that contain them.
fn surveyed_count(
    candidates: &Candidates,
    limits: &Limits<'_>,
    wanted: u64,
    work: u64,
    report: &mut Report<'_>,
) -> Option<(u64, u64)> {
    let affordable = MAX_WORK / work;
    let mut refuse = |number: u64, what: &str, help: &str| {
        let message = format!(
            "`when`, `exclude` and `first` would have to be checked on {number} {what}; {affordable} is the most with so many parameters and patterns"
        );
        report.add(limits.place, message, help);
        None
    };
    match candidates {
        Candidates::List { .. } | Candidates::Grid(_) => {
            let points = limits.points.unwrap_or(u64::MAX);
            if points > affordable {
                let help = "list fewer values or patterns, or choose `method: random` with a `run_cap`";
                return refuse(points, "combinations", help);
            }
            let (trials, _) = candidates.survey(u64::MAX, points);
            Some((trials.min(wanted), points))
        }
        Candidates::Bayes(search) => {
            let space = search.space.inner();
            let found = match limits.points.filter(|points| *points <= affordable) {
                Some(points) => space.grid_trials(points),
                // There are so many points that only `exclude` could leave too few. One remaining point is enough to go
                // on.
                None => (0..PROBE_DRAWS).find_map(|draw| space.random_point(search.seed, draw)).map_or(0, |_| wanted),
            };
            Some((found.min(wanted), found.min(wanted)))
        }
        Candidates::Random { .. } => {
            if wanted > MAX_TRIALS {
                // The number alone is too large, which the caller reports.
                return Some((wanted, wanted));
            }
            if wanted > affordable {
                return refuse(wanted, "draws", "lower `run_cap`, or exclude with fewer patterns");
            }
            let (found, probed) = candidates.survey(wanted, PROBE_DRAWS.min(affordable));
            let is_hopeless = found < wanted && found < probed / 100;
            let draws = MAX_DRAWS.min(affordable);
            let (trials, seen) = if is_hopeless { (found, probed) } else { candidates.survey(wanted, draws) };
            if trials < wanted {
                let message =
                    format!("`exclude` leaves only {trials} of the {} within {seen} draws", counted(wanted, "trial"));
                report.add(limits.place, message, "exclude less, or lower `run_cap`");
                return None;
            }
            Some((trials, seen))
        }
    }
}

/// Returns an upper bound on the bytes of one trial's parameters as JSON.
fn largest_trial_bytes(candidates: &Candidates) -> u64 {
    let json = |value: &Value| value.to_string().len() as u64;
    let of_dimension = |dimension: &Dimension| {
        let names: usize = dimension.path.iter().map(|name| name.len() + 6).sum();
        names as u64 + largest_value_bytes(&dimension.values, &json)
    };
    let of_space = |space: &Space| space.dimensions.iter().map(of_dimension).sum();
    match candidates {
        Candidates::List { trials, .. } => trials
            .iter()
            .map(|trial| serde_json::to_string(trial).map_or(0, |json| json.len() as u64))
            .max()
            .unwrap_or(0),
        Candidates::Grid(space) | Candidates::Random { space, .. } => of_space(space),
        Candidates::Bayes(search) => of_space(search.space.inner()),
    }
}

fn largest_value_bytes(values: &Values, json: &dyn Fn(&Value) -> u64) -> u64 {
    use super::distribution::Distribution;
    match values {
        Values::Counted(Distribution::Constant(value)) => json(value),
        Values::Counted(Distribution::Choice { values, .. }) => values.iter().map(json).max().unwrap_or(0),
        // The longest number has 24 characters: -2.2250738585072014e-308.
        Values::Counted(Distribution::Integers { .. } | Distribution::Real { .. })
        | Values::Range { .. }
        | Values::Real(_) => 24,
    }
}
