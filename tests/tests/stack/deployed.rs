//! Deploys `infra/control-plane.yaml` to the local stack. Each resource is read back with its important settings. Each
//! role is compared with what its function does, by removing actions from it.
//!
//! ministack 1.5 ignores some settings silently, and they cannot be read back here: the table's expiry
//! (`TimeToLiveSpecification`), point-in-time recovery and `SSESpecification`, and the bucket's lifecycle. Nor does it
//! enforce roles for EC2 and Batch, which the emulator serves. `tests/tests/simulation/permissions.rs` compares those
//! with the template. cfn-lint and checkov read the rest of it.

use std::collections::BTreeSet;
use std::fs;

use aws_sdk_cloudformation::types::{Capability, Parameter, TemplateStage};
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_s3::error::ProvideErrorMetadata;
use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::Stage;
use spotsweep_tests::local::{Stack, call_json, drop_file, eventually, s3};

const STACK: &str = "spotsweep-local";
const ARTIFACTS: &str = "spotsweep-local-artifacts";
/// A sweep file. Its event is not delivered while the rule is disabled.
const TRIAL: &str = "- {lr: 0.01, hidden: 16, epochs: 1}\n";
/// Each rule: its function, the sources in its patterns, and for how many seconds an event may wait for it.
const RULES: [(&str, &str, &str, u32); 7] = [
    ("sweep-upload", "sweep-upload", "aws.s3", 86_400),
    ("sweep-keeping", "sweep-upload", "spotsweep", 86_400),
    ("batch-job-state", "batch-job-state", "aws.batch", 86_400),
    ("spot-interruption", "spot-interruption", "aws.ec2", 120),
    ("ebs-state", "ebs-state", "aws.ec2", 86_400),
    ("sweep-settled", "sweep-settled", "spotsweep", 86_400),
    ("reconcile", "reconcile", "", 300),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_what_the_template_says() {
    let stack = Stack::start("deployed").await;
    read_bucket(&stack).await;
    put_odd_keys(&stack).await;
    read_table(&stack).await;
    let outputs = outputs(&stack).await;
    let failed = read_queue(&stack, &outputs["FailedEvents"]).await;
    let undelivered = read_queue(&stack, &outputs["UndeliveredEvents"]).await;
    let policy: Value = serde_json::from_str(undelivered["Policy"].as_str().unwrap()).unwrap();
    let allowed = policy["Statement"][0]["Condition"]["ArnEquals"]["aws:SourceArn"].as_array().unwrap().len();
    assert_eq!(allowed, RULES.len(), "{policy}");
    for (name, function, source, oldest_seconds) in RULES {
        let rule = call_json(&stack.endpoint, "AWSEvents.DescribeRule", &json!({ "Name": name })).await;
        assert_eq!(rule["State"], "ENABLED", "{name}");
        match rule["EventPattern"].as_str() {
            Some(pattern) => {
                let pattern: Value = serde_json::from_str(pattern).unwrap();
                assert_eq!(pattern["source"], json!([source]), "{name}");
            }
            None => assert_eq!(rule["ScheduleExpression"], "rate(1 minute)", "{name}"),
        }
        let targets = call_json(&stack.endpoint, "AWSEvents.ListTargetsByRule", &json!({ "Rule": name })).await;
        let [target] = targets["Targets"].as_array().unwrap().as_slice() else { unreachable!("{name}: {targets}") };
        assert!(target["Arn"].as_str().unwrap().ends_with(&format!(":function:{function}")), "{target}");
        assert_eq!(target["DeadLetterConfig"]["Arn"], undelivered["QueueArn"], "{name}");
        assert_eq!(target["RetryPolicy"]["MaximumEventAgeInSeconds"], oldest_seconds, "{name}");
    }
    let functions: BTreeSet<_> = RULES.into_iter().map(|(_, function, ..)| function).chain(["trial-claim"]).collect();
    for name in functions {
        read_function(&stack, name, failed["QueueArn"].as_str().unwrap()).await;
    }
    stack.stop().await;
}

/// The local stack accepts keys of up to 1 024 bytes with any character, as S3 does
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>).
async fn put_odd_keys(stack: &Stack) {
    let put = async |key: String| {
        let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key(key).body(b"x".to_vec().into());
        put.send().await.map_err(|error| error.code().unwrap_or_default().to_owned())
    };
    for (name, taken) in [("\n", true), ("\u{1}", true), (&"a".repeat(1022), true), (&"a".repeat(1023), false)] {
        let put = put(format!("x/{name}")).await.map(drop);
        assert_eq!(put, if taken { Ok(()) } else { Err("KeyTooLongError".to_owned()) }, "{name:?}");
    }
}

async fn read_bucket(stack: &Stack) {
    let (client, bucket) = (s3(&stack.config()), &stack.bucket);
    let versioning = client.get_bucket_versioning().bucket(bucket).send().await.unwrap();
    assert_eq!(versioning.status.unwrap().as_str(), "Enabled");
    let encryption = client.get_bucket_encryption().bucket(bucket).send().await.unwrap();
    let rules = encryption.server_side_encryption_configuration.unwrap().rules;
    assert_eq!(rules[0].apply_server_side_encryption_by_default.as_ref().unwrap().sse_algorithm.as_str(), "AES256");
    let block = client.get_public_access_block().bucket(bucket).send().await.unwrap();
    let block = block.public_access_block_configuration.unwrap();
    let blocked =
        [block.block_public_acls, block.ignore_public_acls, block.block_public_policy, block.restrict_public_buckets];
    assert_eq!(blocked, [Some(true); 4]);
    let owner = client.get_bucket_ownership_controls().bucket(bucket).send().await.unwrap();
    assert_eq!(owner.ownership_controls.unwrap().rules[0].object_ownership.as_str(), "BucketOwnerEnforced");
    let events = client.get_bucket_notification_configuration().bucket(bucket).send().await.unwrap();
    assert!(events.event_bridge_configuration.is_some());
    let policy = client.get_bucket_policy().bucket(bucket).send().await.unwrap().policy.unwrap();
    let policy: Value = serde_json::from_str(&policy).unwrap();
    let [statement] = policy["Statement"].as_array().unwrap().as_slice() else { unreachable!("{policy}") };
    assert_eq!((&statement["Effect"], &statement["Action"]), (&json!("Deny"), &json!("s3:*")));
    assert_eq!(statement["Condition"], json!({ "Bool": { "aws:SecureTransport": "false" } }));
    assert_eq!(
        statement["Resource"],
        json!([format!("arn:aws:s3:::{bucket}"), format!("arn:aws:s3:::{bucket}/*")]),
        "the bucket and all that is in it"
    );
}

async fn read_table(stack: &Stack) {
    let request = json!({ "TableName": stack.table });
    let table = &call_json(&stack.endpoint, "DynamoDB_20120810.DescribeTable", &request).await["Table"];
    assert_eq!(table["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(table["DeletionProtectionEnabled"], true);
    let keys = |keys: &Value| -> Vec<String> {
        keys.as_array().unwrap().iter().map(|key| key["AttributeName"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&table["KeySchema"]), ["pk", "sk"]);
    let [index] = table["GlobalSecondaryIndexes"].as_array().unwrap().as_slice() else { unreachable!("{table}") };
    assert_eq!((&index["IndexName"], keys(&index["KeySchema"])), (&json!("open"), vec!["open".into(), "sk".into()]));
    assert_eq!(index["Projection"], json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": ["due", "job"] }));
}

async fn read_queue(stack: &Stack, url: &Value) -> Value {
    let request = json!({ "QueueUrl": url, "AttributeNames": ["All"] });
    let attributes = call_json(&stack.endpoint, "AmazonSQS.GetQueueAttributes", &request).await["Attributes"].take();
    let kept = (&attributes["SqsManagedSseEnabled"], &attributes["MessageRetentionPeriod"]);
    assert_eq!(kept, (&json!("true"), &json!("1209600")), "encrypted, and kept for two weeks: {attributes}");
    attributes
}

async fn read_function(stack: &Stack, name: &str, failed: &str) {
    let lambda = aws_sdk_lambda::Client::new(&stack.config());
    let function = lambda.get_function_configuration().function_name(name).send().await.unwrap();
    // The role of sweep-upload is SweepUploadRole, with CloudFormation's prefix and suffix.
    let role: String = name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    assert!(function.role().unwrap().contains(&format!(":role/{STACK}-{role}Role-")), "{name}: {:?}", function.role());
    assert_eq!((function.timeout(), function.runtime().unwrap().as_str()), (Some(60), "provided.al2023"), "{name}");
    let variables = function.environment().unwrap().variables().unwrap();
    let expected =
        [("SPOTSWEEP_TABLE", &*stack.table), ("SPOTSWEEP_BUCKET", &stack.bucket), ("SPOTSWEEP_QUEUE", "spot")];
    for (variable, value) in expected {
        assert_eq!(variables[variable], value, "{name}");
    }
    let on_failure = lambda.get_function_event_invoke_config().function_name(name).qualifier("$LATEST").send().await;
    let on_failure = on_failure.unwrap_or_else(|error| unreachable!("{name}: {error:?}"));
    assert_eq!(on_failure.maximum_retry_attempts(), Some(2), "{name}");
    let destination = on_failure.destination_config().unwrap().on_failure().unwrap().destination();
    assert_eq!(destination, Some(failed), "{name}");
    let logs = json!({ "logGroupNamePrefix": format!("/aws/lambda/{name}") });
    let logs = call_json(&stack.endpoint, "Logs_20140328.DescribeLogGroups", &logs).await;
    assert_eq!(logs["logGroups"][0]["retentionInDays"], 30, "{name}");
}

async fn outputs(stack: &Stack) -> Value {
    let client = aws_sdk_cloudformation::Client::new(&stack.config());
    let stacks = client.describe_stacks().stack_name(STACK).send().await.unwrap();
    let outputs = stacks.stacks()[0].outputs().iter();
    outputs.map(|output| (output.output_key.clone().unwrap(), json!(output.output_value))).collect()
}

/// An action that a policy allows, and a function that needs it.
struct Taken {
    policy: &'static str,
    action: &'static str,
    function: &'static str,
}

const OF_UPLOAD: [Taken; 4] = [
    Taken { policy: "TablePolicy", action: "dynamodb:GetItem", function: "sweep-upload" },
    Taken { policy: "TablePolicy", action: "dynamodb:PutItem", function: "sweep-upload" },
    Taken { policy: "SubmitPolicy", action: "s3:GetObjectVersion", function: "sweep-upload" },
    Taken { policy: "SubmitPolicy", action: "s3:PutObject", function: "sweep-upload" },
];
const OF_SETTLED: [Taken; 3] = [
    Taken { policy: "FindPolicy", action: "dynamodb:Query", function: "sweep-settled" },
    Taken { policy: "SettlePolicy", action: "s3:PutObject", function: "sweep-settled" },
    Taken { policy: "AnnouncePolicy", action: "events:PutEvents", function: "sweep-settled" },
];

#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_refused_what_its_role_does_not_allow() {
    let stack = Stack::start("roles").await;
    let template = Deployed::read(&stack).await;
    let events = aws_sdk_eventbridge::Client::new(&stack.config());
    events.disable_rule().name("sweep-upload").send().await.unwrap();
    events.disable_rule().name("sweep-settled").send().await.unwrap();
    assert_jobs_role(&stack).await;

    for (number, taken) in OF_UPLOAD.iter().enumerate() {
        let file = drop_file(&stack.config(), &stack.bucket, &format!("refused-{number}"), TRIAL).await;
        template.assert_refused(taken, &file).await;
    }
    // With all actions given back, the same template runs a sweep up to the point where the rule would call
    // sweep-settled.
    let file = drop_file(&stack.config(), &stack.bucket, "allowed", TRIAL).await;
    let answer = invoke(&stack, "sweep-upload", &file).await;
    assert!(answer.is_ok(), "{answer:?}");
    let reader = Reader::new(&stack.config(), stack.table.clone());
    let find = async |stage: Stage| {
        let sweeps = reader.sweeps().await.unwrap();
        sweeps.into_iter().find(|sweep| sweep.upload.key.contains("allowed") && sweep.stage == stage)
    };
    let sweep = eventually("the only trial ends", async || find(Stage::Settling).await).await;
    let settling = json!({ "version": "0", "id": "1", "source": "spotsweep", "detail-type": "Sweep Settling",
        "account": "000000000000", "time": "2026-11-21T12:00:00Z", "region": "us-east-1", "resources": [],
        "detail": { "sweep": sweep.id } });
    for taken in &OF_SETTLED {
        template.assert_refused(taken, &settling).await;
    }
    assert!(find(Stage::Settling).await.is_some(), "an action was refused, and the sweep is settled");
    let answer = invoke(&stack, "sweep-settled", &settling).await;
    assert!(answer.is_ok(), "{answer:?}");
    eventually("the sweep is settled", async || find(Stage::Settled).await).await;
    stack.stop().await;
}

/// The error with which a put or a get was refused.
type Refused = Option<String>;

/// A client of the bucket with credentials that are not the test's own.
struct Visitor<'a> {
    stack: &'a Stack,
    config: aws_config::SdkConfig,
}

impl<'a> Visitor<'a> {
    fn new(stack: &'a Stack, id: &str, secret: &str, token: &str) -> Self {
        let credentials = Credentials::new(id, secret, Some(token.to_owned()), None, "a trial's");
        let credentials = SharedCredentialsProvider::new(credentials);
        Self { stack, config: stack.config().to_builder().credentials_provider(credentials).build() }
    }

    async fn put(&self, key: &str) -> Result<(), Refused> {
        let put = s3(&self.config).put_object().bucket(&self.stack.bucket).key(key).body(b"{}".to_vec().into());
        put.send().await.map(drop).map_err(|error| error.into_service_error().meta().code().map(str::to_owned))
    }

    async fn get(&self, key: &str) -> Result<(), Refused> {
        let get = s3(&self.config).get_object().bucket(&self.stack.bucket).key(key);
        get.send().await.map(drop).map_err(|error| error.into_service_error().meta().code().map(str::to_owned))
    }
}

fn denied() -> Result<(), Refused> {
    Err(Some("AccessDenied".to_owned()))
}

/// A job's credentials allow to read sweep files and to claim, and nothing else.
async fn assert_jobs_role(stack: &Stack) {
    let secret = "ASIAJOBJOBJOBJOBJOB0";
    let job = Visitor::new(stack, secret, secret, secret);
    let by_hand = s3(&stack.config()).put_object().bucket(&stack.bucket);
    by_hand.key("sweeps/mine.yaml").body(b"- {a: 1}".to_vec().into()).send().await.unwrap();
    assert_eq!(job.get("sweeps/mine.yaml").await, Ok(()));
    for key in ["results/some-sweep/trials/0/model.bin", "results/some-sweep/summary.json", "sweeps/another.yaml"] {
        assert_eq!(job.put(key).await, denied(), "{key}");
    }
    // The answer to a sweep file names the jobs whose ids a claim needs.
    for key in ["results/some-sweep/trials.jsonl", "sweeps/mine.yaml.plan.json"] {
        assert_eq!(job.get(key).await, denied(), "{key}");
    }
    let lambda = aws_sdk_lambda::Client::new(&job.config);
    let call = lambda.invoke().function_name("reconcile").payload(Blob::new("{}")).send().await;
    let refusal = format!("{:?}", call.unwrap_err());
    assert!(refusal.contains("not authorized to perform: lambda:InvokeFunction"), "{refusal}");
}

/// An attempt that has claimed its trial is issued credentials. They reach the trial's objects, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_an_attempt_reach_its_own_trial_only() {
    let stack = Stack::start("issued").await;
    let file = "program: train.py\ncommand: [sleep, '600']\nparameters: {lr: {values: [0.1, 0.2]}}\nmethod: grid\n";
    drop_file(&stack.config(), &stack.bucket, "issued", file).await;
    let reader = Reader::new(&stack.config(), stack.table.clone());
    let (sweep, token, trial) = eventually("the second trial is claimed", async || {
        let sweep = reader.sweeps().await.unwrap().into_iter().next()?;
        let trial = reader.trial(&sweep.id, 1).await.unwrap()?;
        trial.claimed_by.is_some().then_some((sweep.id, sweep.claim_token, trial))
    })
    .await;
    let ask = |attempt: u32| {
        let job = trial.job.to_string();
        json!({ "request": "access", "sweep": sweep, "index": 1, "job": job, "attempt": attempt, "token": token,
            "secret": trial.secret })
    };
    let reply = async |attempt| -> Reply {
        serde_json::from_str(&invoke(&stack, "trial-claim", &ask(attempt)).await.unwrap()).unwrap()
    };
    assert_eq!(reply(2).await, Reply::Refused { reason: StopReason::NotClaimed { attempt: 2 } });

    let Reply::Access(issued) = reply(1).await else { unreachable!("attempt 1 has the trial") };
    let attempt = Visitor::new(&stack, &issued.access_key_id, &issued.secret_access_key, &issued.session_token);
    assert_eq!(attempt.put(&format!("results/{sweep}/trials/1/model.bin")).await, Ok(()));
    assert_eq!(attempt.get(&format!("results/{sweep}/trials.jsonl")).await, Ok(()));
    for key in ["trials/0/model.bin", "trials/10/model.bin", "trials/1", "summary.json"] {
        assert_eq!(attempt.put(&format!("results/{sweep}/{key}")).await, denied(), "{key}");
    }
    let beside = [format!("results/{sweep}/trials/1/model.bin"), format!("results/{sweep}/trials.idx")];
    for key in beside.iter().map(String::as_str).chain(["results/other/trials.jsonl", "sweeps/issued.yaml"]) {
        assert_eq!(attempt.get(key).await, denied(), "{key}");
    }
    assert_eq!(attempt.put("results/other/trials/1/model.bin").await, denied());
    stack.stop().await;
}

/// The deployed template of the control plane, which can be deployed again with fewer permissions.
struct Deployed<'a> {
    stack: &'a Stack,
    client: aws_sdk_cloudformation::Client,
    text: String,
}

impl<'a> Deployed<'a> {
    async fn read(stack: &'a Stack) -> Self {
        let client = aws_sdk_cloudformation::Client::new(&stack.config());
        let template = client.get_template().stack_name(STACK).template_stage(TemplateStage::Original).send().await;
        Self { stack, client, text: template.unwrap().template_body.unwrap() }
    }

    /// Removes an action from a role, asserts that the function fails because of it, and gives the action back.
    async fn assert_refused(&self, taken: &Taken, event: &Value) {
        let Taken { policy, action, function } = taken;
        let from = self.text.find(&format!("\n  {policy}:\n")).unwrap() + 1;
        let to = from + self.text[from..].find("\n\n").unwrap();
        let without = self.text[from..to].replace(action, "sts:GetCallerIdentity");
        assert_ne!(without, self.text[from..to], "{policy} does not allow {action}");
        self.deploy(&[&self.text[..from], &without, &self.text[to..]].concat()).await;
        let seen = fs::read(&self.stack.functions_log).unwrap().len();
        let answer = invoke(self.stack, function, event).await.expect_err(function);
        // The answer says what failed. If it does not say why, the log does.
        let refusal = format!("/{function} is not authorized to perform: {action} ");
        eventually(&format!("{function} without {action}, which answers {answer}"), async || {
            let log = fs::read(&self.stack.functions_log).unwrap();
            let is_said = answer.contains(&refusal) || String::from_utf8_lossy(&log[seen..]).contains(&refusal);
            is_said.then_some(())
        })
        .await;
        self.deploy(&self.text).await;
    }

    async fn deploy(&self, text: &str) {
        let described = self.client.describe_stacks().stack_name(STACK).send().await.unwrap();
        let names = described.stacks()[0].parameters().iter().filter_map(|parameter| parameter.parameter_key.clone());
        let kept = |name| Parameter::builder().parameter_key(name).use_previous_value(true).build();
        let put = s3(&self.stack.config()).put_object().bucket(ARTIFACTS).key("changed.yaml");
        put.body(text.as_bytes().to_vec().into()).send().await.unwrap();
        let url = format!("https://s3.amazonaws.com/{ARTIFACTS}/changed.yaml");
        let update = self.client.update_stack().stack_name(STACK).template_url(url);
        let update = update.set_parameters(Some(names.map(kept).collect()));
        let update = update.capabilities(Capability::CapabilityNamedIam).capabilities(Capability::CapabilityAutoExpand);
        update.send().await.unwrap();
        eventually("the update is complete", async || {
            let stacks = self.client.describe_stacks().stack_name(STACK).send().await.unwrap();
            let status = stacks.stacks()[0].stack_status.clone().unwrap();
            assert!(!status.as_str().contains("ROLLBACK"), "{status}");
            (status.as_str() == "UPDATE_COMPLETE").then_some(())
        })
        .await;
    }
}

/// Invokes a function, and waits for its answer. The function's error is returned as an error.
pub(super) async fn invoke(stack: &Stack, function: &str, event: &Value) -> Result<String, String> {
    let lambda = aws_sdk_lambda::Client::new(&stack.config());
    let call = lambda.invoke().function_name(function).payload(Blob::new(event.to_string())).send().await.unwrap();
    let answer = String::from_utf8_lossy(call.payload().unwrap().as_ref()).into_owned();
    if call.function_error().is_some() { Err(answer) } else { Ok(answer) }
}
