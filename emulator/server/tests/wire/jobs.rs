//! Jobs as processes, instances, errors.

use std::time::Duration;

use aws_config::imds;
use aws_config::provider_config::ProviderConfig;
use aws_sdk_batch::error::ProvideErrorMetadata;
use aws_sdk_batch::types::{ContainerOverrides, JobStatus, KeyValuesPair};
use serde_json::Value;

use crate::rig::{Rig, alive, http_client};

#[tokio::test]
async fn a_job_runs_as_a_process_and_its_exit_code_decides() {
    let mut rig = Rig::new().await;
    let script = "echo attempt $AWS_BATCH_JOB_ATTEMPT in $PWD; env > $SPOTSWEEP_ROOT/env; \
                  [ $AWS_BATCH_JOB_ATTEMPT = 2 ] || exit 3";
    let id = rig.submit(script, 2).await;
    let job = rig.wait_for(&id, JobStatus::Succeeded).await;
    let codes: Vec<_> =
        job.attempts().iter().map(|attempt| attempt.container().unwrap().exit_code().unwrap()).collect();
    assert_eq!(codes, [3, 0]);
    let streams: Vec<_> =
        job.attempts().iter().map(|attempt| attempt.container().unwrap().log_stream_name().unwrap()).collect();
    let image = rig.folder.path().join("image");
    assert_eq!(rig.log(streams[0]), format!("attempt 1 in {}\n", image.display()));
    assert_eq!(rig.log(streams[1]), format!("attempt 2 in {}\n", image.display()));
    let env = rig.folder.path().join(format!("work/attempts/{id}-0-2/env"));
    let env = std::fs::read_to_string(env).unwrap();
    assert!(env.contains("AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:"), "{env}");
    assert!(!env.contains("CARGO"), "nothing is inherited: {env}");
    let wanted = ["RUNNABLE", "STARTING", "RUNNING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED"];
    assert_eq!(rig.statuses(&id), wanted);

    let filter = KeyValuesPair::builder().name("JOB_NAME").values("WIRE").build();
    let listed = rig.batch.list_jobs().job_queue("queue").filters(filter).send().await.unwrap();
    assert_eq!(listed.job_summary_list()[0].job_id(), Some(id.as_str()));
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn errors_reach_the_sdk_with_their_codes() {
    let rig = Rig::new().await;
    let wrong = rig.batch.submit_job().job_name("a").job_queue("nope").job_definition("shell");
    let error = wrong.send().await.unwrap_err();
    assert!(error.as_service_error().unwrap().is_client_exception());
    assert_eq!(error.message(), Some("JobQueue nope not found."));
    let call = rig.batch.submit_job().job_name("a").job_queue("queue").job_definition("shell");
    let error = call.parameters("big", "x".repeat(30 * 1024)).send().await.unwrap_err();
    assert!(error.message().unwrap().contains("exceeds the limit of 30720 bytes"));
    let unknown = rig.ec2.describe_instances().instance_ids("i-0123456789abcdef0").send().await;
    assert_eq!(unknown.unwrap_err().code(), Some("InvalidInstanceID.NotFound"));
    let malformed = rig.ec2.describe_instances().instance_ids("x").send().await;
    assert_eq!(malformed.unwrap_err().code(), Some("InvalidInstanceID.Malformed"));
    let other = rig.ec2.describe_launch_template_versions().send().await;
    assert_eq!(other.unwrap_err().code(), Some("InvalidAction"));
    let other = rig.batch.list_scheduling_policies().send().await;
    assert_eq!(other.unwrap_err().code(), Some("UnknownOperationException"));
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_has_no_answer_but_its_effect() {
    let rig = Rig::new().await;
    let fault = serde_json::json!({"action": "SubmitJob", "when": "after", "kind": "drop"});
    let fault = serde_json::from_value(fault).unwrap();
    rig.emulator.with_world(|world, _now| world.fault(fault));
    let once = aws_sdk_batch::config::retry::RetryConfig::disabled();
    let config = rig.batch.config().to_builder().retry_config(once).build();
    let client = aws_sdk_batch::Client::from_conf(config);
    let call = client.submit_job().job_name("dropped").job_queue("queue").job_definition("shell");
    let command = ContainerOverrides::builder().command("true").build();
    let error = call.container_overrides(command).send().await.unwrap_err();
    assert!(error.as_service_error().is_none(), "no answer, not an error answer: {error:?}");
    let filter = KeyValuesPair::builder().name("JOB_NAME").values("dropped").build();
    let listed = rig.batch.list_jobs().job_queue("queue").filters(filter).send().await.unwrap();
    assert_eq!(listed.job_summary_list().len(), 1);
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn instances_answer_at_ec2_and_at_their_own_metadata_service() {
    let rig = Rig::new().await;
    let id = rig.submit("exec sleep 60", 1).await;
    rig.wait_for(&id, JobStatus::Running).await;
    let tag = aws_sdk_ec2::types::Filter::builder().name("tag:sweep").values("w?r*").build();
    let found = rig.ec2.describe_instances().filters(tag).send().await.unwrap();
    let instance = found.reservations()[0].instances()[0].clone();
    let instance_id = instance.instance_id().unwrap().to_owned();
    let zone = instance.placement().unwrap().availability_zone().unwrap();
    assert!(instance.launch_time().is_some());

    let endpoint = format!("{}/imds/{instance_id}", rig.emulator.endpoint());
    let provided = ProviderConfig::without_region().with_http_client(http_client());
    let metadata = imds::Client::builder().configure(&provided).endpoint(&endpoint).unwrap().build();
    let get = async |name: &str| {
        let value = metadata.get(format!("/latest/meta-data/{name}")).await;
        value.map(|text| text.as_ref().to_owned())
    };
    assert_eq!(get("instance-id").await.unwrap(), instance_id);
    assert_eq!(get("placement/availability-zone").await.unwrap(), zone);
    assert_eq!(get("placement/region").await.unwrap(), "us-east-1");
    assert!(get("spot/instance-action").await.is_err(), "404 until there is one");
    assert!(get("events/recommendations/rebalance").await.is_err());
    let notice = Some(Duration::from_millis(400));
    rig.emulator.with_world(|world, now| {
        world.recommend_rebalance(&instance_id, now).unwrap();
        world.reclaim(&instance_id, notice, now).unwrap();
    });
    let action: Value = serde_json::from_str(&get("spot/instance-action").await.unwrap()).unwrap();
    assert_eq!(action["action"], "terminate");
    assert!(get("events/recommendations/rebalance").await.unwrap().contains("noticeTime"));
    let job = rig.wait_for(&id, JobStatus::Failed).await;
    let attempt = &job.attempts()[0];
    assert_eq!(attempt.container().unwrap().exit_code(), None);
    let reason = format!("Host EC2 (instance {instance_id}) terminated.");
    assert_eq!(attempt.status_reason(), Some(reason.as_str()));
    assert!(get("instance-id").await.is_err(), "the service died with its machine");
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn stopping_ends_the_whole_process_group() {
    let rig = Rig::new().await;
    // The script ignores SIGTERM and has a child, so only SIGKILL to the group ends both.
    let script = "trap '' TERM; sleep 60 & echo $!; wait; wait; sleep 60";
    let terminated = rig.submit(script, 5).await;
    let shut_down = rig.submit(script, 5).await;
    rig.wait_for(&terminated, JobStatus::Running).await;
    rig.wait_for(&shut_down, JobStatus::Running).await;
    let stream_of = async |id: &str| rig.job(id).await.container().unwrap().log_stream_name().unwrap().to_owned();
    let first = written_pid(&rig, &stream_of(&terminated).await).await;
    let second = written_pid(&rig, &stream_of(&shut_down).await).await;
    let terminate = rig.batch.terminate_jobs().jobs(&terminated).jobs("of-no-queue").reason("enough");
    let answer = terminate.send().await.unwrap();
    assert_eq!((answer.successful(), answer.errors()), (&[terminated.clone(), "of-no-queue".to_owned()][..], &[][..]));
    let job = rig.wait_for(&terminated, JobStatus::Failed).await;
    assert_eq!(job.status_reason(), Some("enough"));
    let container = job.attempts()[0].container().unwrap();
    assert_eq!(container.exit_code(), Some(137));
    assert!(alive(second));
    rig.emulator.shutdown().await;
    let ended = async {
        while alive(first) || alive(second) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), ended).await.expect("both end before they would by themselves");
}

#[tokio::test]
async fn an_image_or_program_that_is_missing_fails_the_attempt_with_its_reason() {
    let rig = Rig::new().await;
    std::fs::remove_dir(rig.folder.path().join("image")).unwrap();
    let id = rig.submit("true", 1).await;
    let job = rig.wait_for(&id, JobStatus::Failed).await;
    let container = job.attempts()[0].container().unwrap();
    assert!(container.reason().unwrap().starts_with("CannotPullContainerError: "));
    assert_eq!((container.exit_code(), job.status_reason()), (None, Some("Task failed to start")));
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn dropping_the_emulator_leaves_no_process() {
    let rig = Rig::new().await;
    let id = rig.submit("echo $$; sleep 60 & wait", 1).await;
    let job = rig.wait_for(&id, JobStatus::Running).await;
    let pid = written_pid(&rig, job.container().unwrap().log_stream_name().unwrap()).await;
    assert!(alive(pid));
    drop(rig.emulator);
    let ended = async {
        while alive(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("it ends before it would by itself");
}

/// Returns the process id that a job prints first.
async fn written_pid(rig: &Rig, stream: &str) -> u32 {
    let written = async {
        loop {
            if let Ok(pid) = rig.log(stream).trim().parse() {
                return pid;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written).await.expect("the job writes its process id")
}
