//! The parameters that a trial gets from a search, for a claim and for commands that show what comes next.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::peer::{Peer, PeerEnd};
use crate::sets::Mean;
use spotsweep_protocol::rungs::{Curve, Rung};
use spotsweep_records::sweep::{Plan, Ranking};
use spotsweep_records::trial::Trial;
use spotsweep_search::space::Point;
use spotsweep_search::suggest::{self, Basis, End, Suggestion};
use spotsweep_sweep_file::Search;

/// After how many excluded points no parameters are chosen. If `exclude` leaves any part of a space, a few tries find
/// it.
const MOST_EXCLUDED: usize = 200;

/// Chosen parameters and their basis. There is no basis if another trial of the set has the same parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The parameters of a set, or those of a trial, which also have the value that repeats the set.
    pub parameters: Map<String, Value>,
    /// The basis, in costs for a set and in values of the metric for a trial.
    pub basis: Option<Basis>,
}

impl Chosen {
    /// Converts the choice for a set to that for one trial of it.
    pub fn of_trial(mut self, plan: &Plan, metric: &Ranking, index: u32) -> Self {
        if let Some(repeats) = &plan.repeats {
            repeats.complete(index.into(), &mut self.parameters);
        }
        let basis = self.basis.map(|basis| match basis {
            Basis::Model { mean, deviation } => Basis::Model { mean: metric.cost(mean), deviation },
            Basis::Initial | Basis::Random => basis,
        });
        Self { basis, ..self }
    }
}

/// Returns the parameters that a trial would get, by the records of all trials. It is `None` if the sweep has no
/// metric, or if `exclude` leaves nothing.
pub fn next(plan: &Plan, search: &Search, trials: &[Trial], index: u32) -> Option<Chosen> {
    let peers = trials.iter().filter_map(|trial| Some((trial.index, Peer::of(trial, Some(plan))?))).collect();
    let metric = plan.metric.as_ref()?;
    Some(choose((plan, metric), search, &peers, index)?.of_trial(plan, metric, index))
}

/// Returns the number of the trial's parameter set.
pub fn set_of(plan: &Plan, index: u32) -> u32 {
    let of = |index: u32| plan.repeats.as_ref().map_or(u64::from(index), |repeats| repeats.set_of(index.into()));
    u32::try_from(of(index)).unwrap_or(index)
}

/// Returns the parameters of the trial's set: those that another trial of the set has, or suggested ones. It is `None`
/// if `exclude` leaves nothing.
pub fn choose(
    (plan, metric): (&Plan, &Ranking),
    search: &Search,
    peers: &BTreeMap<u32, Peer>,
    index: u32,
) -> Option<Chosen> {
    let (set, own) = (set_of(plan, index), |parameters: &str| serde_json::from_str(parameters).ok());
    let mut twins = peers.iter().filter(|(other, _)| **other != index && set_of(plan, **other) == set);
    if let Some(parameters) = twins.find_map(|(_, peer)| own(peer.parameters.as_deref()?)) {
        return Some(Chosen { parameters, basis: None });
    }
    let space = search.space.space();
    let mut trials = observed(plan, metric, search, peers);
    for excluded in 0..MOST_EXCLUDED {
        let Suggestion { point, basis } = suggest::suggest(&space, &trials, search.seed, set);
        let pinned = search.space.pinned(set.into(), &point);
        if let Some(parameters) = search.space.parameters(&pinned).or_else(|| search.space.parameters(&point)) {
            return Some(Chosen { parameters, basis: Some(basis) });
        }
        // An excluded point counts as one that another trial has.
        let stand_in = u32::MAX.saturating_sub(u32::try_from(excluded).unwrap_or(0));
        trials.push(suggest::Trial { index: stand_in, point, rungs: Curve::new(), end: None });
    }
    None
}

/// Returns the parameter sets as the search needs them, each with the mean of its trials.
pub fn observed(plan: &Plan, metric: &Ranking, search: &Search, peers: &BTreeMap<u32, Peer>) -> Vec<suggest::Trial> {
    let mut sets: BTreeMap<u32, Vec<&Peer>> = BTreeMap::new();
    for (index, peer) in peers.iter().filter(|(_, peer)| peer.end != Some(PeerEnd::Void)) {
        sets.entry(set_of(plan, *index)).or_default().push(peer);
    }
    let of_set = |(set, peers): (u32, Vec<&Peer>)| {
        let parameters = serde_json::from_str(peers.iter().find_map(|peer| peer.parameters.as_deref())?).ok()?;
        let (end, point): (_, Point) = (end(&peers, metric), search.space.point(&parameters));
        Some(suggest::Trial { index: set, point, rungs: rungs(&peers, end, metric), end })
    };
    sets.into_iter().filter_map(of_set).collect()
}

/// Returns the mean of a set's trials at the rungs that each of them has reached. A mean of only those that continued
/// would be too good. If the set counts with the trials that have finished, only their rungs are used.
fn rungs(peers: &[&Peer], end: Option<End>, metric: &Ranking) -> Curve {
    let counts = |peer: &&&Peer| {
        let has_finished = matches!(peer.end, Some(PeerEnd::Finished(_)));
        !peer.rungs.is_empty() && (has_finished || !matches!(end, Some(End::Finished(_))))
    };
    let curves: Vec<Curve> = peers.iter().filter(counts).map(|peer| metric.costs(&peer.rungs)).collect();
    let at = |step: &u64| {
        let rungs: Vec<&Rung> = curves.iter().map(|curve| curve.get(step)).collect::<Option<_>>()?;
        let mean = |pick: fn(&Rung) -> f64| rungs.iter().map(|rung| pick(rung) / rungs.len() as f64).sum();
        let rung = Rung { value: mean(|rung| rung.value), best: mean(|rung| rung.best), mean: mean(|rung| rung.mean) };
        Some((*step, rung))
    };
    curves.iter().take(1).flat_map(|curve| curve.keys()).filter_map(at).collect()
}

/// Returns how a set has ended. A set that has no rank because a trial failed, diverged or was stopped does not count
/// as a good result by its other trials.
fn end(peers: &[&Peer], metric: &Ranking) -> Option<End> {
    let is = |wanted: PeerEnd| peers.iter().any(|peer| peer.end == Some(wanted));
    let finished = |peer: &&Peer| match peer.end {
        Some(PeerEnd::Finished(value)) => Some(metric.cost(value)),
        Some(PeerEnd::Stopped | PeerEnd::Failed | PeerEnd::Void) | None => None,
    };
    let finished: Vec<f64> = peers.iter().filter_map(finished).collect();
    if is(PeerEnd::Failed) {
        return Some(End::Failed);
    }
    if finished.iter().any(|cost| !cost.is_finite()) {
        return Some(End::Finished(f64::NAN));
    }
    if is(PeerEnd::Stopped) {
        return Some(End::Stopped);
    }
    Mean::of(&finished).map(|mean| End::Finished(mean.mean))
}
