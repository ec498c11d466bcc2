//! Maps the answer of DescribeJobDefinitions.

use aws_sdk_batch::types::{self, ContainerProperties, EcsProperties, ResourceRequirement};
use spotsweep_control_plane::calls::JobDefinition;

pub(super) fn job_definition(found: types::JobDefinition) -> JobDefinition {
    let resources = resources(found.container_properties.as_ref(), found.ecs_properties.as_ref());
    let command = found.container_properties.as_ref().map(|container| container.command().to_vec()).unwrap_or_default();
    let timeout = found.timeout.and_then(|timeout| timeout.attempt_duration_seconds);
    JobDefinition {
        arn: found.job_definition_arn,
        revision: found.revision.and_then(|revision| u32::try_from(revision).ok()),
        status: found.status,
        timeout_seconds: timeout.and_then(|seconds| u32::try_from(seconds).ok()),
        command,
        resources,
    }
}

fn resources(container: Option<&ContainerProperties>, ecs: Option<&EcsProperties>) -> Vec<(String, String)> {
    let tasks = ecs.map(EcsProperties::task_properties).unwrap_or_default();
    let of_tasks = tasks.iter().flat_map(|task| task.containers()).flat_map(|one| one.resource_requirements());
    let of_container = container.map(ContainerProperties::resource_requirements).unwrap_or_default();
    let needed =
        |needed: &ResourceRequirement| Some((needed.r#type()?.as_str().to_owned(), needed.value()?.to_owned()));
    of_container.iter().chain(of_tasks).filter_map(needed).collect()
}
