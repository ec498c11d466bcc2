//! A container, made from the definition's properties and a submission's overrides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ApiError;
use crate::catalog::Resources;

/// The changes of a submission to the definition's container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerOverrides {
    /// Replaces the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables that are added to the environment, or that replace those of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<Variable>,
    /// Resources that replace those of the same type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_requirements: Vec<ResourceRequirement>,
}

/// An environment variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The variable's name.
    pub name: String,
    /// The variable's value.
    #[serde(default)]
    pub value: String,
}

/// An amount of VCPU, MEMORY (MiB) or GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceRequirement {
    /// `VCPU`, `MEMORY` or `GPU`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The amount, as a whole number.
    pub value: String,
}

/// A container that can be run. `detail` is what DescribeJobs shows of it.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub(crate) image: String,
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) resources: Resources,
    pub(crate) detail: Map<String, Value>,
}

/// The fields of containerProperties that have an effect in the World.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    #[serde(default)]
    image: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    environment: Vec<Variable>,
    #[serde(default)]
    resource_requirements: Vec<ResourceRequirement>,
    vcpus: Option<u32>,
    memory: Option<u32>,
    #[serde(flatten)]
    shown: BTreeMap<String, Value>,
}

/// Fields that are only shown as they were given. Containers are processes here, so these settings for Docker have no
/// effect.
const SHOWN: [&str; 10] = [
    "executionRoleArn",
    "jobRoleArn",
    "linuxParameters",
    "logConfiguration",
    "mountPoints",
    "privileged",
    "readonlyRootFilesystem",
    "ulimits",
    "user",
    "volumes",
];

/// Adds the lists that Batch shows of a container even if they are empty ("Batch EventBridge events" in the Batch user
/// guide).
pub(super) fn with_empty_lists(mut container: Map<String, Value>) -> Map<String, Value> {
    for name in ["environment", "mountPoints", "resourceRequirements", "secrets", "ulimits", "volumes"] {
        container.entry(name).or_insert_with(|| json!([]));
    }
    container
}

impl Container {
    /// Makes a container from the definition's with a submission's overrides and parameters.
    ///
    /// # Errors
    /// `ClientException` if AWS would refuse the result.
    pub(super) fn resolve(
        properties: &Map<String, Value>,
        overrides: &ContainerOverrides,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Self, ApiError> {
        let mut own: Properties = serde_json::from_value(Value::Object(properties.clone()))
            .map_err(|error| ApiError::client(format!("containerProperties: {error}")))?;
        // AWS shows lists that are empty, and a definition like another one is registered with them.
        let is_unknown = |(name, value): &(&String, &Value)| !SHOWN.contains(&name.as_str()) && **value != json!([]);
        if let Some((unknown, _)) = own.shown.iter().find(is_unknown) {
            return Err(ApiError::not_emulated(&format!("containerProperties' {unknown}")));
        }
        if own.image.is_empty() {
            return Err(ApiError::client("Container properties image must not be null or empty."));
        }
        if !overrides.command.is_empty() {
            own.command = overrides.command.clone();
        }
        if own.command.iter().any(String::is_empty) {
            return Err(ApiError::client("The command can't contain an empty string."));
        }
        for variable in &overrides.environment {
            merge(&mut own.environment, variable.clone(), |a, b| a.name == b.name);
        }
        for requirement in &overrides.resource_requirements {
            merge(&mut own.resource_requirements, requirement.clone(), |a, b| a.kind == b.kind);
        }
        if let Some(reserved) = own.environment.iter().find(|v| v.name.starts_with("AWS_BATCH")) {
            return Err(ApiError::client(format!(
                "Environment variables cannot start with AWS_BATCH: {}. This naming convention is reserved for variables that Batch sets.",
                reserved.name
            )));
        }
        let resources = own.resources()?;
        let mut detail = properties.clone();
        detail.insert("command".into(), json!(own.command));
        detail.insert("environment".into(), json!(own.environment));
        detail.insert("resourceRequirements".into(), json!(own.resource_requirements));
        Ok(Container {
            command: own.command.iter().map(|word| substitute(word, parameters)).collect(),
            environment: own.environment.into_iter().map(|v| (v.name, v.value)).collect(),
            image: own.image,
            resources,
            detail,
        })
    }
}

impl Properties {
    /// Returns the resources. `resourceRequirements` replace the older `vcpus` and `memory`.
    fn resources(&self) -> Result<Resources, ApiError> {
        let mut resources = Resources { vcpus: self.vcpus.unwrap_or(0), memory_mib: self.memory.unwrap_or(0), gpus: 0 };
        for ResourceRequirement { kind, value } in &self.resource_requirements {
            let amount = value
                .parse::<u32>()
                .map_err(|_| ApiError::client(format!("Resource requirement {kind} is not a whole number: {value}")))?;
            match kind.as_str() {
                "VCPU" => resources.vcpus = amount,
                "MEMORY" => resources.memory_mib = amount,
                "GPU" => resources.gpus = amount,
                other => {
                    return Err(ApiError::client(format!("Unknown resource requirement: {other}")));
                }
            }
        }
        if resources.vcpus == 0 {
            return Err(ApiError::client("Container properties vcpus must be at least 1."));
        }
        if resources.memory_mib < 4 {
            return Err(ApiError::client("Container properties memory must be at least 4 MiB."));
        }
        Ok(resources)
    }
}

fn merge<T>(all: &mut Vec<T>, new: T, same: impl Fn(&T, &T) -> bool) {
    match all.iter_mut().find(|old| same(old, &new)) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

/// Replaces a word `Ref::name` by the parameter `name` (Batch user guide, "Parameters").
fn substitute(word: &str, parameters: &BTreeMap<String, String>) -> String {
    word.strip_prefix("Ref::").and_then(|name| parameters.get(name)).map_or_else(|| word.to_owned(), String::clone)
}
