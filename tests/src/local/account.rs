//! An account in which a test runs functions by hand, or kills them. It has S3 and DynamoDB of a local stack, and an
//! emulated Batch of its own. Each dropped file has a table of its own, so that no other test changes its sweep.

use std::path::PathBuf;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::types::{BillingMode, GlobalSecondaryIndex, TableDescription};
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_control_plane::event::{self, Event};
use spotsweep_emulator::{Config, Emulator};
use spotsweep_protocol::ids::JobName;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_sweep_file as sweep;
use spotsweep_sweep_file::trials;

use super::aws::s3;
use super::sandbox::Sandbox;
use super::stack::Stack;
use super::upload::drop_file;

/// Name of the account's queue.
pub const QUEUE: &str = "gpu-spot";
/// Name of the account's job definition.
pub const DEFINITION: &str = "train";

/// An account of one test.
pub struct Account {
    config: SdkConfig,
    bucket: String,
    endpoint: String,
    binaries: PathBuf,
    emulator: Emulator,
    /// The deployed table, whose definition each file's table copies.
    table: TableDescription,
    folder: PathBuf,
}

/// One dropped file.
#[derive(Debug)]
pub struct Dropped {
    /// The event that S3 sends for the file.
    pub event: Value,
    upload: Upload,
    text: String,
    table: String,
}

impl Dropped {
    /// Name of the file's table.
    pub fn table(&self) -> &str {
        &self.table
    }
}

impl Account {
    /// Makes an empty account, with a bucket of its own in the stack.
    ///
    /// # Panics
    /// Panics if the stack or the emulator refuses a request.
    pub async fn open(stack: &Stack, bucket: &str) -> Self {
        let config = stack.config();
        let s3 = s3(&config);
        s3.create_bucket().bucket(bucket).send().await.expect("a new stack takes the bucket");
        let versioned = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let versioning = s3.put_bucket_versioning().bucket(bucket).versioning_configuration(versioned);
        versioning.send().await.expect("the bucket can be versioned");
        let tables = aws_sdk_dynamodb::Client::new(&config);
        let deployed = tables.describe_table().table_name(&stack.table).send().await.expect("the table is deployed");
        let folder = stack.subfolder(bucket);
        let emulator = Emulator::serve(Config::new(folder.join("jobs"))).await.expect("the emulator starts");
        set_up(&emulator).expect("the emulator takes queue and job definition");
        let table = deployed.table.expect("a described table");
        Self {
            config,
            bucket: bucket.to_owned(),
            endpoint: stack.endpoint.clone(),
            binaries: stack.binaries.clone(),
            emulator,
            table,
            folder,
        }
    }

    /// URL of the account's Batch.
    pub fn batch(&self) -> String {
        self.emulator.endpoint()
    }

    /// Puts a file under `sweeps/` and makes a table for its sweep.
    ///
    /// # Panics
    /// Panics if S3 or DynamoDB refuses.
    pub async fn drop_file(&self, name: &str, text: &str) -> Dropped {
        let event = drop_file(&self.config, &self.bucket, name, text).await;
        let Ok(Event::SweepUploaded(upload)) = event::parse(event.clone()) else {
            unreachable!("an upload's event: {event}");
        };
        self.create_table(name).await;
        Dropped { event, upload, text: text.to_owned(), table: name.to_owned() }
    }

    async fn create_table(&self, name: &str) {
        let indexes = self.table.global_secondary_indexes().iter().map(|index| {
            let copy = GlobalSecondaryIndex::builder().set_index_name(index.index_name.clone());
            let copy = copy.set_key_schema(index.key_schema.clone()).set_projection(index.projection.clone());
            copy.build().expect("the deployed index is whole")
        });
        let table = aws_sdk_dynamodb::Client::new(&self.config)
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_attribute_definitions(self.table.attribute_definitions.clone())
            .set_key_schema(self.table.key_schema.clone())
            .set_global_secondary_indexes(Some(indexes.collect()));
        table.send().await.expect("DynamoDB takes the table");
    }

    /// A function as it is deployed, but with this file's table and a lease of `lease_seconds`.
    pub fn function(&self, name: &str, dropped: &Dropped, lease_seconds: u64) -> Sandbox {
        let variables = [
            ("SPOTSWEEP_TABLE", dropped.table.clone()),
            ("SPOTSWEEP_BUCKET", self.bucket.clone()),
            ("SPOTSWEEP_QUEUE", QUEUE.to_owned()),
            ("SPOTSWEEP_JOB_DEFINITION", DEFINITION.to_owned()),
            ("SPOTSWEEP_CLAIM_FUNCTION", "trial-claim".to_owned()),
            ("SPOTSWEEP_TRIAL_ROLE", "arn:aws:iam::000000000000:role/trial".to_owned()),
            ("SPOTSWEEP_PARAMETERS", "arn:aws:ssm:us-east-1:000000000000:parameter".to_owned()),
            ("SPOTSWEEP_LEASE_SECONDS", lease_seconds.to_string()),
        ];
        Sandbox {
            binary: self.binaries.join(name),
            variables: variables.map(|(name, value)| (name.to_owned(), value)).into(),
            endpoint: self.endpoint.clone(),
            batch: self.emulator.endpoint(),
            log: self.log(dropped),
        }
    }

    /// The file with the output of all functions that ran for this file.
    pub fn log(&self, dropped: &Dropped) -> PathBuf {
        self.folder.join(format!("{}.log", dropped.table))
    }

    /// Reads the file's sweep from its table.
    ///
    /// # Panics
    /// Panics if the table cannot be read.
    pub async fn sweep(&self, dropped: &Dropped) -> Option<Sweep> {
        let reader = Reader::new(&self.config, dropped.table.clone());
        reader.sweep(&dropped.upload.sweep()).await.expect("the table can be read")
    }

    /// Asserts that the file is submitted exactly once and completely.
    ///
    /// # Panics
    /// Panics if it is not.
    pub async fn assert_submitted_once(&self, dropped: &Dropped, parts: u32) {
        let name = &dropped.table;
        let sweep = self.sweep(dropped).await.expect("the sweep is stored");
        assert_eq!(sweep.stage, Stage::Running, "{name}");
        let plan = sweep.plan.as_ref().expect("a running sweep has a plan");
        assert_eq!(plan.parts.len(), parts as usize, "{name}");
        for (number, part) in (0..).zip(&plan.parts) {
            let jobs = self.jobs_named(&sweep.job_name(number));
            assert_eq!(Some(jobs), part.job.clone().map(|job| vec![job]), "{name}: part {number}");
        }
        let Upload { key, fingerprint, .. } = &dropped.upload;
        let file = sweep::parse(key, fingerprint, dropped.text.as_bytes()).expect("the dropped file is good");
        let mut index = trials::Index::default();
        let mut lines = Vec::new();
        for line in trials::lines(&file) {
            let line = line.expect("a trial is JSON");
            index.push(&line);
            lines.extend(line);
        }
        assert!(
            self.read(&trials::lines_key(&sweep.id)).await == lines,
            "{name}: trials.jsonl is not what the file says"
        );
        assert!(self.read(&trials::index_key(&sweep.id)).await == index.finish(), "{name}: trials.idx does not fit");
        let answer: Value = serde_json::from_slice(&self.read(&dropped.upload.plan_key()).await).expect("JSON");
        assert_eq!((&answer["sweep"], &answer["trials"]), (&json!(sweep.id), &json!(plan.trials)), "{name}");
        for (said, part) in answer["jobs"].as_array().expect("jobs").iter().zip(&plan.parts) {
            assert_eq!(said["id"], json!(part.job), "{name}");
        }
    }

    /// Ids of the jobs with this name in Batch, array jobs and others.
    fn jobs_named(&self, name: &JobName) -> Vec<String> {
        let filter = json!([{ "name": "JOB_NAME", "values": [name.to_string()] }]);
        let request = serde_json::from_value(json!({ "jobQueue": QUEUE, "filters": filter })).expect("a request");
        let found = self.emulator.with_world(|world, _| world.list_jobs(&request)).expect("ListJobs");
        let jobs = found["jobSummaryList"].as_array().expect("a list");
        jobs.iter().filter_map(|job| job["jobId"].as_str().map(str::to_owned)).collect()
    }

    async fn read(&self, key: &str) -> Vec<u8> {
        let object = s3(&self.config).get_object().bucket(&self.bucket).key(key).send().await;
        let object = object.unwrap_or_else(|error| unreachable!("{key} is not there: {error:?}"));
        object.body.collect().await.expect("the whole object arrives").to_vec()
    }

    /// Stops the account's emulator.
    pub async fn close(self) {
        self.emulator.shutdown().await;
    }
}

/// Makes a queue whose jobs never start, because they need more vCPUs than its instances have.
fn set_up(emulator: &Emulator) -> Result<(), Box<dyn std::error::Error>> {
    let environment = json!({ "computeEnvironmentName": "spot", "type": "MANAGED", "computeResources": {
        "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 0, "maxvCpus": 2, "instanceTypes": ["c7i.large"],
        "subnets": ["subnet-us-east-1a"] } });
    let order = json!([{ "order": 1, "computeEnvironment": "spot" }]);
    let queue = json!({ "jobQueueName": QUEUE, "priority": 1, "computeEnvironmentOrder": order });
    let needs = json!([{ "type": "VCPU", "value": "64" }, { "type": "MEMORY", "value": "1024" }]);
    let container = json!({ "image": "train:1", "command": ["train"], "resourceRequirements": needs });
    let definition = json!({ "jobDefinitionName": DEFINITION, "type": "container", "containerProperties": container });
    let (environment, queue) = (serde_json::from_value(environment)?, serde_json::from_value(queue)?);
    let definition = serde_json::from_value(definition)?;
    let done = emulator.with_world(|world, _| {
        world.create_compute_environment(environment)?;
        world.create_job_queue(queue)?;
        world.register_job_definition(definition)
    });
    done.map(drop).map_err(|error| format!("{error:?}").into())
}
