//! Maps the answer of DescribeJobs.

use aws_sdk_batch::types;
use spotsweep_control_plane::event::batch_job_state::{
    ArrayProperties, AttemptDetail, Container, EcsProperties, JobDetail, TaskDetail,
};

/// Converts the SDK's JobDetail to that of the event, because both describe the same document (fact 12).
pub(super) fn job_detail(job: types::JobDetail) -> Result<JobDetail, serde_json::Error> {
    let attempt = |found: types::AttemptDetail| AttemptDetail {
        container: found.container.map(container).unwrap_or_default(),
        task_properties: found
            .task_properties
            .unwrap_or_default()
            .into_iter()
            .map(|task| TaskDetail {
                container_instance_arn: task.container_instance_arn,
                containers: task.containers.unwrap_or_default().into_iter().map(task_container).collect(),
            })
            .collect(),
        started_at: found.started_at,
        stopped_at: found.stopped_at,
        status_reason: found.status_reason,
    };
    let described = |task: types::EcsTaskDetails| TaskDetail {
        container_instance_arn: task.container_instance_arn,
        containers: task.containers.unwrap_or_default().into_iter().map(described_container).collect(),
    };
    let tasks = job.ecs_properties.and_then(|properties| properties.task_properties).unwrap_or_default();
    let status = job.status.as_ref().map(|status| status.as_str().to_owned()).unwrap_or_default();
    Ok(JobDetail {
        job_name: job.job_name.unwrap_or_default(),
        job_id: job.job_id.unwrap_or_default(),
        is_cancelled: job.is_cancelled,
        is_terminated: job.is_terminated,
        status: serde_json::from_value(status.into())?,
        status_reason: job.status_reason,
        started_at: job.started_at,
        attempts: job.attempts.unwrap_or_default().into_iter().map(attempt).collect(),
        container: job
            .container
            .map(|found| Container {
                container_instance_arn: found.container_instance_arn,
                exit_code: found.exit_code,
                reason: found.reason,
                log_stream_name: found.log_stream_name,
                ..Container::default()
            })
            .unwrap_or_default(),
        array_properties: job
            .array_properties
            .map(|array| ArrayProperties { size: array.size.and_then(|size| u32::try_from(size).ok()) }),
        ecs_properties: EcsProperties { task_properties: tasks.into_iter().map(described).collect() },
    })
}

fn container(found: types::AttemptContainerDetail) -> Container {
    Container {
        container_instance_arn: found.container_instance_arn,
        exit_code: found.exit_code,
        reason: found.reason,
        log_stream_name: found.log_stream_name,
        ..Default::default()
    }
}

fn task_container(found: types::AttemptTaskContainerDetails) -> Container {
    Container {
        name: found.name,
        exit_code: found.exit_code,
        reason: found.reason,
        log_stream_name: found.log_stream_name,
        ..Default::default()
    }
}

fn described_container(found: types::TaskContainerDetails) -> Container {
    Container {
        name: found.name,
        essential: found.essential,
        exit_code: found.exit_code,
        reason: found.reason,
        log_stream_name: found.log_stream_name,
        ..Default::default()
    }
}
