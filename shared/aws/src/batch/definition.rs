//! Maps the answer of DescribeJobDefinitions.

use std::collections::HashMap;

use aws_sdk_batch::types::{self, ContainerProperties, EcsProperties, ResourceRequirement};
use spotsweep_control_plane::calls::JobDefinition;

pub(super) fn job_definition(found: types::JobDefinition) -> JobDefinition<types::JobDefinition> {
    let container = found.container_properties.as_ref();
    let tasks = found.ecs_properties.as_ref().map(EcsProperties::task_properties).unwrap_or_default();
    let of_tasks = || tasks.iter().flat_map(|task| task.containers());
    let resources = container.map(ContainerProperties::resource_requirements).unwrap_or_default();
    let resources = resources.iter().chain(of_tasks().flat_map(|one| one.resource_requirements()));
    let variables = container.map(ContainerProperties::environment).unwrap_or_default();
    let variables = variables.iter().chain(of_tasks().flat_map(|one| one.environment()));
    let volumes = container.map(ContainerProperties::volumes).unwrap_or_default();
    let volumes = volumes.iter().chain(tasks.iter().flat_map(|task| task.volumes()));
    let needed =
        |needed: &ResourceRequirement| Some((needed.r#type()?.as_str().to_owned(), needed.value()?.to_owned()));
    let timeout = found.timeout.as_ref().and_then(|timeout| timeout.attempt_duration_seconds);
    JobDefinition {
        arn: found.job_definition_arn.clone(),
        revision: found.revision.and_then(|revision| u32::try_from(revision).ok()),
        status: found.status.clone(),
        timeout_seconds: timeout.and_then(|seconds| u32::try_from(seconds).ok()),
        command: container.map(|container| container.command().to_vec()).unwrap_or_default(),
        image: container.and_then(|container| container.image.clone()),
        variables: variables.filter_map(|variable| variable.name.clone()).collect(),
        folders: volumes.filter_map(|volume| volume.host()?.source_path.clone()).collect(),
        resources: resources.filter_map(needed).collect(),
        properties: found,
    }
}

/// The tags of a definition without those that only AWS's services may set, such as CloudFormation's
/// (<https://docs.aws.amazon.com/batch/latest/userguide/using-tags.html>).
pub(super) fn own_tags(mut tags: HashMap<String, String>) -> HashMap<String, String> {
    tags.retain(|key, _| !key.to_ascii_lowercase().starts_with("aws:"));
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_cloudformation_are_not_set_again() {
        let tags = [("team", "vision"), ("aws:cloudformation:stack-name", "spotsweep"), ("awsome", "yes")];
        let own = own_tags(tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        assert_eq!(
            own.keys().collect::<std::collections::BTreeSet<_>>(),
            [&"awsome".to_owned(), &"team".to_owned()].into()
        );
    }
}
