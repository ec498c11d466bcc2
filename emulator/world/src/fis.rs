//! AWS Fault Injection Service, as far as `infra/chaos.yaml` and `spotsweep acceptance` need it: the interruption of
//! Spot instances, which are chosen by their tags or by their ARNs.
//!
//! Unknown fields and values are refused. The rules are from the FIS user guide, "Actions reference",
//! `aws:ec2:send-spot-instance-interruptions`, and "Targets" (fact 33).

mod check;
mod experiment;
mod request;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::experiment::{Experiment, State};
pub use self::request::{Action, CreateExperimentTemplate, StartExperiment, StopCondition, Target, TargetFilter};
use super::{ApiError, Timer, World};

const ACTION: &str = "aws:ec2:send-spot-instance-interruptions";
const RESOURCE: &str = "aws:ec2:spot-instance";
/// The only parameter of the action, and the name of its target.
const DURATION: &str = "durationBeforeInterruption";
const TARGET: &str = "SpotInstances";

/// The state of FIS: templates and experiments.
#[derive(Debug, Default)]
pub(super) struct Fis {
    templates: BTreeMap<String, CreateExperimentTemplate>,
    experiments: BTreeMap<String, Experiment>,
}

impl World {
    /// Stores a template. The same request with the same token returns the same template.
    ///
    /// # Errors
    /// `ValidationException` for what FIS refuses, and for what is not emulated; `ConflictException` for a token of
    /// another request.
    pub fn create_experiment_template(&mut self, wanted: CreateExperimentTemplate) -> Result<Value, ApiError> {
        check::template(&wanted)?;
        if self.trouble.without_fis_action {
            return Err(invalid(format!("The action {ACTION} is not available in this region.")));
        }
        let known = self.fis.templates.iter().find(|(_, known)| known.client_token == wanted.client_token);
        let id = match known {
            Some((id, known)) if *known == wanted => id.clone(),
            Some(_) => return Err(conflict()),
            None => format!("EXT{}", self.ids.hex(15)),
        };
        let shown = json!({ "experimentTemplate": { "id": id, "description": wanted.description,
            "roleArn": wanted.role_arn, "tags": wanted.tags } });
        self.fis.templates.insert(id, wanted);
        Ok(shown)
    }

    /// Deletes a template. Its experiments continue with their copy of it
    /// (<https://docs.aws.amazon.com/fis/latest/userguide/start-experiment-from-template.html>).
    ///
    /// # Errors
    /// `ResourceNotFoundException`.
    pub fn delete_experiment_template(&mut self, id: &str) -> Result<Value, ApiError> {
        let gone = self.fis.templates.remove(id).ok_or_else(|| not_found("experiment template", id))?;
        Ok(json!({ "experimentTemplate": { "id": id, "description": gone.description, "roleArn": gone.role_arn } }))
    }

    /// Starts an experiment, which chooses its targets a little later. The same token returns the same experiment.
    ///
    /// # Errors
    /// `ResourceNotFoundException`; `ConflictException` for a token of another template's experiment.
    pub fn start_experiment(&mut self, wanted: &StartExperiment) -> Result<Value, ApiError> {
        let known = self.fis.experiments.iter().find(|(_, known)| known.token == wanted.client_token);
        if let Some((id, known)) = known {
            let id = id.clone();
            return if known.template_id == wanted.experiment_template_id {
                self.experiment(&id)
            } else {
                Err(conflict())
            };
        }
        let name = &wanted.experiment_template_id;
        let template = self.fis.templates.get(name).ok_or_else(|| not_found("experiment template", name))?.clone();
        let id = format!("EXP{}", self.ids.hex(15));
        let experiment = Experiment {
            token: wanted.client_token.clone(),
            template_id: name.clone(),
            template,
            created: self.now,
            ended: None,
            state: State::Initiating,
        };
        self.fis.experiments.insert(id.clone(), experiment);
        self.after(self.settings.timings.experiment_start, Timer::BeginExperiment { experiment: id.clone() });
        self.experiment(&id)
    }

    /// Stops an experiment that has not ended. Notices that it has sent are not revoked.
    ///
    /// # Errors
    /// `ResourceNotFoundException`; `ValidationException` if it has ended.
    pub fn stop_experiment(&mut self, id: &str) -> Result<Value, ApiError> {
        let now = self.now;
        let found = self.fis.experiments.get_mut(id).ok_or_else(|| not_found("experiment", id))?;
        if found.ended.is_some() {
            return Err(invalid(format!("The experiment {id} has ended.")));
        }
        (found.state, found.ended) = (State::Stopped, Some(now));
        self.experiment(id)
    }

    /// Describes an experiment.
    ///
    /// # Errors
    /// `ResourceNotFoundException`.
    pub fn experiment(&self, id: &str) -> Result<Value, ApiError> {
        let found = self.fis.experiments.get(id).ok_or_else(|| not_found("experiment", id))?;
        Ok(json!({ "experiment": found.shown(id, &self.settings.account) }))
    }

    /// Describes the only action.
    ///
    /// # Errors
    /// `ResourceNotFoundException` for other actions, and if the region does not have it.
    pub fn fis_action(&self, id: &str) -> Result<Value, ApiError> {
        if id != ACTION || self.trouble.without_fis_action {
            return Err(not_found("action", id));
        }
        let arn = format!("arn:aws:fis:{}:{}:action/{id}", self.settings.region, self.settings.account);
        Ok(json!({ "action": { "id": id, "arn": arn, "description": "Interrupt the specified EC2 Spot instances.",
            "parameters": { DURATION: { "description": "From PT2M to PT15M.", "required": true } },
            "targets": { TARGET: { "resourceType": RESOURCE } }, "tags": {} } }))
    }
}

fn conflict() -> ApiError {
    let message = "The client token belongs to a request with other parameters.".to_owned();
    ApiError { code: "ConflictException", status: 409, message }
}

fn not_found(what: &str, id: &str) -> ApiError {
    ApiError { code: "ResourceNotFoundException", status: 404, message: format!("The {what} {id} does not exist.") }
}

/// Makes FIS's error for a malformed request.
pub fn invalid(message: impl Into<String>) -> ApiError {
    ApiError { code: "ValidationException", status: 400, message: message.into() }
}
