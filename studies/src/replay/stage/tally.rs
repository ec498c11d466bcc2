//! Counts interruptions and their costs, and makes the outcome of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spotsweep_records::sweep;
use spotsweep_world::trace::Trace;

use super::super::ledger::{Finish, Outcome};
use super::super::{Plan, Policy};
use super::{Stage, Trial};

impl Stage<'_> {
    /// Notes that an attempt stops because its instance ends. `progress` is how long it has trained, if it has begun to
    /// train.
    pub(super) fn interrupted(&mut self, trial: u32, progress: Option<f64>) {
        let now = self.harness.now;
        self.ledger.interruptions += 1;
        if let Some(progress) = progress {
            self.trials[trial as usize].stopped = Some((now, progress));
        }
    }

    /// Notes that the training goes on.
    pub(super) fn resumed(&mut self, trial: u32, from: f64) {
        let now = self.harness.now;
        if let Some((at, progress)) = self.trials[trial as usize].stopped.take() {
            self.ledger.lost_seconds += (progress - from).max(0.0);
            let waited = now.duration_since(at).as_secs_f64() - self.outage_seconds(at, now);
            self.ledger.delays_seconds.push(waited.max(0.0));
        }
    }

    /// Notes that the training is done.
    pub(super) fn finished(&mut self, trial: u32) {
        let (now, total) = (self.harness.now, self.total_seconds());
        let usd = self.ledger.dollars(self.policy, &self.plan.parameters, self.trace, self.started, now).total();
        let trial = &mut self.trials[trial as usize];
        (trial.finished, trial.finished_usd, trial.saved) = (Some(now), usd, total);
    }

    /// Notes the trials that the control plane has ended.
    pub(super) fn note_ended(&mut self) {
        if self.study.is_some_and(|study| study.ends) {
            let (now, trials) = (self.harness.now, &mut self.trials);
            self.harness.store.each_trial(|of| {
                if of.stopped.is_some()
                    && let Some(trial) = trials.get_mut(of.index as usize)
                {
                    trial.ended.get_or_insert(now);
                }
            });
        }
    }

    fn finish(&self, trial: &Trial) -> Option<Finish> {
        let seconds = trial.finished?.duration_since(self.started).as_secs_f64();
        Some(Finish { seconds, usd: trial.finished_usd })
    }

    fn outage_seconds(&self, from: Timestamp, until: Timestamp) -> f64 {
        let shared = self.outages.iter().map(|(began, ended)| {
            let seconds = until.min(*ended).duration_since(from.max(*began)).as_secs_f64();
            seconds.max(0.0)
        });
        shared.sum()
    }

    pub(super) fn outcome(mut self, end: Timestamp) -> Outcome {
        let now = self.harness.now;
        let useful_seconds: f64 = self.trials.iter().map(|trial| trial.saved).sum();
        // This training was lost, and has not been repeated by the end of the run.
        for trial in &self.trials {
            let lost = trial.stopped.map_or(0.0, |(_, progress)| progress - trial.saved);
            self.ledger.lost_seconds += lost.max(0.0);
        }
        if self.policy == Policy::Spotsweep {
            let trained = useful_seconds + self.ledger.lost_seconds;
            self.ledger.reported((trained / self.plan.parameters.report_seconds) as u64);
        }
        let finished = self.trials.iter().filter(|trial| trial.finished.is_some()).count();
        // The result is `None` if one trial is not over.
        let over = self.trials.iter().map(|trial| trial.finished.or(trial.ended)).collect::<Option<Vec<_>>>();
        let last = over.and_then(|over| over.into_iter().max());
        let (sweeps, _) = self.harness.store.state();
        let (model, ledger) = (&self.plan.parameters, &self.ledger);
        Outcome {
            finished: u32::try_from(finished).unwrap_or(u32::MAX),
            ended: u32::try_from(self.trials.iter().filter(|trial| trial.ended.is_some()).count()).unwrap_or(u32::MAX),
            finishes: self.trials.iter().map(|trial| self.finish(trial)).collect(),
            makespan_seconds: last.unwrap_or(end).duration_since(self.started).as_secs_f64(),
            useful_seconds,
            instance_seconds: ledger.instance_seconds(now),
            interruptions: ledger.interruptions,
            lost_seconds: ledger.lost_seconds,
            delays_seconds: ledger.delays_seconds.clone(),
            calls: ledger.calls(),
            usd: ledger.dollars(self.policy, model, self.trace, self.started, now),
            recorded: sweeps.iter().find(|sweep| sweep.stage == sweep::Stage::Settled).and_then(|sweep| sweep.spent),
        }
    }
}

/// Returns the times in which none of the zones had capacity.
pub(super) fn outages(plan: &Plan, trace: &Trace, started: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let mut outages = Vec::new();
    let mut open: BTreeMap<String, bool> = BTreeMap::new();
    let mut since: Option<Timestamp> = None;
    let mut changes = trace.changes(1.0).filter(|turn| plan.zones.contains(&turn.zone)).peekable();
    while let Some(turn) = changes.next() {
        let at = started + turn.at;
        open.insert(turn.zone, turn.available);
        if changes.peek().is_some_and(|next| next.at == turn.at) {
            continue;
        }
        let closed = open.values().all(|open| !open);
        match since {
            None if closed => since = Some(at),
            Some(began) if !closed => {
                outages.push((began, at));
                since = None;
            }
            None | Some(_) => {}
        }
    }
    outages.extend(since.map(|began| (began, started + trace.duration())));
    outages
}
