//! The transitions of an experiment: initiating → running → completed, or failed, or stopped.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::TARGET;
use super::check::{NOTICE_MINUTES, count, instance, minutes};
use super::request::{Action, CreateExperimentTemplate, Target};
use crate::{Instance, InstanceState, Service, Timer, World};

/// Most instances that an action may interrupt: the default of the quota L-F3F4B54A.
const MOST_INSTANCES: usize = 5;
/// EC2's action, for which FIS uses the experiment's role.
const INTERRUPT: &str = "SendSpotInstanceInterruptions";

/// A started template.
#[derive(Debug)]
pub(super) struct Experiment {
    pub(super) token: String,
    pub(super) template_id: String,
    /// The template as it was at the start.
    pub(super) template: CreateExperimentTemplate,
    pub(super) created: Timestamp,
    pub(super) ended: Option<Timestamp>,
    pub(super) state: State,
}

/// An experiment's state. Pending and stopping are too short to be emulated.
#[derive(Debug)]
pub(super) enum State {
    Initiating,
    Running,
    Completed,
    Failed(Failed),
    Stopped,
}

/// Why an experiment failed: code and reason (<https://docs.aws.amazon.com/fis/latest/userguide/troubleshooting.html>).
type Failed = (&'static str, String);

impl Experiment {
    pub(super) fn shown(&self, id: &str, account: &str) -> Value {
        let (status, reason) = match &self.state {
            State::Initiating => ("initiating", "Experiment is initiating."),
            State::Running => ("running", "Experiment is running."),
            State::Completed => ("completed", "Experiment completed."),
            State::Failed((_, reason)) => ("failed", reason.as_str()),
            State::Stopped => ("stopped", "Experiment was stopped by a call of StopExperiment."),
        };
        let mut state = json!({ "status": status, "reason": reason });
        if let State::Failed((code, _)) = &self.state {
            state["error"] = json!({ "accountId": account, "code": code, "location": "targets" });
        }
        json!({ "id": id, "experimentTemplateId": self.template_id, "roleArn": self.template.role_arn, "state": state,
            "creationTime": self.created.as_second(), "startTime": self.created.as_second(),
            "endTime": self.ended.map(Timestamp::as_second) })
    }
}

impl World {
    /// Chooses the targets and begins the actions.
    pub(crate) fn begin_experiment(&mut self, id: &str) {
        let Some(experiment) = self.fis.experiments.get(id).filter(|one| matches!(one.state, State::Initiating)) else {
            return;
        };
        let template = experiment.template.clone();
        let longest = match self.plan_of(&template) {
            Ok(plan) => plan.into_iter().map(|(instance, action)| self.interrupt(&instance, action)).max(),
            Err(failed) => {
                self.set_state(id, State::Failed(failed));
                return;
            }
        };
        self.set_state(id, State::Running);
        self.after(longest.unwrap_or_default(), Timer::EndExperiment { experiment: id.to_owned() });
    }

    /// Completes an experiment after all its actions, unless it was stopped before.
    pub(crate) fn end_experiment(&mut self, id: &str) {
        if self.fis.experiments.get(id).is_some_and(|one| matches!(one.state, State::Running)) {
            self.set_state(id, State::Completed);
        }
    }

    fn set_state(&mut self, id: &str, state: State) {
        let now = self.now;
        if let Some(experiment) = self.fis.experiments.get_mut(id) {
            experiment.ended = (!matches!(state, State::Running)).then_some(now);
            experiment.state = state;
        }
    }

    /// Returns the instances that are interrupted, with the action of each.
    fn plan_of<'a>(&mut self, template: &'a CreateExperimentTemplate) -> Result<Vec<(String, &'a Action)>, Failed> {
        let mut plan = Vec::new();
        for action in template.actions.values() {
            let chosen = action.targets.get(TARGET).and_then(|name| template.targets.get(name));
            let chosen = chosen.map(|target| self.chosen(target)).unwrap_or_default();
            if chosen.is_empty() {
                // The message and the default behaviour are FIS's (API_ExperimentTemplateExperimentOptions,
                // emptyTargetResolutionMode).
                return Err(("InvalidTarget", "Target resolution returned empty set".to_owned()));
            }
            if chosen.len() > MOST_INSTANCES {
                let reason = format!("The action may interrupt {MOST_INSTANCES} instances, and has {}.", chosen.len());
                return Err(("QuotaExceededFailure", reason));
            }
            let is_running = |id: &&String| self.instance(id).is_some_and(|one| one.state == InstanceState::Running);
            if let Some(other) = chosen.iter().find(|id| !is_running(id)) {
                return Err(("InvalidTarget", format!("The instance {other} is not running.")));
            }
            plan.extend(chosen.into_iter().map(|id| (id, action)));
        }
        match self.refusal(Service::Ec2, INTERRUPT) {
            None => Ok(plan),
            Some(refusal) => Err(("AuthorizationFailure", refusal.message)),
        }
    }

    /// Returns the instances that a target matches now, at most as many as it says. They are taken in the order of
    /// their ids, which are random. Without a filter by state, instances that ended within the last hour match too, as
    /// in DescribeInstances.
    fn chosen(&self, target: &Target) -> Vec<String> {
        let has = |instance: &Instance, (key, value): (&String, &String)| {
            instance.tags.iter().any(|(known, of)| known == key && of == value)
        };
        let named: Vec<&str> = target.resource_arns.iter().filter_map(|arn| instance(arn)).collect();
        let matching = self.instances.values().filter(|instance| {
            let state = instance.state.as_str();
            instance.spot
                && (named.is_empty() || named.contains(&instance.id.as_str()))
                && target.resource_tags.iter().all(|tag| has(instance, tag))
                && target.filters.iter().all(|filter| filter.values.iter().any(|value| value == state))
        });
        let most = count(&target.selection_mode).unwrap_or(0);
        matching.take(most).map(|instance| instance.id.clone()).collect()
    }

    /// Recommends a rebalance at once and sends the interruption notice later. Returns how long the action takes. AWS's
    /// page says both that the notice comes two minutes before the end of the duration, and that the end comes two
    /// minutes after it. [`crate::Trouble::late_fis_warnings`] is the second reading.
    fn interrupt(&mut self, instance: &str, action: &Action) -> Duration {
        let notice = self.settings.timings.notice;
        let minutes = minutes(action).unwrap_or(NOTICE_MINUTES);
        // The time before the notice is as many notices long as on AWS.
        let duration = notice * minutes / NOTICE_MINUTES;
        let before = if self.trouble.late_fis_warnings { duration } else { duration - notice };
        // An error is impossible, because the instance was just found running.
        let _ = self.recommend_rebalance(instance, self.now);
        match before.is_zero() {
            true => self.warn(instance),
            false => self.after(before, Timer::Warn { instance: instance.to_owned() }),
        }
        duration
    }

    /// Sends the notice of an interruption, unless the instance has ended.
    pub(crate) fn warn(&mut self, instance: &str) {
        // The call is refused if the instance is gone, and then there is nothing to interrupt.
        let _ = self.reclaim(instance, Some(self.settings.timings.notice), self.now);
    }
}
