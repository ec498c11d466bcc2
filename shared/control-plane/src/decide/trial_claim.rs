//! The requests of attempts: what they get, and what they change. [`gate`] decides which requests pass.

mod fast_failure;
mod gate;
mod grant;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Context, Decision, early_stop, stall, sweep_settled, workspace};
use crate::command::{Command, Reads};
use crate::event::{Ask, Ending, TrialRequest};
use crate::input::Followup;
use crate::store::View;
use gate::Passage;
pub(super) use gate::check;
use grant::find_line;
pub(super) use grant::{assigned, granted, issued, starts_from};
use spotsweep_protocol::claim::{DataSet, Fetch, Found, Machine, NoticeKind, Reply, Seal};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::continuation::Listed;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Attempt, End, Leaving, Trial};
use spotsweep_records::workspace::{Fact, Place, Stage};

pub(super) fn requested(view: &View, request: &TrialRequest, context: Context<'_>) -> Decision {
    let held = view.trial.as_ref().map(|held| &held.record);
    let due = view.trial.as_ref().and_then(|held| held.due);
    let (sweep, plan) = match check(view, request) {
        Ok((sweep, plan, Passage::Free)) => (sweep, plan),
        Ok((_, _, Passage::Repeated)) => {
            return Decision::ignore("taken before; the answer was lost").reply(accepted(held));
        }
        Ok((_, _, Passage::Early)) => {
            return Decision::ignore(EARLY).reply(waiting(EARLY.to_owned(), context.settings.poll));
        }
        Err(reason) => return refuse(reason),
    };
    if let Some(noted) = fast_failure::noted(view, held, request, context) {
        return noted;
    }
    if view.peers.is_none() && early_stop::needs_peers(plan, held, request) {
        return Decision::advance("with the other trials").next(Followup::Compared(Box::new(request.clone())));
    }
    let TrialRequest { sweep: id, index, job, .. } = request;
    let mut trial = held.cloned().unwrap_or_else(|| Trial::new(id.clone(), *index, job.clone()));
    // A claim is noted when it takes the trial.
    let counts = match request.ask {
        Ask::Claim(_) | Ask::Access => false,
        Ask::Mounted { .. } => !trial.has_begun(request.attempt),
        Ask::Notice(_) | Ask::Fetching(_) | Ask::Report { .. } => true,
    };
    if counts {
        trial.has_reported(request.attempt, context.now);
    }
    let asker = Asker { view, sweep, plan, held, due, trial, request, context };
    if let Some(elsewhere) = asker.fails_at_once() {
        return elsewhere;
    }
    match &request.ask {
        Ask::Claim(machine) => asker.claims(machine),
        Ask::Access => asker.requests_credentials(),
        Ask::Mounted { volume, found } => asker.has_mounted(volume, found),
        Ask::Notice(kind) => asker.receives_notice(*kind),
        Ask::Fetching(fetch) => asker.fetches(*fetch),
        Ask::Report { sequence, metrics, seal, ended, stalled_seconds, rungs } => {
            asker.reaches(rungs).reports(*sequence, metrics, seal.clone(), ended.as_ref(), *stalled_seconds)
        }
    }
}

/// The request of an attempt that passed the gate, with the records.
struct Asker<'a> {
    view: &'a View,
    sweep: &'a Sweep,
    plan: &'a Plan,
    held: Option<&'a Trial>,
    due: Option<Timestamp>,
    trial: Trial,
    request: &'a TrialRequest,
    context: Context<'a>,
}

impl Asker<'_> {
    fn claims(mut self, machine: &Machine) -> Decision {
        let attempt = self.request.attempt;
        let has_begun = self.trial.claimed_by == Some(attempt);
        let over_budget =
            || self.sweep.over_budget(None, self.context.now).map(|reached| StopReason::Budget { reached });
        if let Some(reason) = self.sweep.stopped.clone().or_else(over_budget).filter(|_| !has_begun) {
            return self.stops(attempt, reason, Vec::new());
        }
        early_stop::compare(self.view, self.plan, &mut self.trial, true);
        if let Some(stop) = self.trial.stopped.filter(|_| !has_begun) {
            // The calls are made at once, because the next fact about the workspace may come to a function that must
            // not detach it.
            let calls = self.apply(&Fact::Finished { attempt });
            return self.stops(attempt, StopReason::StoppedEarly { rung: stop.rung }, calls);
        }
        if let Some(cause) = &machine.defect {
            return self.leaves(machine, cause);
        }
        if self.plan.suggests && self.trial.suggested.is_none() {
            let (request, bucket) = (self.request.clone(), self.sweep.upload.bucket.clone());
            return Decision::advance("its parameters are to be suggested")
                .then(Command::ReadSpace { request, bucket });
        }
        if !grant::knows_its_start(self.plan, &self.trial) {
            let (request, bucket) = (self.request.clone(), self.sweep.upload.bucket.clone());
            let find = Command::FindStart { request, listed: Listed::of_trials(self.plan), bucket };
            return Decision::advance("what it starts from is to be found").then(find);
        }
        let record = self.takes(machine);
        // If the instance metadata service does not answer, the place may be known from Batch's event and ECS.
        let place = record.instance.clone().zip(record.zone.clone());
        let mut calls = Vec::new();
        if self.plan.workspace.is_some() {
            let Some((instance, zone)) = place else {
                return Decision::ignore(NO_PLACE).reply(Reply::Unavailable { reason: NO_PLACE.to_owned() });
            };
            let place = Place { attempt, instance, zone };
            calls = self.apply(&Fact::Wanted(place));
        }
        let reply = standing(&self.trial, attempt, self.context);
        if let Some(Reply::Refused { reason }) = &reply {
            self.trial.attempt(attempt).reason = Some(reason.clone().into());
        }
        let what = format!("attempt {attempt} claims; {}", self.summary());
        let next = match machine.task.clone() {
            Some(task) => Command::FindGpus { request: self.request.clone(), task },
            None => find_line(self.sweep, self.request, None),
        };
        let noted = (self.has_only_asked() && calls.is_empty()).then_some(self.due);
        let decision = self.write(what).only_noted(noted).then_all(calls);
        match reply {
            Some(reply) => decision.reply(reply),
            None => decision.then(next),
        }
    }

    /// Gives the trial to the attempt, and returns the attempt's record with its place.
    fn takes(&mut self, machine: &Machine) -> &Attempt {
        let attempt = self.request.attempt;
        self.trial.claimed_by = Some(attempt);
        self.trial.secret.clone_from(&self.request.secret);
        self.trial.stall = None;
        if !self.trial.has_begun(attempt) {
            self.trial.has_reported(attempt, self.context.now);
        }
        let record = self.trial.attempt(attempt);
        record.instance = machine.instance.clone().or(record.instance.take());
        record.zone = machine.zone.clone().or(record.zone.take());
        record.instance_type = machine.instance_type.clone().or(record.instance_type.take());
        record.market = machine.market.or(record.market);
        record
    }

    /// Leaves an unfit instance. The instance is drained before the runner gets its answer and exits, because Batch may
    /// place the next attempt at that moment.
    fn leaves(mut self, machine: &Machine, cause: &str) -> Decision {
        self.takes(machine);
        let (attempt, drain) = (self.request.attempt, Command::DrainInstance(self.request.clone()));
        let reason = StopReason::UnfitInstance { cause: cause.to_owned() };
        let what = format!("attempt {attempt} does not start: {reason}");
        let record = self.trial.attempt(attempt);
        (record.reason, record.leaving) = (Some(reason.into()), Some(Leaving::Left));
        self.write(what).then(drain)
    }

    /// Refuses the claim because no further attempt starts. The runner then exits, and Batch ends the job.
    fn stops(mut self, attempt: u32, reason: StopReason, calls: Vec<Command>) -> Decision {
        self.trial.attempt(attempt).reason = Some(reason.clone().into());
        let decision = self.write(format!("attempt {attempt} does not start: {reason}"));
        decision.then_all(calls).reply(Reply::Refused { reason })
    }

    fn requests_credentials(self) -> Decision {
        let (request, role) = (self.request.clone(), self.context.settings.trial_role.clone());
        let reads = Reads {
            restores: self.trial.restores,
            code: self.plan.packed_code(),
            secrets: self.plan.secrets(),
            data: self.plan.data().iter().map(DataSet::place).collect(),
        };
        Decision::advance(format!("attempt {} reads and writes for an hour", request.attempt))
            .then(Command::IssueCredentials { request, reads, role })
    }

    fn has_mounted(mut self, volume: &str, found: &Found) -> Decision {
        let attempt = self.request.attempt;
        let calls = self.apply(&Fact::Mounted { attempt, volume: volume.to_owned(), found: found.clone() });
        let reply = mounted(&self.trial, attempt);
        let what = self.summary();
        self.write(what).then_all(calls).reply(reply)
    }

    fn receives_notice(mut self, kind: NoticeKind) -> Decision {
        let attempt = self.request.attempt;
        let instance = self.held.and_then(|trial| trial.attempts.get(&attempt)?.instance.clone()).unwrap_or_default();
        let calls = self.apply(&Fact::Noticed { instance: instance.clone(), kind });
        // A trial without a workspace, or an attempt without its instance on record, has kept nothing of the fact.
        let is_kept = self.trial.workspace.as_ref().is_some_and(|held| held.under_notice.contains_key(&instance));
        if kind == NoticeKind::Interruption && !is_kept {
            self.trial.attempt(attempt).leaving = Some(Leaving::Noticed);
        }
        let what = match kind {
            NoticeKind::Interruption => format!("attempt {attempt} is about to lose its instance"),
            NoticeKind::Rebalance => format!("attempt {attempt} is likely to lose its instance"),
        };
        self.write(what).then_all(calls).reply(Reply::Accepted {})
    }

    fn fetches(mut self, fetch: Fetch) -> Decision {
        let attempt = self.trial.attempt(self.request.attempt);
        attempt.fetch = attempt.fetch.max(Some(fetch));
        let what = format!("attempt {} has fetched its data: {fetch}", self.request.attempt);
        let (reply, due, context) = (accepted(Some(&self.trial)), self.due, self.context);
        if fetch.is_under_way() {
            let what = what.replacen("has fetched", "fetches", 1);
            return self.write(what).reply(reply).figures_only(due, context);
        }
        // It is part of the trial's history.
        self.write(what).reply(reply)
    }

    fn reaches(mut self, rungs: &[Reached]) -> Self {
        if let Some((by, _)) = self.plan.comparison() {
            let counted = self.trial.trained(self.request.attempt, rungs);
            self.trial.reach(by, counted);
        }
        self
    }

    fn reports(
        mut self,
        sequence: u64,
        metrics: &BTreeMap<String, Metric>,
        seal: Option<Seal>,
        ended: Option<&Ending>,
        stalled_seconds: Option<u64>,
    ) -> Decision {
        let attempt = self.request.attempt;
        let record = self.trial.attempt(attempt);
        if record.sequence.is_some_and(|known| known >= sequence) {
            return Decision::ignore("an older report").reply(accepted(self.held));
        }
        record.sequence = Some(sequence);
        self.trial.report(metrics);
        let notify = self.has_stalled(sequence, ended.is_some(), stalled_seconds);
        let is_released = matches!(ended, Some(Ending::Released { .. }));
        let compared = early_stop::compare(self.view, self.plan, &mut self.trial, is_released);
        let (fact, what) = match ended {
            None => {
                let what = match &compared {
                    Some(compared) => format!("attempt {attempt} {compared}"),
                    None => format!("report {sequence} of attempt {attempt}"),
                };
                (seal.map(|seal| Fact::Sealed { attempt, seal }), what)
            }
            // No other attempt needs the workspace of a trial that is stopped early.
            Some(Ending::Released { .. }) if self.trial.stopped.is_some() => {
                let why = compared.unwrap_or_else(|| "leaves, as the trial is stopped early".to_owned());
                (Some(Fact::Finished { attempt }), format!("attempt {attempt} {why}"))
            }
            Some(Ending::Released { rollback }) => {
                if self.trial.workspace.is_none() {
                    self.trial.attempt(attempt).leaving.get_or_insert(Leaving::Left);
                }
                let why = match (rollback, stalled_seconds) {
                    // The note of the workspace names the checkpoint.
                    (Some(_), _) => "goes back one checkpoint",
                    (None, Some(_)) => "is ended, as it is stalled,",
                    (None, None) => "was interrupted",
                };
                let fact = Fact::Released { attempt, seal, rollback: rollback.clone() };
                (Some(fact), format!("attempt {attempt} {why} and leaves"))
            }
            Some(Ending::Finished { exit_code, outputs, seconds, error }) => {
                let (outputs, error) = (outputs.clone(), error.clone());
                self.trial.end = Some(End { attempt, exit_code: *exit_code, outputs, seconds: *seconds, error });
                (Some(Fact::Finished { attempt }), format!("attempt {attempt} ended with exit code {exit_code}"))
            }
        };
        let calls = fact.map(|fact| self.apply(&fact)).unwrap_or_default();
        let stands = self.held.is_some_and(|held| {
            let has_new_rung = held.rungs.len() != self.trial.rungs.len() || held.compared != self.trial.compared;
            let signs = |trial: &Trial| (trial.state(), trial.stall, trial.silence.clone());
            signs(held) == signs(&self.trial) && !has_new_rung
        });
        let reply = accepted(Some(&self.trial));
        let target = sweep_settled::look((self.sweep, self.plan), self.held, &self.trial);
        let (due, context) = (self.due, self.context);
        let figures_only = ended.is_none() && calls.is_empty() && notify.is_none() && target.is_none() && stands;
        let decision =
            self.write(what).then_all(calls).then_all(notify.into_iter().chain(target).collect()).reply(reply);
        if figures_only { decision.figures_only(due, context) } else { decision }
    }

    /// Notes whether the training is stalled, or was ended for a stall. Returns the notification of a new stall.
    fn has_stalled(&mut self, sequence: u64, is_end: bool, stalled_seconds: Option<u64>) -> Option<Command> {
        let Some(seconds) = stalled_seconds.filter(|_| !is_end) else {
            self.trial.stall = None;
            let record = self.trial.attempt(self.request.attempt);
            let reason = stalled_seconds.map(|seconds| StopReason::Stalled { seconds }.into());
            record.reason = record.reason.take().max(reason);
            return None;
        };
        stall::notify((self.sweep, self.plan), &self.trial, self.request, (sequence, seconds), self.context)
    }

    /// Whether nothing has changed except the time of the last request.
    fn has_only_asked(&self) -> bool {
        let noted = |held: &Trial| Trial { reported_at: self.trial.reported_at, ..held.clone() };
        self.held.map(noted).as_ref() == Some(&self.trial)
    }

    fn apply(&mut self, fact: &Fact) -> Vec<Command> {
        workspace::apply(&mut self.trial, self.plan, fact, self.context)
    }

    fn summary(&self) -> String {
        workspace::summary(self.held.and_then(|trial| trial.workspace.as_ref()), &self.trial)
    }

    fn write(self, what: String) -> Decision {
        if self.held == Some(&self.trial) {
            return Decision::advance(what);
        }
        workspace::changed(self.sweep, self.held, self.trial, what, self.context)
    }
}

/// Why a claim after a reported success waits.
const EARLY: &str = "an earlier attempt has reported success, and AWS Batch has not reported its end yet";

/// Why a trial with a workspace cannot run if the metadata service does not answer. The attempt counts as interrupted,
/// because the next one may get an answer.
const NO_PLACE: &str = "the trial has a workspace, and neither the metadata service nor ECS says on which instance the \
    attempt runs: allow IMDSv2 with a hop limit of 2 in the launch template, or say `workspace: off` in the sweep file";

/// How long an attempt waits after EC2 has refused a volume. Capacity and quotas do not change within seconds, and an
/// attempt that leaves at once is often started on the same instance again. If other trials are better, the wait is up
/// to twice as long, so that they are more likely to get the rest of a quota.
const REFUSED_WAIT: Duration = Duration::from_secs(60);

/// Returns the reply to an attempt whose workspace is not attached; `None` if it is, or if the trial has none.
fn standing(trial: &Trial, attempt: u32, context: Context<'_>) -> Option<Reply> {
    let workspace = trial.workspace.as_ref()?;
    if workspace.holder() == Some(attempt) && workspace.unavailable.is_none() {
        return None;
    }
    if let Some(why) = &workspace.refused {
        return Some(Reply::Refused { reason: StopReason::Workspace { cause: why.clone() } });
    }
    let is_under_notice = workspace.wanted.as_ref().is_some_and(|place| workspace.is_under_notice(place));
    // An attempt that leaves such an instance can be started there again at once, which would cost another attempt.
    if let Some(reason) = workspace.unavailable.as_ref().filter(|_| !is_under_notice) {
        return Some(Reply::Unavailable { reason: reason.clone() });
    }
    let reason = workspace::summary(None, trial);
    let is_refused = workspace.refusals > 0;
    let wait = if is_refused { REFUSED_WAIT } else { context.settings.poll };
    Some(waiting(reason, wait))
}

pub(super) fn waiting(reason: String, wait: Duration) -> Reply {
    Reply::Waiting { reason, retry_after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }
}

fn mounted(trial: &Trial, attempt: u32) -> Reply {
    let workspace = trial.workspace.as_ref();
    let stage = workspace.map(|workspace| &workspace.stage);
    match (stage, workspace.and_then(|workspace| workspace.unavailable.clone())) {
        (Some(Stage::Attached { to, mounted: true, .. }), _) if to.attempt == attempt => Reply::Accepted {},
        (_, Some(reason)) => Reply::Unavailable { reason },
        // The request is not refused, because the attempt still holds the trial and Batch has to start another one.
        _other => Reply::Unavailable { reason: format!("the workspace has left attempt {attempt} meanwhile") },
    }
}

/// Returns the reply to an accepted report, which says whether the trial continues.
fn accepted(trial: Option<&Trial>) -> Reply {
    match trial.and_then(|trial| trial.stopped.as_ref()) {
        Some(stop) => Reply::Stop { why: stop.to_string() },
        None => Reply::Accepted {},
    }
}

fn refuse(reason: StopReason) -> Decision {
    Decision::ignore(reason.to_string()).reply(Reply::Refused { reason })
}
