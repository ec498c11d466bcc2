//! The suggested parameters of a trial. They are chosen when its first attempt claims it, from what the other trials
//! have reported, and are committed with its record. A repeated claim gets the same ones.
//!
//! Nothing is locked. Trials that run count as pending. Two concurrent claims do not know of each other, but their
//! candidates differ, because they depend on the trials' indexes. In a space of countable points both could still
//! choose the same one, so such a point is reserved with the commit.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Context, Decision, trial_claim, workspace};
use crate::event::TrialRequest;
use crate::input::Followup;
use crate::store::{Reservation, View};
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::hexadecimal;
use spotsweep_ranking::suggestion::{Chosen, choose, set_of};
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::{Suggested, Trial};
use spotsweep_search::space::Dimension;
use spotsweep_sweep_file::Search;

/// Suggests the trial's parameters, once the space is read.
pub(super) fn space_read(view: &View, request: &TrialRequest, search: &Search, context: Context<'_>) -> Decision {
    let held = view.trial.as_ref().map(|held| &held.record);
    let (sweep, plan) = match trial_claim::check(view, request) {
        Ok((sweep, plan, _)) => (sweep, plan),
        Err(reason) => return Decision::ignore(reason.to_string()).reply(Reply::Refused { reason }),
    };
    let again = Followup::Compared(Box::new(request.clone()));
    if held.is_some_and(|trial| trial.suggested.is_some()) {
        return Decision::ignore("it has its parameters").next(again);
    }
    let (Some(metric), Some(peers)) = (&plan.metric, &view.peers) else {
        return Decision::illegal("a search without a metric, or without the other trials in view");
    };
    let Some(chosen) = choose((plan, metric), search, peers, request.index) else {
        let reason = StopReason::NotFound { what: "parameter set that `exclude` leaves".to_owned() };
        return Decision::ignore(reason.to_string()).reply(Reply::Refused { reason });
    };
    let new = || Trial::new(request.sweep.clone(), request.index, request.job.clone());
    let mut trial = held.cloned().unwrap_or_else(new);
    let reserved = reservations(plan, search, &chosen, request.index);
    let Chosen { parameters, basis } = chosen.of_trial(plan, metric, request.index);
    let suggested = Suggested::new(&parameters, basis);
    let what = format!("is given {}", suggested.text());
    trial.suggested = Some(suggested);
    workspace::changed(sweep, held, trial, what, context).reserve(reserved).next(again)
}

/// Returns what no concurrent claim may choose too. For a space of countable points that is the point, with the set as
/// its owner. For a set of several trials it is the choice for the set, with the trial as its owner. A trial that has
/// found its set's choice needs neither.
fn reservations(plan: &Plan, search: &Search, chosen: &Chosen, index: u32) -> Vec<Reservation> {
    if chosen.basis.is_none() {
        return Vec::new();
    }
    let space = search.space.space();
    let is_countable = space.dimensions.iter().all(|dimension| !matches!(dimension, Dimension::Real));
    let set = set_of(plan, index);
    let digest = || Sha256::digest(Value::Object(chosen.parameters.clone()).to_string());
    let key = || hexadecimal(&digest()[..16]);
    let point = is_countable.then(|| Reservation { key: key(), owner: set });
    let of_set = plan.repeats.is_some().then(|| Reservation { key: format!("set-{set}"), owner: index });
    point.into_iter().chain(of_set).collect()
}

#[cfg(test)]
mod tests;
