//! An account with one queue and one job definition, and a virtual clock. `handle` connects the two.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spotsweep_control_plane::calls::EventEntry;
use spotsweep_control_plane::event;
use spotsweep_control_plane::handle::{HandleError, Report, handle};
use spotsweep_control_plane::settings::{LEASE, POLL, RECHECK, Settings};
use spotsweep_protocol::claim::DATA_CACHE;
use spotsweep_records::sweep::pages::PAGE_TRIALS;
use spotsweep_sweep_file::Defaults;
use spotsweep_world::{Settings as WorldSettings, Timings, World};

use crate::calls::Calls;
pub use crate::cloud::BUCKET;
use crate::cloud::Cloud;
use crate::injected_bug::InjectedBug;
use crate::memory::MemoryStore;
use crate::nouns;
use crate::permissions::{CONTROL_PLANE, Permissions};
use crate::standing::Standing;

/// The queue of all sweeps.
pub const QUEUE: &str = "gpu-spot";

static PERMISSIONS: LazyLock<Arc<Permissions>> = LazyLock::new(|| {
    Arc::new(Permissions::of_template(CONTROL_PLANE).expect("the template is as its reader knows it"))
});

/// The account, the store and the permissions of one test, with its own virtual clock.
#[derive(Debug)]
pub struct Harness {
    /// Stored state.
    pub store: MemoryStore,
    /// S3, Batch, the event bus.
    pub cloud: Cloud,
    /// Calls on the store and the cloud.
    pub calls: Arc<Calls>,
    /// What each function may do.
    pub permissions: Arc<Permissions>,
    /// Current virtual time.
    pub now: Timestamp,
    settings: Settings,
}

/// Properties of the account.
#[derive(Debug, Clone)]
pub struct Account {
    /// Durations of what AWS does.
    pub timings: Timings,
    /// Availability zones, each with a subnet.
    pub zones: Vec<String>,
    /// Instance type of the compute environment.
    pub instance_type: &'static str,
    /// Most vCPUs of the compute environment.
    pub max_vcpus: u32,
    /// GiB of a trial's volume; 0 for none.
    pub workspace_gib: u32,
    /// MiB/s at which a volume loads its snapshot, if the deployment requests a rate.
    pub initialization_rate: Option<u32>,
    /// Time between the claims of a runner that waits for its volume.
    pub poll: Duration,
    /// Number of trials of a page.
    pub page_trials: u32,
}

impl Default for Account {
    /// Two zones, four small instances, no volumes.
    fn default() -> Self {
        Self {
            timings: Timings::default(),
            zones: ["us-east-1a", "us-east-1b"].map(String::from).into(),
            instance_type: "c7i.large",
            max_vcpus: 8,
            workspace_gib: 0,
            initialization_rate: None,
            poll: POLL,
            page_trials: PAGE_TRIALS,
        }
    }
}

impl Harness {
    /// Creates the default account, without any sweep.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, &Account::default())
    }

    /// Creates an account without any sweep.
    ///
    /// # Panics
    /// If the emulator refuses the queue or the job definition.
    pub fn with(seed: u64, account: &Account) -> Self {
        let now = Timestamp::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let mut world = World::new(WorldSettings {
            region: "us-east-1".into(),
            account: "000000000000".into(),
            zones: account.zones.clone(),
            timings: account.timings,
            seed,
        });
        world.advance(now);
        set_up(&mut world, account).expect("the emulator takes queue and job definition");
        let calls = Arc::new(Calls::default());
        let settings = Settings {
            bucket: BUCKET.into(),
            queue: Some(QUEUE.into()),
            job_definition: Some("train".into()),
            claim_function: "trial-claim".into(),
            trial_role: "trial".into(),
            parameters: "arn:aws:ssm:us-east-1:000000000000:parameter".into(),
            allowed_secrets: vec!["/team/*".into(), "team/*".into()],
            defaults: Defaults::default(),
            workspace_gib: account.workspace_gib,
            initialization_rate: account.initialization_rate,
            poll: account.poll,
            page_trials: account.page_trials,
            lease: LEASE,
            recheck: RECHECK,
        };
        let store = MemoryStore::new(Arc::clone(&calls));
        let cloud = Cloud::new(world, Arc::clone(&calls));
        Self { store, cloud, calls, permissions: Arc::clone(&PERMISSIONS), now, settings }
    }

    /// Settings of the functions.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Puts a sweep file and returns the event that S3 sends.
    pub fn put(&self, name: &str, text: &str) -> Value {
        let key = format!("sweeps/{name}");
        self.cloud.put(&key, text);
        json!({
            "version": "0", "id": "put", "detail-type": "Object Created", "source": "aws.s3",
            "account": "000000000000", "time": self.now.to_string(), "region": "us-east-1", "resources": [],
            "detail": { "bucket": { "name": BUCKET }, "object": {
                "key": key, "size": text.len(), "etag": "e", "sequencer": "0055AED6DCD90281E5" } },
        })
    }

    /// Passes a raw event to `handle`.
    ///
    /// # Errors
    /// Those of `handle`.
    ///
    /// # Panics
    /// If the event cannot be parsed.
    pub async fn deliver(&self, raw: &Value) -> Result<Report, HandleError> {
        self.deliver_at(raw.clone(), 0).await
    }

    /// Passes a raw event to a function whose clock is ahead of the World's by this much; behind it if negative.
    pub(crate) async fn deliver_at(&self, raw: Value, skew_ms: i64) -> Result<Report, HandleError> {
        let event = event::parse(raw).expect("the event parses");
        self.cloud.world().advance(self.now);
        let now = self.now + SignedDuration::from_millis(skew_ms);
        let time = Standing::default();
        let nouns = nouns::of(&event);
        handle(&self.store, &self.cloud.executor(&time), nouns, &self.settings, event, now).await
    }

    /// The event of the schedule.
    pub fn reconcile(&self) -> Value {
        json!({
            "version": "0", "id": "tick", "detail-type": "Scheduled Event", "source": "aws.events",
            "account": "000000000000", "time": self.now.to_string(), "region": "us-east-1", "resources": [],
            "detail": {},
        })
    }

    /// Advances the clock by `time`.
    pub fn pass(&mut self, time: Duration) {
        self.advance(self.now + time);
    }

    /// Advances the clock to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = now;
        self.cloud.world().advance(now);
    }

    /// Our own events since the last call that match the rule of a function.
    pub fn announced(&self) -> Vec<Value> {
        let event = |entry: EventEntry| {
            let detail: Value = serde_json::from_str(&entry.detail).expect("the detail is JSON");
            json!({
                "version": "0", "id": "own", "detail-type": entry.detail_type, "source": entry.source,
                "account": "000000000000", "time": self.now.to_string(), "region": "us-east-1", "resources": [],
                "detail": detail,
            })
        };
        let events = self.cloud.take_announced().into_iter().map(event);
        events.filter(|event| self.permissions.function_of(event).is_some()).collect()
    }

    /// Delivers our own events since the last call.
    ///
    /// # Errors
    /// Those of `handle`.
    pub async fn deliver_announced(&self) -> Result<(), HandleError> {
        for event in self.announced() {
            self.deliver(&event).await?;
        }
        Ok(())
    }

    /// Injects a bug.
    pub fn plant(&mut self, injected_bug: InjectedBug) {
        match injected_bug {
            InjectedBug::CommitBlindly => self.store.commit_blindly(),
            InjectedBug::ForgetNotices
            | InjectedBug::ForgetStops
            | InjectedBug::ReplaceRungs
            | InjectedBug::ForgetSuggestions
            | InjectedBug::ForgetContinued
            | InjectedBug::ForgetFetches
            | InjectedBug::OverlookPeers
            | InjectedBug::CompareReversed => self.store.inject(injected_bug),
            InjectedBug::SkipAudits => self.store.skip_audits_of("trial-claimed"),
            InjectedBug::RevokeAttach => Arc::make_mut(&mut self.permissions).revoke("ebs-state", "ec2:AttachVolume"),
            InjectedBug::DeleteSourceEarly
            | InjectedBug::CopyOldSnapshot
            | InjectedBug::MountUnasked
            | InjectedBug::OverlookJobs
            | InjectedBug::KeepEverything
            | InjectedBug::StopSchedule
            | InjectedBug::LeaveAtOnce
            | InjectedBug::ForgetDenied
            | InjectedBug::TakeAllForPassing
            | InjectedBug::TakeAllForLasting
            | InjectedBug::TrustExitCode
            | InjectedBug::FailWithoutPlace
            | InjectedBug::SealUnwritten
            | InjectedBug::SealAsLast
            | InjectedBug::OverlookHoles
            | InjectedBug::KeepNothing
            | InjectedBug::NeverRollBack
            | InjectedBug::LeakSecrets
            | InjectedBug::LeakTokens
            | InjectedBug::SkipInstanceCheck
            | InjectedBug::KeepUnfit
            | InjectedBug::BlameTrial
            | InjectedBug::KeepDead
            | InjectedBug::TrustSilence
            | InjectedBug::TrustLink
            | InjectedBug::TakeFirstGpus
            | InjectedBug::SignalFirst
            | InjectedBug::SignalAll
            | InjectedBug::LoseIds
            | InjectedBug::SkipLookUp
            | InjectedBug::KeepRate
            | InjectedBug::TakeOldest
            | InjectedBug::DropPages
            | InjectedBug::TrainOn
            | InjectedBug::SealAfterUnmount
            | InjectedBug::ReleaseBeforeSeal
            | InjectedBug::IgnoreSecondStop
            | InjectedBug::AskForever
            | InjectedBug::CountGraceTwice
            | InjectedBug::TrustLeftovers
            | InjectedBug::TrustEarlierBoot
            | InjectedBug::EvictUsed
            | InjectedBug::SkipSecondLook
            | InjectedBug::FetchUnlocked
            | InjectedBug::DropSharedLocks
            | InjectedBug::OverlookReserved
            | InjectedBug::AskAgainAndAgain => self.cloud.plant(injected_bug),
        }
    }
}

fn set_up(world: &mut World, account: &Account) -> Result<(), Box<dyn std::error::Error>> {
    let refused = |error| format!("{error:?}");
    let environment = json!({ "computeEnvironmentName": "spot", "type": "MANAGED", "computeResources": {
        "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 0, "maxvCpus": account.max_vcpus, "instanceTypes": [account.instance_type],
        "subnets": account.zones.iter().map(|zone| format!("subnet-{zone}")).collect::<Vec<_>>(),
        "tags": { "spotsweep:root-gib": "100" } } });
    world.create_compute_environment(serde_json::from_value(environment)?).map_err(refused)?;
    let order = json!([{ "order": 1, "computeEnvironment": "spot" }]);
    let queue = json!({ "jobQueueName": QUEUE, "priority": 1, "computeEnvironmentOrder": order });
    world.create_job_queue(serde_json::from_value(queue)?).map_err(refused)?;
    let needs = json!([{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }]);
    let cache = json!([{ "name": DATA_CACHE, "value": "/opt/spotsweep-data" }]);
    let volumes = json!([{ "name": "data", "host": { "sourcePath": "/var/lib/spotsweep-data" } }]);
    let container = json!({
        "image": "train:1", "command": ["train"], "environment": cache, "resourceRequirements": needs, "volumes": volumes,
    });
    let definition = json!({ "jobDefinitionName": "train", "type": "container", "containerProperties": container });
    world.register_job_definition(serde_json::from_value(definition)?).map_err(refused)?;
    Ok(())
}
