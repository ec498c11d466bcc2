//! AWS in memory: executes the calls of commands on the World and on stored objects. Each call has a fault point before
//! its effect and one after it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

mod batch;
mod client;
mod ec2;
mod ecs;
mod injected;
pub mod multipart;
mod others;
mod s3;
mod secrets_manager;
mod ssm;
pub mod sts;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_control_plane::calls::{CallError, EventEntry, SpotPriceRow, Wait};
use spotsweep_control_plane::execute::{self, Services};
use spotsweep_control_plane::handle::Executor;
use spotsweep_protocol::ids::{JobName, Run};
use spotsweep_protocol::secret::Secret;
use spotsweep_world::World;
use spotsweep_world::ec2::Zone;

pub use self::batch::retry_strategy;
use self::client::Client;
use self::injected::{Misread, WithBug};
use self::multipart::{Uploads, etag};
use crate::calls::Calls;
use crate::injected_bug::InjectedBug;

/// The first claim token. No runner and no forged request draws this value.
const TOKENS: u128 = 0xc1a1 << 64;

/// Default prices in USD per hour, the same in every zone and at every time.
const SPOT_USD: f64 = 0.25;
const ON_DEMAND_USD: f64 = 1.0;

/// Bytes of an event's source, detail type and detail. AWS has announced 1 MB in January 2026
/// (<https://aws.amazon.com/blogs/compute/more-room-to-build-serverless-services-now-support-payloads-up-to-1-mb>); in
/// regions without that it is less (<https://docs.amazonaws.cn/eventbridge/latest/userguide/eb-putevent-size.html>).
const LARGEST_ENTRY: usize = 256 << 10;

/// The region of the price list.
const REGION: &str = "us-east-1";

/// Prices that EC2 and the price list return.
#[derive(Debug, Clone)]
pub struct Charged {
    /// EC2's Spot price history.
    pub spot: Vec<SpotPriceRow>,
    /// USD per hour, by instance type.
    pub on_demand: BTreeMap<String, f64>,
}

/// The deployment's bucket.
pub const BUCKET: &str = "sweeps";

/// S3, Batch and the event bus of one account.
#[derive(Debug)]
pub struct Cloud {
    world: Mutex<World>,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The storage classes of objects that are not in S3 Standard, by key.
    classes: Mutex<BTreeMap<String, &'static str>>,
    /// Names of Parameter Store's parameters, and whether the value of each is encrypted.
    parameters: Mutex<BTreeMap<String, bool>>,
    /// Names of Secrets Manager's secrets, and whether each is scheduled for deletion.
    managed_secrets: Mutex<BTreeMap<String, bool>>,
    announced: Mutex<Vec<EventEntry>>,
    /// If EventBridge takes no entries: the error code of each entry.
    failing_entries: Mutex<Option<&'static str>>,
    refused: Mutex<Option<u32>>,
    unlisted_for: Mutex<Duration>,
    injected_bug: Mutex<Option<InjectedBug>>,
    /// Prices that replace the defaults.
    prices: Mutex<Option<Charged>>,
    /// Whether every read of an object is denied.
    unreadable: AtomicBool,
    uploads: Mutex<Uploads>,
    /// Number of throttled calls, by action.
    throttled: Mutex<BTreeMap<&'static str, u32>>,
    /// Number of claim tokens drawn.
    tokens: AtomicU64,
    calls: Arc<Calls>,
}

impl Cloud {
    /// Creates a cloud over a World that has queues and job definitions.
    pub fn new(world: World, calls: Arc<Calls>) -> Self {
        Self {
            world: Mutex::new(world),
            objects: Mutex::default(),
            classes: Mutex::default(),
            parameters: Mutex::default(),
            managed_secrets: Mutex::default(),
            announced: Mutex::default(),
            failing_entries: Mutex::default(),
            refused: Mutex::default(),
            unlisted_for: Mutex::default(),
            injected_bug: Mutex::default(),
            prices: Mutex::default(),
            unreadable: AtomicBool::default(),
            uploads: Mutex::default(),
            throttled: Mutex::default(),
            tokens: AtomicU64::default(),
            calls,
        }
    }

    /// Makes Batch refuse this part of every sweep, as if its job definition had been deregistered.
    pub fn refuse(&self, part: u32) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
    }

    /// From now on `PutEvents` answers 200 with this error code for its entry; `None` makes it take entries again.
    pub(crate) fn fail_entries(&self, code: Option<&'static str>) {
        *self.failing_entries.lock().unwrap_or_else(PoisonError::into_inner) = code;
    }

    /// From now on every read of an object is denied.
    pub fn deny_reads(&self) {
        self.unreadable.store(true, Ordering::Relaxed);
    }

    /// `ListJobs` does not show a job until this long after its submission.
    pub fn list_late(&self, by: Duration) {
        *self.unlisted_for.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    pub(crate) fn plant(&self, injected_bug: InjectedBug) {
        *self.injected_bug.lock().unwrap_or_else(PoisonError::into_inner) = Some(injected_bug);
    }

    /// The injected bug, if any.
    pub(crate) fn injected_bug(&self) -> Option<InjectedBug> {
        *self.injected_bug.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on EC2 and the price list return these prices.
    pub fn charge(&self, prices: Charged) {
        *self.prices.lock().unwrap_or_else(PoisonError::into_inner) = Some(prices);
    }

    /// The prices of these instance types in all zones.
    fn spot_prices(&self, instance_types: &[String]) -> Vec<SpotPriceRow> {
        match &*self.prices.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(charged) => charged.spot.clone(),
            None => instance_types.iter().flat_map(|name| self.flat_prices(name)).collect(),
        }
    }

    fn flat_prices(&self, instance_type: &str) -> Vec<SpotPriceRow> {
        let zones = self.world().describe_zones(Vec::new(), Vec::new()).unwrap_or_default();
        let (from, usd) = (Timestamp::UNIX_EPOCH, SPOT_USD.to_string());
        let row = |zone: Zone| SpotPriceRow {
            instance_type: instance_type.to_owned(),
            zone: zone.name,
            from,
            usd: usd.clone(),
        };
        zones.into_iter().map(row).collect()
    }

    fn on_demand_usd(&self, instance_type: &str) -> Option<f64> {
        match &*self.prices.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(charged) => charged.on_demand.get(instance_type).copied(),
            None => Some(ON_DEMAND_USD),
        }
    }

    fn count_throttled(&self, action: &'static str) {
        *self.throttled.lock().unwrap_or_else(PoisonError::into_inner).entry(action).or_default() += 1;
    }

    /// Number of throttled calls, by action.
    pub fn throttled(&self) -> BTreeMap<&'static str, u32> {
        self.throttled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The World, locked.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an object.
    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        self.objects().insert(key.to_owned(), bytes.into());
    }

    /// Moves an object to another storage class.
    pub fn set_class(&self, key: &str, class: &'static str) {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), class);
    }

    /// An object's bytes.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.objects().get(key).cloned()
    }

    /// An object's ETag, with its quotes.
    pub(crate) fn etag(&self, key: &str) -> Option<String> {
        self.objects().get(key).map(|bytes| etag(bytes))
    }

    /// Removes an object and returns its bytes.
    pub fn take(&self, key: &str) -> Option<Vec<u8>> {
        self.objects().remove(key)
    }

    /// Adds a SecureString, or a String, to Parameter Store.
    pub fn add_parameter(&self, name: &str, is_encrypted: bool) {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), is_encrypted);
    }

    /// Whether the value of a parameter is encrypted, if there is the parameter.
    fn parameter(&self, name: &str) -> Option<bool> {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Adds a secret, or one that is scheduled for deletion, to Secrets Manager.
    pub fn add_managed_secret(&self, name: &str, is_being_deleted: bool) {
        self.managed_secrets.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), is_being_deleted);
    }

    /// Whether a secret is scheduled for deletion, if there is the secret.
    fn managed_secret(&self, name: &str) -> Option<bool> {
        self.managed_secrets.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Removes and returns our own events since the last call.
    pub fn take_announced(&self) -> Vec<EventEntry> {
        std::mem::take(&mut *self.announced.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ids of the array jobs and plain jobs with this name.
    pub fn jobs_named(&self, name: &JobName, queue: &str) -> Vec<String> {
        let filter = json!([{ "name": "JOB_NAME", "values": [name.to_string()] }]);
        let request = serde_json::from_value(json!({ "jobQueue": queue, "filters": filter }));
        let found = request.ok().and_then(|request| self.world().list_jobs(&request).ok()).unwrap_or_default();
        let jobs = found["jobSummaryList"].as_array().cloned().unwrap_or_default();
        jobs.iter().filter_map(|job| job["jobId"].as_str().map(str::to_owned)).collect()
    }

    /// Creation time in milliseconds up to which `ListJobs` shows jobs.
    fn listed_until(&self) -> i64 {
        let late = *self.unlisted_for.lock().unwrap_or_else(PoisonError::into_inner);
        self.world().now().as_millisecond() - i64::try_from(late.as_millis()).unwrap_or(0)
    }

    /// Whether Batch refuses the job of this name.
    fn refuses(&self, name: &str) -> bool {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.zip(JobName::parse(name)).is_some_and(|(part, name)| name.run == Run::Part(part))
    }

    /// Puts an event on the bus, or returns EventBridge's error.
    fn announce(&self, entry: EventEntry) -> Result<Vec<(String, String)>, CallError> {
        if entry.source.len() + entry.detail_type.len() + entry.detail.len() > LARGEST_ENTRY {
            let message = "Total size of the entries in the request is over the limit.".to_owned();
            return Err(CallError::answered(400, "ValidationException".to_owned(), message));
        }
        let failed = *self.failing_entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = failed {
            return Ok(vec![(code.to_owned(), "EventBridge has not taken the entry.".to_owned())]);
        }
        self.announced.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        Ok(Vec::new())
    }

    /// Draws a different token each time, as on AWS.
    fn draw_token(&self) -> Secret {
        Secret::of((TOKENS + u128::from(self.tokens.fetch_add(1, Ordering::Relaxed))).to_be_bytes())
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an executor for the commands of an invocation that waits on this clock.
    pub fn executor<'a>(&'a self, time: &'a impl Wait) -> impl Executor + 'a {
        let client = || Client::new(self, time);
        let calls = || WithBug { calls: client(), cloud: self };
        let services = Services::default()
            .reaching(execute::batch(calls(), time))
            .reaching(execute::ebs(calls(), time))
            .reaching(execute::ecs(calls()))
            .reaching(execute::tasks(calls()))
            .reaching(execute::drains(calls(), calls()))
            .reaching(execute::hosts(calls(), calls(), calls()))
            .reaching(execute::targets(calls(), calls(), client(), client()))
            .reaching(execute::uploads(client(), client()))
            .reaching(execute::lines(client()))
            .reaching(execute::access(client()))
            .reaching(execute::bus_and_topics(client(), client()))
            .reaching(execute::results(client(), (calls(), client(), REGION.to_owned())));
        Misread { services, bug: self.injected_bug() }
    }
}
