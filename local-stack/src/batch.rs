//! Registers with the emulator what `infra/compute.yaml` makes on AWS: a Spot compute environment, a queue, and the job
//! definitions of the sweeps.

use std::num::NonZero;
use std::path::Path;

use aws_config::SdkConfig;
use aws_sdk_batch::types::{
    CeState, CeType, ComputeEnvironmentOrder, ComputeResource, ContainerProperties, CrAllocationStrategy, CrType,
    JobDefinitionType, JqState, KeyValuePair, ResourceRequirement, ResourceType,
};

use spotsweep_protocol::claim::DATA_CACHE;
use spotsweep_protocol::failure::{Context, Failure};

/// The queue of the sweeps whose file names none.
pub const QUEUE: &str = "spot";
const COMPUTE_ENVIRONMENT: &str = "spot";
/// An instance type with one vCPU, so that trials spread over zones as they would over GPU instances. Only Graviton has
/// such sizes.
const INSTANCE_TYPE: &str = "c7g.medium";
/// The availability zones. Each has one subnet, `subnet-<zone>`.
pub const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
const MEMORY_MIB: &str = "1024";
/// Name and command of each job definition. The programs of the commands lie in the code folder.
const DEFINITIONS: [(&str, &[&str]); 2] =
    [("train", &["python", "train.py", "${args}"]), ("train-seed", &["python", "train_seed.py"])];

/// Makes the compute environment, the queue and the job definitions. `code` is the folder in which jobs run, and
/// `endpoint` is where they find AWS. Without `max_vcpus`, as many trials run at once as there are cores: more would
/// slow each other down.
pub async fn register(
    config: &SdkConfig,
    code: &Path,
    endpoint: &str,
    max_vcpus: Option<NonZero<u16>>,
) -> Result<(), Failure> {
    let client = aws_sdk_batch::Client::new(config);
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let vcpus = max_vcpus.map_or_else(cores, |most| usize::from(most.get()));
    let resources = ComputeResource::builder()
        .r#type(CrType::Spot)
        .allocation_strategy(CrAllocationStrategy::SpotPriceCapacityOptimized)
        .minv_cpus(0)
        .maxv_cpus(i32::try_from(vcpus).unwrap_or(i32::MAX))
        .instance_types(INSTANCE_TYPE)
        .set_subnets(Some(ZONES.map(|zone| format!("subnet-{zone}")).into()))
        .security_group_ids("sg-local")
        .instance_role("ecsInstanceRole")
        // The functions' roles attach volumes only to instances with this tag.
        .tags("spotsweep:compute", COMPUTE_ENVIRONMENT)
        .build();
    client
        .create_compute_environment()
        .compute_environment_name(COMPUTE_ENVIRONMENT)
        .r#type(CeType::Managed)
        .state(CeState::Enabled)
        .compute_resources(resources)
        .send()
        .await
        .context(|| "cannot create the compute environment")?;
    client
        .create_job_queue()
        .job_queue_name(QUEUE)
        .state(JqState::Enabled)
        .priority(1)
        .compute_environment_order(
            ComputeEnvironmentOrder::builder().order(1).compute_environment(COMPUTE_ENVIRONMENT).build(),
        )
        .send()
        .await
        .context(|| "cannot create the job queue")?;
    for (name, command) in DEFINITIONS {
        client
            .register_job_definition()
            .job_definition_name(name)
            .r#type(JobDefinitionType::Container)
            .container_properties(container(code, command, endpoint))
            .send()
            .await
            .context(|| format!("cannot register the job definition {name}"))?;
    }
    Ok(())
}

fn container(code: &Path, command: &[&str], endpoint: &str) -> ContainerProperties {
    let requirement = |kind, value: &str| ResourceRequirement::builder().r#type(kind).value(value).build();
    let variables = [("AWS_ENDPOINT_URL", endpoint), (DATA_CACHE, "/opt/spotsweep-data")];
    ContainerProperties::builder()
        .image(format!("file://{}", code.display()))
        .set_command(Some(command.iter().map(ToString::to_string).collect()))
        .resource_requirements(requirement(ResourceType::Vcpu, "1"))
        .resource_requirements(requirement(ResourceType::Memory, MEMORY_MIB))
        .set_environment(Some(
            variables.map(|(name, value)| KeyValuePair::builder().name(name).value(value).build()).into(),
        ))
        .build()
}
