//! Checks what trials run on: queue, compute environments, job definition and quotas.

use aws_sdk_batch::Client;
use aws_sdk_batch::types::{CeState, CeStatus, ComputeEnvironmentDetail, CrType, JobQueueDetail, JqState, JqStatus};
use spotsweep_protocol::wildcards::is_like;

use super::control_plane::Variables;
use super::finding::Finding;
use super::gpu_image;
use super::launch_template;
use super::quotas::{self, Market, Need};
use super::stack::Deployment;
use crate::target::Target;

/// The tag of the instances to which the roles may attach volumes.
const TAG: &str = "spotsweep:compute";

/// Strategies that use the order of the instance types.
const IN_ORDER_ON_SPOT: &str = "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED";
const IN_ORDER_ON_DEMAND: &str = "BEST_FIT_PROGRESSIVE_ORDERED";

/// Checks the queue and the job definition of sweeps that name none.
pub(super) async fn look(target: &Target, deployment: &Deployment, variables: &Variables) -> Vec<Finding> {
    let client = Client::new(&target.batch);
    let named = |variable: &str| variables.get(variable).filter(|name| !name.is_empty());
    let mut findings = Vec::new();
    match named("SPOTSWEEP_QUEUE") {
        Some(queue) => findings.extend(look_at_queue(&client, queue, target, deployment).await),
        None => findings.push(Finding::ok("job queue", "every sweep has to name its own")),
    }
    match named("SPOTSWEEP_JOB_DEFINITION") {
        Some(definition) => findings.push(look_at_definition(&client, definition).await),
        None => findings.push(Finding::ok("job definition", "every sweep has to name its own")),
    }
    findings
}

async fn look_at_queue(client: &Client, name: &str, target: &Target, deployment: &Deployment) -> Vec<Finding> {
    const ABOUT: &str = "job queue";
    let described = match client.describe_job_queues().job_queues(name).send().await {
        Ok(described) => described,
        Err(error) => return vec![Finding::refused(ABOUT, "batch:DescribeJobQueues", &error)],
    };
    let Some(queue) = described.job_queues().first() else {
        let fix = "make it (infra/compute.yaml), or deploy with the name of one that is there";
        return vec![Finding::problem(ABOUT, format!("there is no queue {name}"), fix)];
    };
    let mut findings = vec![queue_finding(name, queue)];
    let environments: Vec<String> = queue
        .compute_environment_order()
        .iter()
        .filter_map(|order| order.compute_environment().map(str::to_owned))
        .collect();
    let asked = client.describe_compute_environments().set_compute_environments(Some(environments));
    let described = match asked.send().await {
        Ok(described) => described,
        Err(error) => {
            findings.push(Finding::refused("compute environment", "batch:DescribeComputeEnvironments", &error));
            return findings;
        }
    };
    // With an endpoint of its own, it is no AWS account.
    let is_local = target.config.endpoint_url().is_some();
    for environment in described.compute_environments() {
        findings.push(environment_finding(environment, deployment.compute_tag(), is_local));
        // The local stack's instances do not boot, so there is no image to check.
        if !is_local {
            let ec2 = aws_sdk_ec2::Client::new(&target.config);
            findings.extend(launch_template::look(&target.config, environment).await);
            findings.extend(gpu_image::look(&ec2, environment).await);
            findings.extend(quotas::look(&target.config, need(environment).as_slice()).await);
        }
    }
    findings
}

/// The most that the environment may use.
fn need(environment: &ComputeEnvironmentDetail) -> Option<Need<'_>> {
    let resources = environment.compute_resources()?;
    let market = match resources.r#type()? {
        CrType::Spot => Market::Spot,
        CrType::Ec2 => Market::OnDemand,
        _fargate => return None,
    };
    let vcpus = resources.maxv_cpus().and_then(|most| u32::try_from(most).ok()).unwrap_or(0);
    Some(Need { market, vcpus, instance_types: resources.instance_types() })
}

fn queue_finding(name: &str, queue: &JobQueueDetail) -> Finding {
    const ABOUT: &str = "job queue";
    if queue.state() != Some(&JqState::Enabled) {
        let fix = format!("`aws batch update-job-queue --job-queue {name} --state ENABLED`");
        return Finding::problem(ABOUT, format!("{name} is off"), fix);
    }
    match queue.status() {
        Some(JqStatus::Valid) => Finding::ok(ABOUT, format!("{name} is on")),
        status => {
            let (status, reason) = (status.map_or("", JqStatus::as_str), queue.status_reason().unwrap_or_default());
            Finding::problem(
                ABOUT,
                format!("{name} is {status}: {reason}"),
                "fix what it says, or wait while it updates",
            )
        }
    }
}

fn environment_finding(environment: &ComputeEnvironmentDetail, wanted: &str, is_local: bool) -> Finding {
    const ABOUT: &str = "compute environment";
    let name = environment.compute_environment_name().unwrap_or_default();
    if environment.state() != Some(&CeState::Enabled) {
        let fix = format!("`aws batch update-compute-environment --compute-environment {name} --state ENABLED`");
        return Finding::problem(ABOUT, format!("{name} is off"), fix);
    }
    if environment.status() != Some(&CeStatus::Valid) {
        let status = environment.status().map_or("", CeStatus::as_str);
        let reason = environment.status_reason().unwrap_or_default();
        let fix = "https://docs.aws.amazon.com/batch/latest/userguide/invalid_compute_environment.html";
        return Finding::problem(ABOUT, format!("{name} is {status}: {reason}"), fix);
    }
    let resources = environment.compute_resources();
    let tag = resources.and_then(|resources| resources.tags()).and_then(|tags| tags.get(TAG)).map(String::as_str);
    // "*" requires any value. The local stack has no roles, and requires none.
    let is_reached = tag.is_some_and(|tag| is_like(wanted, tag)) || (is_local && wanted == "*");
    if !is_reached {
        let tag = tag.map_or("no such tag".to_owned(), |tag| format!("{tag:?}"));
        let said = format!("its instances have {tag} as {TAG}, and volumes are attached to {wanted:?} only");
        let fix = format!("give {name}'s instances the tag {TAG}={wanted}, or deploy with another ComputeTag");
        return Finding::problem(ABOUT, said, fix);
    }
    let most = resources.and_then(|resources| resources.maxv_cpus()).unwrap_or(0);
    if most == 0 {
        let fix = "deploy with more MaxVcpus: until then every trial waits";
        return Finding::problem(ABOUT, format!("{name} may have no vCPU at all"), fix);
    }
    Finding::ok(ABOUT, format!("{name} is valid, with up to {most} vCPUs{}", preference(environment)))
}

/// What Batch prefers if several instance types would do (fact 22).
fn preference(environment: &ComputeEnvironmentDetail) -> String {
    let resources = environment.compute_resources();
    let order = || resources.map_or_else(String::new, |resources| resources.instance_types().join(", "));
    match resources.and_then(|resources| resources.allocation_strategy()).map(|strategy| strategy.as_str()) {
        Some(IN_ORDER_ON_SPOT) => format!("; where Spot capacity is alike it takes its types in the order {}", order()),
        Some(IN_ORDER_ON_DEMAND) => format!("; it takes its types in the order {}", order()),
        Some(_) | None => String::new(),
    }
}

async fn look_at_definition(client: &Client, name: &str) -> Finding {
    const ABOUT: &str = "job definition";
    let bare = name.rsplit('/').next().unwrap_or(name);
    let (bare, revision) = bare.split_once(':').map_or((bare, None), |(bare, revision)| (bare, Some(revision)));
    let described = client.describe_job_definitions().job_definition_name(bare).status("ACTIVE").send().await;
    let definitions = match described {
        Ok(described) => described.job_definitions.unwrap_or_default(),
        Err(error) => return Finding::refused(ABOUT, "batch:DescribeJobDefinitions", &error),
    };
    let newest = definitions
        .iter()
        .filter(|found| {
            revision.is_none_or(|revision| found.revision().is_some_and(|known| known.to_string() == revision))
        })
        .filter_map(|found| found.revision())
        .max();
    match newest {
        Some(revision) => Finding::ok(ABOUT, format!("{bare}:{revision} is active")),
        None => {
            let fix = "register it (infra/compute.yaml), or deploy with the name of one that is there";
            Finding::problem(ABOUT, format!("{name} has no active revision"), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_batch::types::{ComputeResource, CrAllocationStrategy};

    use super::*;

    #[test]
    fn an_order_that_counts_is_shown() {
        let shown = |strategy: &str| {
            let resources = ComputeResource::builder()
                .allocation_strategy(CrAllocationStrategy::from(strategy))
                .set_instance_types(Some(["g6.xlarge", "g5.xlarge"].map(str::to_owned).into()))
                .build();
            preference(&ComputeEnvironmentDetail::builder().compute_resources(resources).build())
        };
        assert!(
            shown("SPOT_CAPACITY_OPTIMIZED_PRIORITIZED")
                .ends_with("is alike it takes its types in the order g6.xlarge, g5.xlarge")
        );
        assert!(shown("BEST_FIT_PROGRESSIVE_ORDERED").ends_with("in the order g6.xlarge, g5.xlarge"));
        assert_eq!(shown("SPOT_PRICE_CAPACITY_OPTIMIZED"), "");
    }
}
