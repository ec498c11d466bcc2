//! The calls RegisterJobDefinition, DescribeJobDefinitions and DeregisterJobDefinition.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::container::{Container, ContainerOverrides, with_empty_lists};
use super::submit::{JobTimeout, check_name, check_tags};
use super::{Definition, RetryStrategy, page, page_size};
use crate::{ApiError, World};

const PAGE: usize = 100;
const DEFAULT_LOG_GROUP: &str = "/aws/batch/job";
/// Most bytes in a job definition (fact 18).
pub const LARGEST_DEFINITION: usize = 24 * 1024;

/// The parameters of RegisterJobDefinition.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterJobDefinition {
    /// The name. A known name gets the next revision.
    #[serde(default)]
    pub job_definition_name: String,
    /// The type; only `container` is emulated.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The container.
    #[serde(default)]
    pub container_properties: Option<Map<String, Value>>,
    /// Default values of `Ref::` placeholders.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Number of attempts, and the rules for retries.
    #[serde(default)]
    pub retry_strategy: Option<RetryStrategy>,
    /// Timeout of each attempt.
    #[serde(default)]
    pub timeout: Option<JobTimeout>,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Whether the ECS task gets the tags. It is only shown as it was given, because no tasks are emulated.
    #[serde(default)]
    pub propagate_tags: bool,
    /// The platform; only `EC2` is emulated.
    #[serde(default)]
    pub platform_capabilities: Vec<String>,
}

/// The parameters of DescribeJobDefinitions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DescribeJobDefinitions {
    /// `name:revision` or ARNs. They cannot be combined with the other fields.
    #[serde(default)]
    pub job_definitions: Vec<String>,
    /// The name of which all revisions are wanted.
    pub job_definition_name: Option<String>,
    /// `ACTIVE` or `INACTIVE`.
    pub status: Option<String>,
    /// Page size, 1 to 100.
    pub max_results: Option<usize>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

impl World {
    /// Registers a revision and returns its name, ARN and number.
    ///
    /// # Errors
    /// `ClientException` for what AWS refuses, and for types that are not emulated.
    pub fn register_job_definition(&mut self, request: RegisterJobDefinition) -> Result<Value, ApiError> {
        check_name("Job definition name", &request.job_definition_name)?;
        if request.kind != "container" {
            return Err(ApiError::not_emulated(&format!("Job definition type '{}'", request.kind)));
        }
        if let Some(other) = request.platform_capabilities.iter().find(|capability| *capability != "EC2") {
            return Err(ApiError::not_emulated(&format!("Platform capability '{other}'")));
        }
        check_tags(&request.tags)?;
        let Some(container) = request.container_properties else {
            return Err(ApiError::not_emulated("A job definition without containerProperties"));
        };
        let retry = request.retry_strategy.unwrap_or_default();
        retry.check()?;
        let timeout_seconds = request.timeout.map(JobTimeout::checked_seconds).transpose()?;
        Container::resolve(&container, &ContainerOverrides::default(), &request.parameters)?;
        let name = request.job_definition_name;
        let revision = self.batch.definitions.get(&name).map_or(0, Vec::len) + 1;
        let arn = self.arn("batch", &format!("job-definition/{name}:{revision}"));
        let answer = json!({"jobDefinitionName": name, "jobDefinitionArn": arn, "revision": revision});
        self.batch.definitions.entry(name.clone()).or_default().push(Definition {
            arn,
            name,
            revision,
            active: true,
            container,
            parameters: request.parameters,
            retry,
            timeout_seconds,
            tags: request.tags,
            propagate_tags: request.propagate_tags,
        });
        Ok(answer)
    }

    /// Makes a revision INACTIVE, so that no new job can use it.
    ///
    /// # Errors
    /// `ClientException` for a revision that does not exist.
    pub fn deregister_job_definition(&mut self, named: &str) -> Result<Value, ApiError> {
        let (name, revision) = self.parse_definition(named);
        let found = revision
            .and_then(|revision| revision.checked_sub(1))
            .and_then(|at| self.batch.definitions.get_mut(&name)?.get_mut(at));
        match found {
            Some(definition) => definition.active = false,
            None => return Err(ApiError::client(format!("JobDefinition {named} not found."))),
        }
        Ok(json!({}))
    }

    /// Describes job definitions. Unknown ones are left out.
    ///
    /// # Errors
    /// `ClientException` for parameters that contradict each other.
    pub fn describe_job_definitions(&self, request: &DescribeJobDefinitions) -> Result<Value, ApiError> {
        let listed = !request.job_definitions.is_empty();
        if listed && (request.job_definition_name.is_some() || request.status.is_some()) {
            return Err(ApiError::client("jobDefinitions can't be used with other parameters"));
        }
        if request.job_definitions.len() > PAGE {
            return Err(ApiError::client("jobDefinitions can hold at most 100 entries"));
        }
        let wanted: Vec<_> = request.job_definitions.iter().map(|named| self.parse_definition(named)).collect();
        let shown: Vec<Value> = self
            .batch
            .definitions
            .values()
            .flatten()
            .filter(|d| {
                !listed
                    || wanted.iter().any(|(name, revision)| d.name == *name && revision.is_none_or(|r| r == d.revision))
            })
            .filter(|d| request.job_definition_name.as_ref().is_none_or(|name| d.name == *name))
            .filter(|d| request.status.as_ref().is_none_or(|status| d.status() == status))
            .map(Definition::detail)
            .collect();
        let limit = page_size(request.max_results, PAGE)?;
        let (shown, next) = page(shown, limit, request.next_token.as_deref())?;
        let mut answer = json!({"jobDefinitions": shown});
        if let Some(next) = next {
            answer["nextToken"] = json!(next);
        }
        Ok(answer)
    }

    /// Whether a job definition of this name sends its output to this log group of CloudWatch Logs (Batch user guide,
    /// "Use the awslogs log driver").
    pub fn is_log_group(&self, definition: &str, group: &str) -> bool {
        let group_of = |definition: &Definition| {
            let options = definition.container.get("logConfiguration").and_then(|logs| logs.get("options"));
            let named = options.and_then(|options| options.get("awslogs-group")).and_then(Value::as_str);
            named.unwrap_or(DEFAULT_LOG_GROUP).to_owned()
        };
        self.batch.definitions.get(definition).is_some_and(|all| all.iter().any(|one| group_of(one) == group))
    }

    /// Returns a job definition with more than one revision.
    pub fn definition_with_revisions(&self) -> Option<&str> {
        let mut all = self.batch.definitions.iter();
        all.find(|(_, revisions)| revisions.len() > 1).map(|(name, _)| name.as_str())
    }

    /// Returns the revision that a submission names, or the latest active one.
    pub(super) fn definition(&self, named: &str) -> Result<&Definition, ApiError> {
        let (name, revision) = self.parse_definition(named);
        let found = self.batch.definitions.get(&name).and_then(|revisions| match revision {
            Some(revision) => revisions.get(revision.checked_sub(1)?).filter(|d| d.active),
            None => revisions.iter().rev().find(|d| d.active),
        });
        found.ok_or_else(|| {
            let kind = if named.starts_with("arn:") { "" } else { "name " };
            ApiError::client(format!("JobDefinition {kind}{named} does not exist or is not in ACTIVE status"))
        })
    }

    /// Returns name and revision from `name`, `name:revision`, or an ARN with or without revision.
    fn parse_definition(&self, named: &str) -> (String, Option<usize>) {
        let prefix = self.arn("batch", "job-definition/");
        let short = named.strip_prefix(&prefix).unwrap_or(named);
        match short.rsplit_once(':').map(|(name, revision)| (name, revision.parse().ok())) {
            Some((name, Some(revision))) => (name.to_owned(), Some(revision)),
            Some((_, None)) | None => (short.to_owned(), None),
        }
    }
}

impl Definition {
    fn status(&self) -> &'static str {
        if self.active { "ACTIVE" } else { "INACTIVE" }
    }

    fn detail(&self) -> Value {
        let mut detail = json!({
            "jobDefinitionName": self.name,
            "jobDefinitionArn": self.arn,
            "revision": self.revision,
            "status": self.status(),
            "type": "container",
            "parameters": self.parameters,
            "retryStrategy": self.retry,
            "containerProperties": with_empty_lists(self.container.clone()),
            "tags": self.tags,
            "propagateTags": self.propagate_tags,
            "platformCapabilities": ["EC2"],
            "containerOrchestrationType": "ECS",
        });
        if let Some(seconds) = self.timeout_seconds {
            detail["timeout"] = json!({"attemptDurationSeconds": seconds});
        }
        detail
    }
}
