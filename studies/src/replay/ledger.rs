//! Counts what a run uses, and computes its costs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_records::sweep::spent::Spent;
use spotsweep_simulation::calls::Call;
use spotsweep_world::World;
use spotsweep_world::trace::Trace;

use super::{Parameters, Policy};

/// The MiB of a GiB. Stored bytes stand for MiB (see [`super::stage`]).
pub(super) const MIB_PER_GIB: f64 = 1024.0;

/// The seconds of a month. AWS bills by months of 30 days (EBS pricing, its examples).
const MONTH_SECONDS: f64 = 30.0 * 86_400.0;

/// The time within which EC2 must take back a Spot instance for it to be free (EC2 user guide, "Billing for interrupted
/// Spot Instances").
const FREE: Duration = Duration::from_secs(3600);

/// EC2's code for the end of a reclaimed instance.
const RECLAIMED: &str = "Server.SpotInstanceTermination";

/// The size of the parts in which objects are uploaded and downloaded.
const PART_MIB: f64 = 8.0;

/// The DynamoDB units of one load (a sweep and a trial of up to 8 KiB, strongly consistent) and of one put (a record
/// of 2 KiB, its index entry, and sometimes a page of its history or a pointer). They are rather high, because most
/// puts write figures, and seldom more than the record.
const LOAD_UNITS: f64 = 4.0;
const PUT_UNITS: f64 = 4.0;

/// The memory of a function (infra/control-plane.yaml).
const FUNCTION_GB: f64 = 0.125;

/// The calls of a metric report: load and commit.
const REPORT_CALLS: u64 = 2;

#[derive(Debug)]
struct Life {
    zone: String,
    from: Timestamp,
    until: Option<Timestamp>,
    reclaimed: bool,
}

/// The counts of a run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The attempts that lost their instance while their container ran.
    pub(super) interruptions: u64,
    /// The seconds of training that had to be repeated.
    pub(super) lost_seconds: f64,
    /// The time from each interruption until the training went on, without the time in which no zone had capacity.
    pub(super) delays_seconds: Vec<f64>,
    /// The AWS API calls.
    calls: u64,
    loads: u64,
    /// The puts into the table.
    rows: u64,
    puts: u64,
    gets: u64,
    invocations: u64,
    /// The calls of functions.
    function_calls: u64,
    control_puts: u64,
    lives: BTreeMap<String, Life>,
    seen: BTreeSet<String>,
    initialized_gib: f64,
    volume_gib_seconds: f64,
    snapshot_gib_seconds: f64,
    object_gib_seconds: f64,
}

/// One policy in one window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) finished: u32,
    /// The trials that were ended early.
    pub(super) ended: u32,
    /// The end of each trial that was done.
    pub(super) finishes: Vec<Option<Finish>>,
    /// The time until the last trial was done; the window's length if some were not.
    pub(super) makespan_seconds: f64,
    /// The seconds of training that were finished or saved.
    pub(super) useful_seconds: f64,
    /// The time of all instances from request to end.
    pub(super) instance_seconds: f64,
    pub(super) interruptions: u64,
    pub(super) lost_seconds: f64,
    pub(super) delays_seconds: Vec<f64>,
    pub(super) calls: u64,
    pub(super) usd: Dollars,
    /// The costs in the sweep's own record, if the sweep has ended.
    pub(super) recorded: Option<Spent>,
}

/// The end of a trial that is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Finish {
    /// The time since the start of the window.
    pub(super) seconds: f64,
    /// The costs of the window by then.
    pub(super) usd: f64,
}

/// The costs by what is paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Dollars {
    pub(super) instances: f64,
    pub(super) volumes: f64,
    pub(super) snapshots: f64,
    pub(super) objects: f64,
    pub(super) control_plane: f64,
}

impl Dollars {
    pub(super) fn total(&self) -> f64 {
        self.instances + self.volumes + self.snapshots + self.objects + self.control_plane
    }
}

impl Ledger {
    /// Adds the costs of `seconds` seconds in which nothing changes.
    pub(super) fn hold(&mut self, world: &World, seconds: f64, object_gib: f64) {
        let volumes: u32 = world.volumes().map(|volume| volume.size_gib).sum();
        let changed: u64 = world.snapshots().filter_map(|snapshot| snapshot.changed_bytes).sum();
        self.volume_gib_seconds += f64::from(volumes) * seconds;
        self.snapshot_gib_seconds += changed as f64 / MIB_PER_GIB * seconds;
        self.object_gib_seconds += object_gib * seconds;
    }

    /// Notes the instances, volumes and snapshots that have been made or have ended.
    pub(super) fn note(&mut self, world: &World) {
        for instance in world.instances() {
            let life = self.lives.entry(instance.id.clone()).or_insert_with(|| Life {
                zone: instance.zone.clone(),
                from: instance.launched_at,
                until: None,
                reclaimed: false,
            });
            if life.until.is_none() && !instance.state.is_live() {
                life.until = Some(world.now());
                life.reclaimed = instance.state_reason.is_some_and(|(code, _)| code == RECLAIMED);
            }
        }
        for volume in world.volumes().filter(|volume| volume.snapshot.is_some()) {
            if self.seen.insert(volume.id.clone()) {
                let mib = world.files_of_volume(&volume.id).bytes();
                self.initialized_gib += mib as f64 / MIB_PER_GIB;
            }
        }
    }

    /// Adds an invocation of a function with the calls that it made.
    pub(super) fn invoked(&mut self, calls: &[Call]) {
        self.invocations += 1;
        for call in calls {
            match call.action {
                "GetItem" | "Query" => self.loads += 1,
                "PutItem" => self.rows += 1,
                "PutObject" => self.control_puts += 1,
                _another_service => {}
            }
        }
        self.function_calls += calls.len() as u64;
        self.calls += calls.len() as u64;
    }

    /// Adds metric reports that were not simulated one by one.
    pub(super) fn reported(&mut self, times: u64) {
        self.invocations += times;
        self.function_calls += times * REPORT_CALLS;
        self.calls += times * (1 + REPORT_CALLS);
        self.loads += times;
        self.rows += times;
    }

    /// Adds calls that no function made.
    pub(super) fn called(&mut self, times: u64) {
        self.calls += times;
    }

    pub(super) fn put(&mut self, gib: f64) {
        let parts = parts(gib);
        self.puts += parts;
        self.calls += parts;
    }

    pub(super) fn get(&mut self, gib: f64) {
        let parts = parts(gib);
        self.gets += parts;
        self.calls += parts;
    }

    /// Returns the time of all instances from request to end, or until now for those that still run.
    pub(super) fn instance_seconds(&self, now: Timestamp) -> f64 {
        self.lives.values().map(|life| life.seconds(now)).sum()
    }

    /// Returns the number of all AWS API calls.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn dollars(
        &self,
        policy: Policy,
        model: &Parameters,
        trace: &Trace,
        started: Timestamp,
        now: Timestamp,
    ) -> Dollars {
        let million = |count: f64, usd: f64| count * usd / 1e6;
        let month = |gib_seconds: f64, usd: f64| gib_seconds * usd / MONTH_SECONDS;
        let instances = self.lives.values().map(|life| match policy {
            Policy::OnDemand => life.seconds(now) * model.on_demand_usd / 3600.0,
            Policy::Spotsweep | Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart => {
                life.spot_dollars(trace, started, now)
            }
        });
        let initialization = match policy {
            Policy::Spotsweep => self.initialized_gib * model.initialization_usd,
            Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => 0.0,
        };
        let requests =
            |puts: u64, gets: u64| (puts as f64 * model.s3_put_usd + gets as f64 * model.s3_get_usd) / 1000.0;
        let function_seconds = self.function_calls as f64 * model.call_ms / 1000.0;
        Dollars {
            instances: instances.sum(),
            volumes: month(self.volume_gib_seconds, model.volume_usd) + initialization,
            snapshots: month(self.snapshot_gib_seconds, model.snapshot_usd),
            objects: month(self.object_gib_seconds, model.s3_usd) + requests(self.puts, self.gets),
            control_plane: function_seconds * FUNCTION_GB * model.lambda_usd
                + million(self.invocations as f64, model.invocation_usd)
                + million(self.loads as f64 * LOAD_UNITS, model.read_usd)
                + million(self.rows as f64 * PUT_UNITS, model.write_usd)
                + requests(self.control_puts, 0),
        }
    }
}

impl Life {
    fn seconds(&self, now: Timestamp) -> f64 {
        self.until.unwrap_or(now).duration_since(self.from).as_secs_f64()
    }

    fn spot_dollars(&self, trace: &Trace, started: Timestamp, now: Timestamp) -> f64 {
        let until = self.until.unwrap_or(now);
        let since = |at: Timestamp| Duration::try_from(at.duration_since(started)).unwrap_or_default();
        if self.reclaimed && self.seconds(now) < FREE.as_secs_f64() {
            return 0.0;
        }
        trace.dollars(&self.zone, since(self.from), since(until)).unwrap_or_default()
    }
}

fn parts(gib: f64) -> u64 {
    (gib * MIB_PER_GIB / PART_MIB).ceil() as u64
}
