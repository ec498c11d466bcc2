//! The parameters of a trial, where the sweep has them suggested one by one: made when its first attempt claims it, from
//! what the other trials have reported, and committed with its record. A repeated claim finds the same ones.
//!
//! Nothing is locked. Trials that others run count as pending. Two claims at the same moment do not know of each other:
//! their candidates differ by the trials' indexes. In a space with countable points they could still meet, so such a
//! point is reserved with the commit.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{Context, Decision, trial_claim, workspace};
use crate::event::TrialRequest;
use crate::input::Followup;
use crate::store::{Peer, PeerEnd, Reservation, Versioned, View};
use crate::sweep::{Plan, Ranking, Sweep};
use crate::trial::{Suggested, Trial};
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::rungs::{Curve, Rung};
use spotsweep_protocol::stop::StopReason;
use spotsweep_search::space::{Dimension, Point};
use spotsweep_search::suggest::{self, Basis, End, Suggestion};
use spotsweep_sweep_file::Search;

/// Points that `exclude` has taken out before the trial is given up. Where a space has others at all, a few are enough.
const MOST_EXCLUDED: usize = 200;

/// The space is read: suggests the trial's parameters.
pub(super) fn space_read(view: &View, request: &TrialRequest, search: &Search, context: Context<'_>) -> Decision {
    let Some(Versioned { record: sweep @ Sweep { plan: Some(plan), .. }, .. }) = &view.sweep else {
        return Decision::ignore("no such sweep here");
    };
    let held = view.trial.as_ref().map(|held| &held.record);
    if let Err(reason) = trial_claim::check((sweep, plan), held, request) {
        return Decision::ignore(reason.to_string()).reply(Reply::Refused { reason });
    }
    let again = Followup::Compared(Box::new(request.clone()));
    if held.is_some_and(|trial| trial.suggested.is_some()) {
        return Decision::ignore("it has its parameters").next(again);
    }
    let (Some(metric), Some(peers)) = (&plan.metric, &view.peers) else {
        return Decision::illegal("a search without a metric, or without the other trials in view");
    };
    let Some(Chosen { parameters, basis }) = choose((plan, metric), search, peers, request.index) else {
        let reason = StopReason::NotFound { what: "parameter set that `exclude` leaves".to_owned() };
        return Decision::ignore(reason.to_string()).reply(Reply::Refused { reason });
    };
    let new = || Trial::new(request.sweep.clone(), request.index, request.job.clone());
    let mut trial = held.cloned().unwrap_or_else(new);
    let suggested =
        Suggested::new(&complete(plan, request.index, parameters.clone()), basis.map(|basis| in_values(basis, metric)));
    let what = format!("is given {}", suggested.text());
    trial.suggested = Some(suggested);
    let reserved = reservations(plan, search, &parameters, (request.index, basis));
    workspace::changed(sweep, held, trial, what, context).reserve(reserved).next(again)
}

/// The parameters of a set, and what they rest on; nothing where another trial of the set has them.
struct Chosen {
    parameters: Map<String, Value>,
    basis: Option<Basis>,
}

/// The parameter set that a trial belongs to.
fn set_of(plan: &Plan, index: u32) -> u32 {
    let of = |index: u32| plan.repeats.as_ref().map_or(u64::from(index), |repeats| repeats.set_of(index.into()));
    u32::try_from(of(index)).unwrap_or(index)
}

/// The set's parameters, with those that make them the trial's.
fn complete(plan: &Plan, index: u32, mut parameters: Map<String, Value>) -> Map<String, Value> {
    if let Some(repeats) = &plan.repeats {
        repeats.complete(index.into(), &mut parameters);
    }
    parameters
}

/// The parameters of the trial's set: what another trial of the set has, or what is suggested. `None` where `exclude`
/// leaves nothing.
fn choose(
    (plan, metric): (&Plan, &Ranking),
    search: &Search,
    peers: &BTreeMap<u32, Peer>,
    index: u32,
) -> Option<Chosen> {
    let (set, own) = (set_of(plan, index), |parameters: &str| serde_json::from_str(parameters).ok());
    let twin = peers.iter().find(|(other, _)| **other != index && set_of(plan, **other) == set);
    if let Some(parameters) = twin.and_then(|(_, peer)| own(peer.parameters.as_deref()?)) {
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
        trials.push(suggest::Trial { index: stand_in, point, rungs: Curve::new(), pace: None, end: None });
    }
    None
}

/// The other sets as a search sees them: with the mean of their trials that have finished.
fn observed(plan: &Plan, metric: &Ranking, search: &Search, peers: &BTreeMap<u32, Peer>) -> Vec<suggest::Trial> {
    let mut sets: BTreeMap<u32, Vec<&Peer>> = BTreeMap::new();
    for (index, peer) in peers.iter().filter(|(_, peer)| peer.end != Some(PeerEnd::Void)) {
        sets.entry(set_of(plan, *index)).or_default().push(peer);
    }
    let of_set = |(set, peers): (u32, Vec<&Peer>)| {
        let parameters = serde_json::from_str(peers.first()?.parameters.as_deref()?).ok()?;
        let (point, rungs): (Point, Curve) = (search.space.point(&parameters), costs(&peers.first()?.rungs, metric));
        Some(suggest::Trial { index: set, point, rungs, pace: None, end: end(&peers, metric) })
    };
    sets.into_iter().filter_map(of_set).collect()
}

fn end(peers: &[&Peer], metric: &Ranking) -> Option<End> {
    let finished: Vec<f64> = peers
        .iter()
        .filter_map(|peer| match peer.end {
            Some(PeerEnd::Finished(value)) => Some(cost(value, metric)),
            Some(PeerEnd::Stopped | PeerEnd::Failed | PeerEnd::Void) | None => None,
        })
        .collect();
    if !finished.is_empty() {
        return Some(End::Finished(finished.iter().sum::<f64>() / finished.len() as f64));
    }
    let all = |wanted: PeerEnd| peers.iter().all(|peer| peer.end == Some(wanted));
    if all(PeerEnd::Failed) {
        return Some(End::Failed);
    }
    peers.iter().any(|peer| peer.end == Some(PeerEnd::Stopped)).then_some(End::Stopped)
}

fn cost(value: f64, metric: &Ranking) -> f64 {
    if metric.maximize { -value } else { value }
}

fn costs(curve: &Curve, metric: &Ranking) -> Curve {
    let rung = |rung: &Rung| Rung {
        value: cost(rung.value, metric),
        best: cost(rung.best, metric),
        mean: cost(rung.mean, metric),
    };
    curve.iter().map(|(step, of)| (*step, rung(of))).collect()
}

/// What a suggestion rests on, in values of the metric.
fn in_values(basis: Basis, metric: &Ranking) -> Basis {
    match basis {
        Basis::Model { mean, deviation } => Basis::Model { mean: cost(mean, metric), deviation },
        Basis::Initial | Basis::Random => basis,
    }
}

/// What no other claim may take at the same moment: the point, where points are countable, which is its set's; and the
/// choice for a set of several trials, which is the trial's.
fn reservations(
    plan: &Plan,
    search: &Search,
    parameters: &Map<String, Value>,
    (index, basis): (u32, Option<Basis>),
) -> Vec<Reservation> {
    let space = search.space.space();
    let is_countable = space.dimensions.iter().all(|dimension| !matches!(dimension, Dimension::Real));
    let set = set_of(plan, index);
    let digest = || Sha256::digest(Value::Object(parameters.clone()).to_string());
    let key = || digest().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let point = is_countable.then(|| Reservation { key: key(), owner: set });
    let of_set =
        (plan.repeats.is_some() && basis.is_some()).then(|| Reservation { key: format!("set-{set}"), owner: index });
    point.into_iter().chain(of_set).collect()
}

#[cfg(test)]
mod tests;
