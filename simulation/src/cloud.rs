//! AWS in memory: the emulator's World and objects, for the calls of commands. Each call has a fault point before its
//! effect and one after it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

mod batch;
mod client;
mod ec2;
mod ecs;
mod injected;
mod pages;
mod results;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_control_plane::calls::Wait;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::decide::sweep_upload;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::execute::{self, Executed, Service, Services, Taken};
use spotsweep_control_plane::handle::Executor;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::results::answer::{plan_json, rejection_json};
use spotsweep_control_plane::results::cost::Prices;
use spotsweep_control_plane::suggestion::choose;
use spotsweep_control_plane::sweep::Prepared;
use spotsweep_control_plane::sweep::continuation::{Continuation, Listed};
use spotsweep_control_plane::sweep::notification::Notification;
use spotsweep_protocol::claim::{Access, Prefix};
use spotsweep_protocol::ids::{JobName, Run, SweepId};
use spotsweep_protocol::secret::Secret;
use spotsweep_sweep_file::trials;
use spotsweep_world::World;

pub(crate) use self::batch::retry_strategy;
use self::client::Client;
use self::injected::{Misread, WithBug};
use crate::calls::{Calls, Unanswered};
use crate::injected_bug::InjectedBug;

/// The first claim token: none that a runner or a stranger draws.
const TOKENS: u128 = 0xc1a1 << 64;

/// S3, Batch and the event bus of one account.
#[derive(Debug)]
pub struct Cloud {
    world: Mutex<World>,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    announced: Mutex<Vec<Notification>>,
    refused: Mutex<Option<u32>>,
    unlisted_for: Mutex<Duration>,
    injected_bug: Mutex<Option<InjectedBug>>,
    /// What EC2 and the price list tell, where it is not the same everywhere and always.
    prices: Mutex<Option<Prices>>,
    /// How often each action was throttled.
    throttled: Mutex<BTreeMap<&'static str, u32>>,
    /// Claim tokens that were drawn.
    tokens: AtomicU64,
    calls: Arc<Calls>,
}

impl Cloud {
    /// A cloud on top of a World that has queues and job definitions.
    pub fn new(world: World, calls: Arc<Calls>) -> Self {
        Self {
            world: Mutex::new(world),
            objects: Mutex::default(),
            announced: Mutex::default(),
            refused: Mutex::default(),
            unlisted_for: Mutex::default(),
            injected_bug: Mutex::default(),
            prices: Mutex::default(),
            throttled: Mutex::default(),
            tokens: AtomicU64::default(),
            calls,
        }
    }

    /// Makes Batch refuse this part of every sweep, as for a definition that was deregistered meanwhile.
    pub fn refuse(&self, part: u32) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
    }

    /// ListJobs does not show a job for so long after its submission.
    pub fn list_late(&self, by: Duration) {
        *self.unlisted_for.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    pub(crate) fn plant(&self, injected_bug: InjectedBug) {
        *self.injected_bug.lock().unwrap_or_else(PoisonError::into_inner) = Some(injected_bug);
    }

    /// The defect that was planted here.
    pub(crate) fn injected_bug(&self) -> Option<InjectedBug> {
        *self.injected_bug.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on instances have these prices.
    pub(crate) fn charge(&self, prices: Prices) {
        *self.prices.lock().unwrap_or_else(PoisonError::into_inner) = Some(prices);
    }

    fn count_throttled(&self, action: &'static str) {
        *self.throttled.lock().unwrap_or_else(PoisonError::into_inner).entry(action).or_default() += 1;
    }

    /// How often each action was throttled.
    pub(crate) fn throttled(&self) -> BTreeMap<&'static str, u32> {
        self.throttled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The World, to look at or to drive.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an object.
    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        self.objects().insert(key.to_owned(), bytes.into());
    }

    /// An object's bytes.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.objects().get(key).cloned()
    }

    /// Removes an object.
    pub fn take(&self, key: &str) -> Option<Vec<u8>> {
        self.objects().remove(key)
    }

    /// The events of our own since the last call.
    pub fn take_announced(&self) -> Vec<Notification> {
        std::mem::take(&mut *self.announced.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The array and plain jobs that Batch has, by name.
    pub fn jobs_named(&self, name: &JobName, queue: &str) -> Vec<String> {
        let filter = json!([{ "name": "JOB_NAME", "values": [name.to_string()] }]);
        let request = serde_json::from_value(json!({ "jobQueue": queue, "filters": filter }));
        let found = request.ok().and_then(|request| self.world().list_jobs(&request).ok()).unwrap_or_default();
        let jobs = found["jobSummaryList"].as_array().cloned().unwrap_or_default();
        jobs.iter().filter_map(|job| job["jobId"].as_str().map(str::to_owned)).collect()
    }

    /// Until when jobs were created that ListJobs shows.
    fn listed_until(&self) -> i64 {
        let late = *self.unlisted_for.lock().unwrap_or_else(PoisonError::into_inner);
        self.world().now().as_millisecond() - i64::try_from(late.as_millis()).unwrap_or(0)
    }

    /// Whether Batch refuses the job of this name.
    fn refuses(&self, name: &str) -> bool {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.zip(JobName::parse(name)).is_some_and(|(part, name)| name.run == Run::Part(part))
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put_object(&self, key: String, bytes: Vec<u8>) -> Result<(), Unanswered> {
        let on = Some(key.clone());
        self.calls.call_on("PutObject", on, || drop(self.objects().insert(key, bytes))).await
    }

    async fn get_object(&self, key: &str) -> Result<Option<Vec<u8>>, Unanswered> {
        self.calls.call_on("GetObject", Some(key.to_owned()), || self.get(key)).await
    }

    /// Executes the commands of an invocation that waits on this clock.
    pub fn executor<'a>(&'a self, time: &'a impl Wait) -> impl Executor + 'a {
        let calls = || WithBug { calls: Client::new(self, time), cloud: self };
        let services = Services::default()
            .reaching(execute::batch(calls(), time))
            .reaching(execute::ebs(calls(), time))
            .reaching(execute::ecs(calls()))
            .reaching(execute::tasks(calls()))
            .reaching(execute::drains(calls(), calls()))
            .reaching(execute::hosts(calls(), calls(), calls()))
            .reaching(execute::targets(calls(), calls()))
            .reaching(Direct(self));
        Misread { services, bug: self.injected_bug() }
    }

    async fn run(&self, command: Command) -> Executed {
        match command {
            Command::ReadUpload { sweep, upload, defaults } => {
                let bytes = self.get_object(&upload.key).await?.ok_or("NoSuchKey")?;
                let file = sweep_upload::parse(&upload, &bytes, None, defaults);
                Ok(vec![Outcome::UploadRead { sweep, file }])
            }
            Command::StoreTrials { sweep, prepared, .. } => self.store_trials(sweep, prepared).await,
            Command::ReadSnapshots { sweep, first, .. } => {
                let listed = self.get_object(&Listed::Snapshots.key(&sweep)).await?.ok_or("NoSuchKey")?;
                let named: Vec<String> = serde_json::from_slice(&listed)?;
                Ok(vec![Outcome::SnapshotsRead(Continuation::page(sweep, first, &named))])
            }
            Command::WritePlan { sweep, upload, plan } => {
                self.put_object(upload.plan_key(), plan_json(&sweep, &upload, &plan).to_string().into_bytes()).await?;
                Ok(vec![Outcome::PlanWritten(sweep)])
            }
            Command::WriteRejection { sweep, upload, rejected } => {
                let answer = rejection_json(&sweep, &upload, &rejected).to_string();
                self.put_object(upload.rejected_key(), answer.into_bytes()).await?;
                Ok(vec![Outcome::RejectionWritten { sweep, problems: rejected.problems }])
            }
            Command::Notify(notification) => self.announce(notification).await,
            Command::StorePage { sweep, page, trials, has_ended, .. } => {
                self.store_page(sweep, (page, has_ended), &trials).await
            }
            Command::ReadPages { sweep, pages, .. } => self.read_pages(sweep, pages).await,
            Command::Gather { wanted, trials } => self.gather(wanted, trials).await,
            Command::PublishResults { sweep, results, .. } => self.publish(sweep, *results).await,
            Command::ReadSpace { request, .. } => self.read_space(request).await,
            Command::FindStart { request, listed, .. } => {
                let read = self.get_object(&listed.key(&request.sweep)).await?.ok_or("NoSuchKey")?;
                let start = listed.start(&read, request.index)?;
                Ok(vec![Outcome::StartFound { request, start }])
            }
            Command::FindLine { request, gpus, bucket } => self.find_line(request, gpus, bucket).await,
            Command::IssueCredentials { request, .. } => {
                let access = || Access {
                    access_key_id: "ASIA".to_owned(),
                    secret_access_key: request.sweep.to_string(),
                    session_token: request.index.to_string(),
                    expires_at: Timestamp::MAX,
                };
                let access = self.calls.call("AssumeRole", access).await?;
                Ok(vec![Outcome::CredentialsIssued { request, access }])
            }
            other => Err(format!("{} has another service", other.name()).into()),
        }
    }

    async fn find_line(&self, request: TrialRequest, gpus: Option<Vec<String>>, bucket: String) -> Executed {
        let index = self.get_object(&trials::index_key(&request.sweep)).await?.ok_or("NoSuchKey")?;
        let (first, last) = trials::entries_range(request.index);
        let entries = index.get(usize::try_from(first)?..=usize::try_from(last)?).ok_or("InvalidRange")?;
        let line = trials::line_range(&request.sweep, &bucket, entries).ok_or("no such entry")?;
        let outputs = Prefix { bucket, prefix: request.sweep.trial_prefix(request.index) };
        Ok(vec![Outcome::LineFound { request, line, outputs, gpus }])
    }

    async fn announce(&self, notification: Notification) -> Executed {
        let announced = || self.announced.lock().unwrap_or_else(PoisonError::into_inner).push(notification.clone());
        self.calls.call("PutEvents", announced).await?;
        if notification.topic.is_some() {
            // As on AWS: a topic that is not told keeps nobody.
            let _ = self.calls.call("Publish", || ()).await;
        }
        Ok(vec![Outcome::Notified(notification)])
    }

    async fn read_space(&self, request: TrialRequest) -> Executed {
        let space = self.get_object(&trials::space_key(&request.sweep)).await?.ok_or("NoSuchKey")?;
        Ok(vec![Outcome::SpaceRead { request, search: Arc::new(serde_json::from_slice(&space)?), choose }])
    }

    async fn store_trials(&self, sweep: SweepId, prepared: Prepared) -> Executed {
        let (mut bytes, mut index) = (Vec::new(), trials::Index::default());
        for line in trials::lines(&prepared.file) {
            let line = line?;
            index.push(&line);
            bytes.extend(line);
        }
        if let Some(search) = prepared.file.search() {
            self.put_object(trials::space_key(&sweep), serde_json::to_vec(search)?).await?;
        }
        for (key, listed) in prepared.starts(&sweep)? {
            self.put_object(key, listed).await?;
        }
        self.put_object(trials::lines_key(&sweep), bytes).await?;
        self.put_object(trials::index_key(&sweep), index.finish()).await?;
        // Another one each time, as on AWS.
        let token = Secret::of((TOKENS + u128::from(self.tokens.fetch_add(1, Ordering::Relaxed))).to_be_bytes());
        Ok(vec![Outcome::TrialsStored { sweep, prepared, token }])
    }
}

/// The commands that are executed here without an interpretation of their own.
#[derive(Debug)]
struct Direct<'a>(&'a Cloud);

impl Service for Direct<'_> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        Ok(Box::pin(self.0.run(*command)))
    }
}
