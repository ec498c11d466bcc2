//! The requests of FIS (FIS API reference).

use std::collections::BTreeMap;

use serde::Deserialize;

/// The parameters of CreateExperimentTemplate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateExperimentTemplate {
    /// The client token, with which the request can be repeated.
    pub client_token: String,
    /// A description for people.
    pub description: String,
    /// Alarms that stop an experiment. Only `none` is emulated.
    pub stop_conditions: Vec<StopCondition>,
    /// The targets by name.
    #[serde(default)]
    pub targets: BTreeMap<String, Target>,
    /// The actions by name.
    pub actions: BTreeMap<String, Action>,
    /// The role that FIS assumes.
    pub role_arn: String,
    /// Tags of the template.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A condition that stops an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopCondition {
    /// `none`, or the type of an alarm.
    pub source: String,
}

/// The instances of an action, chosen by ARN, or by tags and filters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// The type; only `aws:ec2:spot-instance` is emulated.
    pub resource_type: String,
    /// At most five instances. They cannot be combined with tags or filters.
    #[serde(default)]
    pub resource_arns: Vec<String>,
    /// Tags that all have to match.
    #[serde(default)]
    pub resource_tags: BTreeMap<String, String>,
    /// Filters; only those by state are emulated.
    #[serde(default)]
    pub filters: Vec<TargetFilter>,
    /// `ALL` or `COUNT(n)`.
    pub selection_mode: String,
}

/// A filter of a target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetFilter {
    /// The path; only `State.Name` is emulated.
    pub path: String,
    /// The values, of which one has to match.
    pub values: Vec<String>,
}

/// The action on a target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Action {
    /// The action's id; only `aws:ec2:send-spot-instance-interruptions` is emulated.
    pub action_id: String,
    /// The parameters: `durationBeforeInterruption`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The targets: `SpotInstances` with the name of a target.
    #[serde(default)]
    pub targets: BTreeMap<String, String>,
}

/// The parameters of StartExperiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartExperiment {
    /// The client token, with which the request can be repeated.
    pub client_token: String,
    /// The template's id. Only `experimentOptions` could be overridden, and these are not emulated.
    pub experiment_template_id: String,
    /// Tags of the experiment, which have no effect here.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}
