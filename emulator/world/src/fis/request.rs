//! Requests of FIS (FIS API reference).

use std::collections::BTreeMap;

use serde::Deserialize;

/// Parameters of CreateExperimentTemplate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateExperimentTemplate {
    /// Makes a repetition harmless.
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
    /// The role that FIS acts as.
    pub role_arn: String,
    /// Of the template.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// What stops an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopCondition {
    /// `none`, or an alarm.
    pub source: String,
}

/// Which instances: by ARN, or by tags and filters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// Only `aws:ec2:spot-instance`.
    pub resource_type: String,
    /// At most five instances; not together with tags or filters.
    #[serde(default)]
    pub resource_arns: Vec<String>,
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetFilter {
    /// Only `State.Name`.
    pub path: String,
    /// Any of them must match.
    pub values: Vec<String>,
}

/// What is done to a target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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

/// Parameters of StartExperiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartExperiment {
    /// Makes a repetition harmless.
    pub client_token: String,
    /// Which template. Nothing of it can be overridden but `experimentOptions`, which are not emulated.
    pub experiment_template_id: String,
    /// Of the experiment; without effect here.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}
