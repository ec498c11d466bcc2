//! Which parameters a trial gets from a search: for the claim that asks, and for people who want to know what comes next.

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

/// Points that `exclude` has taken out before the trial is given up. Where a space has others at all, a few are enough.
const MOST_EXCLUDED: usize = 200;

/// Parameters, and what they rest on: nothing where another trial of the set has the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Of a parameter set; of a trial with the value that repeats it.
    pub parameters: Map<String, Value>,
    /// In costs; of a trial in values of the metric.
    pub basis: Option<Basis>,
}

impl Chosen {
    /// Of a set, as a trial of it has them.
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

/// The parameters that a trial would get by the records of all trials. `None` where the sweep has no metric, or `exclude`
/// leaves nothing.
pub fn next(plan: &Plan, search: &Search, trials: &[Trial], index: u32) -> Option<Chosen> {
    let peers = trials.iter().filter_map(|trial| Some((trial.index, Peer::of(trial, Some(plan))?))).collect();
    let metric = plan.metric.as_ref()?;
    Some(choose((plan, metric), search, &peers, index)?.of_trial(plan, metric, index))
}

/// The parameter set that a trial belongs to.
pub fn set_of(plan: &Plan, index: u32) -> u32 {
    let of = |index: u32| plan.repeats.as_ref().map_or(u64::from(index), |repeats| repeats.set_of(index.into()));
    u32::try_from(of(index)).unwrap_or(index)
}

/// The parameters of the trial's set: what another trial of the set has, or what is suggested. `None` where `exclude`
/// leaves nothing.
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
        // Counts as taken.
        let stand_in = u32::MAX.saturating_sub(u32::try_from(excluded).unwrap_or(0));
        trials.push(suggest::Trial { index: stand_in, point, rungs: Curve::new(), end: None });
    }
    None
}

/// The other sets as a search sees them, one by one: with the mean of their trials.
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

/// The mean of a set's trials at the rungs that each of them has reached: a mean of those alone that went on would be
/// too good. Of a set that counts with what has finished, only those trials.
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

/// How a set has ended. One that the leaderboard gives no rank, because a trial has failed, diverged or was stopped, is
/// no good result by its other trials.
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
