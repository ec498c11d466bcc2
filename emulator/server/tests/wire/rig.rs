//! An emulator with one queue, and the SDK's clients.

use std::time::Duration;

use aws_sdk_batch::config::HttpClient;
use aws_sdk_batch::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_sdk_batch::types::{
    CeType, ComputeEnvironmentOrder, ComputeResource, ContainerOverrides, ContainerProperties, CrType,
    JobDefinitionType, JobDetail, JobStatus, ResourceRequirement, ResourceType, RetryStrategy,
};
use aws_smithy_http_client::tls;
use serde_json::Value;
use spotsweep_emulator::{Config, Emulator, Volumes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

pub(crate) struct Rig {
    pub(crate) emulator: Emulator,
    pub(crate) batch: aws_sdk_batch::Client,
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) ecs: aws_sdk_ecs::Client,
    pub(crate) events: mpsc::UnboundedReceiver<Value>,
    pub(crate) folder: tempfile::TempDir,
}

impl Rig {
    /// Starts an emulator with one queue and the definition `shell`, with one vCPU each and an image in a folder.
    pub(crate) async fn new() -> Rig {
        Rig::with(Volumes::Directories).await
    }

    /// Starts the same emulator with volumes of this kind.
    pub(crate) async fn with(volumes: Volumes) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::create_dir(&image).unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let mut config = Config::new(folder.path().join("work"));
        config.job_env = vec![("PATH".into(), "/usr/bin:/bin:/usr/sbin:/sbin".into())];
        config.entrypoint = vec!["/bin/sh".into(), "-c".into()];
        config.observer = Some(sender);
        config.container = Some(env!("CARGO_BIN_EXE_spotsweep-container").into());
        config.volumes = volumes;
        config.timings.boot = Duration::from_millis(50);
        config.timings.image_pull = Duration::from_millis(20);
        config.timings.stop_grace = Duration::from_millis(300);
        let emulator = Emulator::serve(config).await.unwrap();
        let shared = shared_config(&emulator.endpoint());
        let batch = aws_sdk_batch::Client::new(&shared);
        let ec2 = aws_sdk_ec2::Client::new(&shared);
        let ecs = aws_sdk_ecs::Client::new(&shared);
        let rig = Rig { emulator, batch, ec2, ecs, events, folder };
        rig.set_up(&image).await;
        rig
    }

    pub(crate) async fn set_up(&self, image: &std::path::Path) {
        let resources = ComputeResource::builder()
            .r#type(CrType::Spot)
            .minv_cpus(0)
            .maxv_cpus(4)
            .instance_types("c7i.large")
            .subnets("subnet-us-east-1a")
            .subnets("subnet-us-east-1b")
            .instance_role("ecsInstanceRole")
            .tags("sweep", "wire")
            .build();
        let environment = self.batch.create_compute_environment();
        let environment = environment.compute_environment_name("spot").r#type(CeType::Managed);
        environment.compute_resources(resources).send().await.unwrap();
        let order = ComputeEnvironmentOrder::builder().order(1).compute_environment("spot").build();
        let queue = self.batch.create_job_queue().job_queue_name("queue").priority(1);
        queue.compute_environment_order(order).send().await.unwrap();
        let needs = |kind, value: &str| ResourceRequirement::builder().r#type(kind).value(value).build();
        let container = ContainerProperties::builder()
            .image(format!("file://{}", image.display()))
            .resource_requirements(needs(ResourceType::Vcpu, "1"))
            .resource_requirements(needs(ResourceType::Memory, "512"))
            .build();
        let definition = self.batch.register_job_definition().job_definition_name("shell");
        let definition = definition.r#type(JobDefinitionType::Container);
        let definition = definition.container_properties(container).send().await.unwrap();
        assert_eq!(definition.revision(), Some(1));
    }

    pub(crate) async fn submit(&self, script: &str, attempts: i32) -> String {
        let submitted = self
            .batch
            .submit_job()
            .job_name("wire")
            .job_queue("queue")
            .job_definition("shell")
            .container_overrides(ContainerOverrides::builder().command(script).build())
            .retry_strategy(RetryStrategy::builder().attempts(attempts).build())
            .send()
            .await
            .unwrap();
        submitted.job_id().unwrap().to_owned()
    }

    pub(crate) async fn job(&self, id: &str) -> JobDetail {
        let answer = self.batch.describe_jobs().jobs(id).send().await.unwrap();
        answer.jobs()[0].clone()
    }

    pub(crate) async fn wait_for(&self, id: &str, status: JobStatus) -> JobDetail {
        let wait = async {
            loop {
                let job = self.job(id).await;
                if job.status() == Some(&status) {
                    return job;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(DEADLINE, wait).await {
            Ok(job) => job,
            Err(_) => panic!("{id} is not {status} but {:?}", self.job(id).await),
        }
    }

    /// Sends a POST that an SDK would not send, with this header line. Returns status, headers and body of the answer.
    pub(crate) async fn raw(&self, path: &str, header: &str, body: &str) -> (u16, String, String) {
        let endpoint = self.emulator.endpoint();
        let mut stream = TcpStream::connect(endpoint.strip_prefix("http://").unwrap()).await.unwrap();
        let length = body.len();
        let head = format!("POST /{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n");
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        stream.write_all(format!("{head}{header}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    pub(crate) fn log(&self, stream: &str) -> String {
        let path = self.folder.path().join("work/logs").join(stream);
        std::fs::read_to_string(path).unwrap()
    }

    pub(crate) fn statuses(&mut self, job: &str) -> Vec<String> {
        let mut statuses = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if event["detail"]["jobId"] == job {
                statuses.push(event["detail"]["status"].as_str().unwrap().to_owned());
            }
        }
        statuses
    }
}

pub(crate) fn http_client() -> impl HttpClient + 'static {
    aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https()
}

pub(crate) fn shared_config(endpoint: &str) -> aws_config::SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "test");
    aws_config::SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http_client())
        .build()
}

pub(crate) fn alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}
