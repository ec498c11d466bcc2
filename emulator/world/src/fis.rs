//! AWS Fault Injection Service, as far as `infra/chaos.yaml` goes: the interruption of Spot instances that carry tags.
//!
//! Members and values that are not known here are refused. Rules are those of the FIS user guide, "Actions reference",
//! `aws:ec2:send-spot-instance-interruptions`, and "Targets".

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, Timer, World};

const ACTION: &str = "aws:ec2:send-spot-instance-interruptions";
const RESOURCE: &str = "aws:ec2:spot-instance";
/// The one parameter of the action, and the name of its target.
const DURATION: &str = "durationBeforeInterruption";
const TARGET: &str = "SpotInstances";
/// The one path of a target's filter that is known here.
const STATE_PATH: &str = "State.Name";
/// EC2's interruption notice in minutes: the least that FIS takes as duration. The most is 15.
const NOTICE_MINUTES: u32 = 2;
const LONGEST_MINUTES: u32 = 15;

/// Templates and experiments.
#[derive(Debug, Default)]
pub(super) struct Fis {
    templates: BTreeMap<String, CreateExperimentTemplate>,
    experiments: BTreeMap<String, Experiment>,
}

/// Parameters of CreateExperimentTemplate (FIS API reference).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateExperimentTemplate {
    /// Makes a repetition harmless on AWS; here each call makes a template.
    pub client_token: String,
    /// For people.
    pub description: String,
    /// Alarms that stop an experiment: only `none` is emulated.
    pub stop_conditions: Vec<StopCondition>,
    /// By their names.
    #[serde(default)]
    pub targets: BTreeMap<String, Target>,
    /// By their names.
    pub actions: BTreeMap<String, Action>,
    /// Whom FIS acts as. The emulator enforces no role here.
    pub role_arn: String,
    /// Of the template.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// What stops an experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopCondition {
    /// `none`, or an alarm.
    pub source: String,
}

/// Which instances.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// Only `aws:ec2:spot-instance`.
    pub resource_type: String,
    /// All of them must match.
    #[serde(default)]
    pub resource_tags: BTreeMap<String, String>,
    /// Only by state.
    #[serde(default)]
    pub filters: Vec<TargetFilter>,
    /// `ALL` or `COUNT(n)`.
    pub selection_mode: String,
}

/// A filter of a target.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetFilter {
    /// Only `State.Name`.
    pub path: String,
    /// Any of them must match.
    pub values: Vec<String>,
}

/// What is done to a target.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Action {
    /// Only `aws:ec2:send-spot-instance-interruptions`.
    pub action_id: String,
    /// `durationBeforeInterruption`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// `SpotInstances`: the name of a target.
    #[serde(default)]
    pub targets: BTreeMap<String, String>,
}

/// Parameters of StartExperiment (FIS API reference).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartExperiment {
    /// Makes a repetition harmless on AWS; here each call starts an experiment.
    pub client_token: String,
    /// Which template.
    pub experiment_template_id: String,
}

/// A template that has been started.
#[derive(Debug)]
struct Experiment {
    template: String,
    role: String,
    started: Timestamp,
    ends: Timestamp,
    has_targets: bool,
}

impl World {
    /// Keeps a template.
    ///
    /// # Errors
    /// `ValidationException` for what FIS refuses, and for what is not emulated.
    pub fn create_experiment_template(&mut self, wanted: CreateExperimentTemplate) -> Result<Value, ApiError> {
        check(&wanted)?;
        let id = format!("EXT{}", self.ids.hex(15));
        let shown = json!({ "experimentTemplate": { "id": id, "description": wanted.description,
            "roleArn": wanted.role_arn, "tags": wanted.tags } });
        self.fis.templates.insert(id, wanted);
        Ok(shown)
    }

    /// Forgets a template. Its experiments go on.
    ///
    /// # Errors
    /// `ResourceNotFoundException`.
    pub fn delete_experiment_template(&mut self, id: &str) -> Result<Value, ApiError> {
        let gone = self.fis.templates.remove(id).ok_or_else(|| not_found("experiment template", id))?;
        Ok(json!({ "experimentTemplate": { "id": id, "description": gone.description, "roleArn": gone.role_arn } }))
    }

    /// Recommends a rebalance to the chosen instances at once; the warning comes when a notice is left of the duration.
    ///
    /// # Errors
    /// `ResourceNotFoundException`.
    pub fn start_experiment(&mut self, wanted: &StartExperiment) -> Result<Value, ApiError> {
        let name = &wanted.experiment_template_id;
        let template = self.fis.templates.get(name).ok_or_else(|| not_found("experiment template", name))?.clone();
        let notice = self.settings.timings.notice;
        let (mut longest, mut has_targets) = (Duration::ZERO, true);
        for action in template.actions.values() {
            let Some(target) = action.targets.get(TARGET).and_then(|name| template.targets.get(name)) else { continue };
            let chosen = self.targets(target)?;
            has_targets &= !chosen.is_empty();
            let minutes = minutes(action)?;
            // As long before the warning, in notices, as on AWS.
            let before = notice * (minutes - NOTICE_MINUTES) / NOTICE_MINUTES;
            longest = longest.max(before + notice);
            for id in chosen {
                self.recommend_rebalance(&id, self.now)?;
                match before.is_zero() {
                    true => self.reclaim(&id, Some(notice), self.now)?,
                    false => self.after(before, Timer::Warn { instance: id }),
                }
            }
        }
        let id = format!("EXP{}", self.ids.hex(15));
        let ends = self.now.saturating_add(longest).unwrap_or(Timestamp::MAX);
        let role = template.role_arn;
        self.fis
            .experiments
            .insert(id.clone(), Experiment { template: name.clone(), role, started: self.now, ends, has_targets });
        self.experiment(&id)
    }

    /// Shows an experiment.
    ///
    /// # Errors
    /// `ResourceNotFoundException`.
    pub fn experiment(&self, id: &str) -> Result<Value, ApiError> {
        let found = self.fis.experiments.get(id).ok_or_else(|| not_found("experiment", id))?;
        let (status, reason) = match (found.has_targets, self.now < found.ends) {
            // FIS's default where no instance matches (API_ExperimentTemplate, emptyTargetResolutionMode).
            (false, _) => ("failed", "Target resolution returned empty set"),
            (true, true) => ("running", "Experiment is running."),
            (true, false) => ("completed", "Experiment completed."),
        };
        let end = (status != "running").then(|| found.ends.as_second());
        Ok(json!({ "experiment": { "id": id, "experimentTemplateId": found.template, "roleArn": found.role,
            "state": { "status": status, "reason": reason },
            "creationTime": found.started.as_second(), "startTime": found.started.as_second(), "endTime": end } }))
    }

    /// The instances that a target means now: of those that match, as many as it says, by their ids, which are random.
    fn targets(&self, target: &Target) -> Result<Vec<String>, ApiError> {
        let has = |instance: &super::Instance, (key, value): (&String, &String)| {
            instance.tags.iter().any(|(known, of)| known == key && of == value)
        };
        let matching = self.instances.values().filter(|instance| {
            let state = instance.state.as_str();
            instance.spot
                && instance.state.is_live()
                && target.resource_tags.iter().all(|tag| has(instance, tag))
                && target.filters.iter().all(|filter| filter.values.iter().any(|value| value == state))
        });
        let most = count(&target.selection_mode)?;
        Ok(matching.take(most).map(|instance| instance.id.clone()).collect())
    }

    /// An interruption's warning goes out; an instance that has ended meanwhile gets none.
    pub(super) fn warn(&mut self, instance: &str) {
        // Refused where the instance is gone: there is nothing left to interrupt.
        let _ = self.reclaim(instance, Some(self.settings.timings.notice), self.now);
    }
}

fn check(wanted: &CreateExperimentTemplate) -> Result<(), ApiError> {
    if let Some(condition) = wanted.stop_conditions.iter().find(|condition| condition.source != "none") {
        return Err(unknown("stop condition", &condition.source));
    }
    if wanted.actions.is_empty() {
        return Err(invalid("An experiment template has at least one action."));
    }
    for target in wanted.targets.values() {
        if target.resource_type != RESOURCE {
            return Err(unknown("resource type", &target.resource_type));
        }
        if target.resource_tags.is_empty() {
            return Err(invalid("A target has resourceTags or resourceArns; resourceArns are not emulated."));
        }
        if let Some(filter) = target.filters.iter().find(|filter| filter.path != STATE_PATH) {
            return Err(unknown("filter path", &filter.path));
        }
        count(&target.selection_mode)?;
    }
    for action in wanted.actions.values() {
        if action.action_id != ACTION {
            return Err(unknown("action", &action.action_id));
        }
        minutes(action)?;
        if action.targets.len() != 1 || !action.targets.get(TARGET).is_some_and(|at| wanted.targets.contains_key(at)) {
            return Err(invalid(format!("The action {ACTION} has one target, {TARGET}, which the template names.")));
        }
    }
    Ok(())
}

fn count(selection: &str) -> Result<usize, ApiError> {
    let number = || selection.strip_prefix("COUNT(")?.strip_suffix(')')?.parse().ok().filter(|number| *number > 0);
    match selection {
        "ALL" => Ok(usize::MAX),
        _counted => number().ok_or_else(|| unknown("selection mode", selection)),
    }
}

/// `PT2M` to `PT15M`.
fn minutes(action: &Action) -> Result<u32, ApiError> {
    let duration = action.parameters.get(DURATION).map(String::as_str).unwrap_or_default();
    if let Some(other) = action.parameters.keys().find(|name| *name != DURATION) {
        return Err(unknown("parameter", other));
    }
    let minutes = duration.strip_prefix("PT").and_then(|rest| rest.strip_suffix('M')?.parse().ok());
    minutes.filter(|minutes| (NOTICE_MINUTES..=LONGEST_MINUTES).contains(minutes)).ok_or_else(|| {
        invalid(format!("{DURATION} must be PT{NOTICE_MINUTES}M to PT{LONGEST_MINUTES}M, not {duration:?}."))
    })
}

fn not_found(what: &str, id: &str) -> ApiError {
    ApiError { code: "ResourceNotFoundException", status: 404, message: format!("The {what} {id} does not exist.") }
}

fn unknown(what: &str, found: &str) -> ApiError {
    invalid(format!("The {what} {found:?} is not known to spotsweep-emulator."))
}

/// FIS's answer to a malformed request.
pub fn invalid(message: impl Into<String>) -> ApiError {
    ApiError { code: "ValidationException", status: 400, message: message.into() }
}
