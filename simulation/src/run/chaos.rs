//! The faults of a run: each kind, and when it occurs. A new kind needs a field here, its share in [`Chaos::mixed`],
//! and a call of the random numbers at its place below.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use serde_json::Value;
use spotsweep_world::Service;

use super::{DataFaults, Habits, OnSignal, Scheduled, Simulation};
use crate::invocation::InvocationFault;
use crate::kernel::{Delivery, RECONCILE};

/// How long an invocation may take. An event that comes within that time may run concurrently.
const INVOCATION: Duration = Duration::from_secs(3);

/// The delay of the latest events.
const HOUR: Duration = Duration::from_secs(3600);

/// The fault points from which the one is drawn at which an invocation dies or a call fails. Some invocations end
/// earlier.
const POINTS: usize = 24;

/// The actions for which a role may lack the permission.
const DENIABLE: [&str; 8] = [
    "CreateVolume",
    "AttachVolume",
    "DetachVolume",
    "DeleteVolume",
    "CreateSnapshot",
    "DeleteSnapshot",
    "DescribeVolumes",
    "DescribeSnapshots",
];

/// Errors of single entries (<https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html>).
const ENTRY_ERRORS: [&str; 2] = ["InternalFailure", "ThrottlingException"];

/// The longest time until a new permission takes effect. It is shorter than the time after which a denial counts as
/// lasting.
const PROPAGATION: Duration = Duration::from_secs(30);

/// The faults of a run, as shares from 0 to 1 unless stated otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Chaos {
    /// Best-effort events (`aws.ec2`) that never arrive.
    pub lost: f64,
    /// Events that arrive twice.
    pub doubled: f64,
    /// The longest delivery time of an event. Each event takes another time, which changes their order.
    pub delay: Duration,
    /// Invocations that die at a call.
    pub killed: f64,
    /// A fault point of the whole run at which an invocation dies, in addition to the random ones.
    pub killed_at: Option<usize>,
    /// Invocations in which a call returns an error, before or after it has taken effect.
    pub failed: f64,
    /// Invocations from which EventBridge accepts no event.
    pub unsent: f64,
    /// EC2 calls that are throttled.
    pub throttled: f64,
    /// Invocations concurrent with another one, call by call.
    pub beside: f64,
    /// The largest error of a function's clock.
    pub skew: Duration,
    /// How long `ListJobs` does not show a new job.
    pub unlisted: Duration,
    /// The mean time between two reclaims; `None` means no reclaims.
    pub reclaim_every: Option<Duration>,
    /// Reclaims without a notice.
    pub unannounced: f64,
    /// Reclaims that take a whole zone for some minutes.
    pub zone_wide: f64,
    /// Whether instances are not drained on a notice, so that Batch may place an attempt on an instance under notice.
    pub without_draining: bool,
    /// EC2 calls that get a temporary refusal.
    pub refused: f64,
    /// How long the volume quota is used up, from the first volume that is asked for.
    pub quota_full: Duration,
    /// Whether EC2 refuses each initialization rate until the end of the run, because the quota is too low.
    pub refuses_rate: bool,
    /// An EC2 action that is denied, and for how long from its first call; `None` means until the faults end.
    pub denied: Option<(&'static str, Option<Duration>)>,
    /// Whether EC2 answers "denied" if a resource does not exist any more.
    pub gone_is_denied: bool,
    /// Whether the KMS key of the volumes cannot be used.
    pub unusable_key: bool,
    /// Attempts that end with their instance, but without that reason from Batch.
    pub unnamed: f64,
    /// Whether a job is STARTING before Batch shows its instance.
    pub unplaced: bool,
    /// Attempts whose metadata service does not answer, and single reads of it that fail.
    pub silent: f64,
    /// How the training script saves checkpoints.
    pub habits: Habits,
    /// The trial whose script fails after its last step.
    pub fails: Option<u32>,
    /// Whether it fails before its command starts, in its setup.
    pub fails_in_setup: bool,
    /// Last seals that do not have enough time.
    pub slow_seals: f64,
    /// Attempts whose training stalls after its first checkpoint.
    pub hangs: f64,
    /// Attempts whose instance vanishes some time after their start: it is dead, or cut off for 40 minutes.
    pub vanishing: f64,
    /// Attempts whose container is stopped some time after its start, and the same share of attempts under notice.
    pub terminated: f64,
    /// Requests of a runner whose answer is lost.
    pub unheard: f64,
    /// Requests of a runner after which it gets no answers for up to a quarter of an hour.
    pub mute: f64,
    /// Events that arrive an hour late.
    pub hour_late: f64,
    /// Requests of a runner that are delivered again, up to an hour later.
    pub late_requests: f64,
    /// Requests of a runner that are followed by a forged request of a training that knows the trial's job.
    pub forged: f64,
    /// The delay after which an instance's disk links change, from an attachment or a detachment.
    pub late_links: Duration,
    /// The faults that concern data sets.
    pub data: DataFaults,
    /// The longest lag of a describe call's answer.
    pub lag: Duration,
    /// The number of reclaims after which there are no more, so that the sweep can settle.
    pub most_reclaims: usize,
    /// The time after which no fault is injected, so that the sweep must settle.
    pub ends_after: Duration,
}

impl Chaos {
    /// No faults.
    pub fn none() -> Self {
        Self {
            lost: 0.0,
            doubled: 0.0,
            delay: Duration::ZERO,
            killed: 0.0,
            killed_at: None,
            failed: 0.0,
            unsent: 0.0,
            throttled: 0.0,
            beside: 0.0,
            skew: Duration::ZERO,
            unlisted: Duration::ZERO,
            reclaim_every: None,
            unannounced: 0.0,
            zone_wide: 0.0,
            without_draining: false,
            refused: 0.0,
            quota_full: Duration::ZERO,
            refuses_rate: false,
            denied: None,
            gone_is_denied: false,
            unusable_key: false,
            unnamed: 0.0,
            unplaced: false,
            silent: 0.0,
            habits: Habits::PLAIN,
            fails: None,
            fails_in_setup: false,
            slow_seals: 0.0,
            hangs: 0.0,
            vanishing: 0.0,
            terminated: 0.0,
            unheard: 0.0,
            mute: 0.0,
            hour_late: 0.0,
            late_requests: 0.0,
            forged: 0.0,
            late_links: Duration::ZERO,
            data: DataFaults::NONE,
            lag: Duration::ZERO,
            most_reclaims: 0,
            ends_after: Duration::from_secs(86_400),
        }
    }

    /// All kinds of faults at once.
    pub fn all() -> Self {
        Self {
            lost: 0.5,
            doubled: 0.3,
            delay: Duration::from_secs(40),
            killed: 0.1,
            killed_at: None,
            failed: 0.1,
            unsent: 0.1,
            throttled: 0.1,
            beside: 0.5,
            skew: Duration::from_secs(5),
            unlisted: Duration::from_secs(30),
            reclaim_every: Some(Duration::from_secs(120)),
            unannounced: 0.4,
            zone_wide: 0.2,
            without_draining: true,
            refused: 0.03,
            quota_full: Duration::from_secs(300),
            refuses_rate: true,
            denied: None,
            gone_is_denied: true,
            unusable_key: false,
            unnamed: 0.3,
            unplaced: true,
            silent: 0.05,
            habits: Habits { on_signal: OnSignal::ExitsZero, ..Habits::PLAIN },
            fails: None,
            fails_in_setup: false,
            slow_seals: 0.1,
            hangs: 0.1,
            vanishing: 0.1,
            terminated: 0.05,
            unheard: 0.05,
            mute: 0.01,
            hour_late: 0.05,
            late_requests: 0.1,
            forged: 0.1,
            late_links: Duration::from_secs(120),
            data: DataFaults::NONE,
            lag: Duration::from_secs(5),
            most_reclaims: 40,
            ends_after: Duration::from_secs(14_400),
        }
    }

    /// Faults that the random numbers decide.
    pub(super) fn mixed(rng: &mut ChaCha8Rng) -> Self {
        let mut share = |most: f64| most * f64::from(rng.next_u32() % 5) / 4.0;
        Self {
            lost: share(1.0),
            doubled: share(0.5),
            delay: Duration::from_secs(60).mul_f64(share(1.0)),
            killed: share(0.2),
            killed_at: None,
            failed: share(0.2),
            unsent: 0.0,
            throttled: share(0.3),
            beside: share(1.0),
            skew: Duration::from_secs(10).mul_f64(share(1.0)),
            unlisted: Duration::from_secs(60).mul_f64(share(1.0)),
            reclaim_every: Some(Duration::from_secs(90).mul_f64(1.0 + share(4.0))),
            unannounced: share(1.0),
            zone_wide: share(0.4),
            without_draining: share(1.0) >= 0.5,
            refused: share(0.2),
            quota_full: Duration::ZERO,
            refuses_rate: false,
            denied: None,
            gone_is_denied: share(1.0) >= 0.5,
            unusable_key: false,
            unnamed: share(1.0),
            unplaced: share(1.0) >= 0.5,
            silent: share(0.4),
            habits: Habits::PLAIN,
            fails: None,
            fails_in_setup: false,
            slow_seals: share(0.4),
            hangs: 0.0,
            vanishing: 0.0,
            terminated: 0.0,
            unheard: 0.0,
            mute: 0.0,
            hour_late: share(0.2),
            late_requests: 0.0,
            forged: 0.0,
            late_links: Duration::ZERO,
            data: DataFaults::NONE,
            lag: Duration::from_secs(8).mul_f64(share(1.0)),
            most_reclaims: 8,
            ends_after: Duration::from_secs(3600).mul_f64(0.25 + share(1.0)),
        }
        .chosen(rng)
    }

    /// Chooses one of several for the settings that are no shares.
    fn chosen(mut self, rng: &mut ChaCha8Rng) -> Self {
        let mut choose = |among: usize| usize::try_from(rng.next_u32()).unwrap_or(0) % among;
        self.habits = Habits::mixed(&mut choose);
        // A run has at most one of these faults, and many have none, because each of them hides many others.
        let lasting = choose(12);
        self.unusable_key = lasting == 0;
        if lasting >= 10 {
            self.quota_full = Duration::from_secs(600).mul_f64(f64::from(u32::try_from(choose(5)).unwrap_or(0)) / 4.0);
        }
        if (1..4).contains(&lasting) {
            let action = DENIABLE[choose(DENIABLE.len())];
            self.denied = Some((action, (choose(2) == 0).then_some(PROPAGATION)));
        }
        self
    }
}

impl Simulation {
    /// Switches on the faults that begin with the run.
    pub(super) fn begin_trouble(&mut self) {
        let chaos = &self.chaos;
        let mut world = self.harness.cloud.world();
        let trouble = world.trouble_mut();
        trouble.throttle_share = [Service::Ec2, Service::Batch].map(|service| (service, chaos.throttled)).into();
        trouble.request_limits = chaos.throttled > 0.0;
        trouble.without_draining = chaos.without_draining;
        trouble.refused_share = chaos.refused;
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        trouble.denied = chaos.denied.iter().map(|(action, most)| ((*action).to_owned(), most.map(ms))).collect();
        trouble.quota_full_ms = ms(chaos.quota_full);
        trouble.refuse_initialization_rate = chaos.refuses_rate;
        trouble.gone_is_denied = chaos.gone_is_denied;
        trouble.unusable_key = chaos.unusable_key;
        trouble.unnamed_ends = chaos.unnamed;
        trouble.unplaced_starts = chaos.unplaced;
        trouble.links_lag_ms = ms(chaos.late_links);
        trouble.lag_ms = ms(chaos.lag);
        drop(world);
        self.harness.cloud.list_late(self.chaos.unlisted);
        if let Some(mean) = self.chaos.reclaim_every {
            self.at(mean, Scheduled::Reclaim);
        }
    }

    /// Ends all faults.
    pub(super) fn end_trouble(&mut self) {
        self.rng.calm_down();
        let mut world = self.harness.cloud.world();
        let trouble = world.trouble_mut();
        trouble.throttle_share.clear();
        trouble.denied.clear();
        trouble.quota_full_ms = 0;
        (trouble.refused_share, trouble.unnamed_ends) = (0.0, 0.0);
        (trouble.unusable_key, trouble.lag_ms) = (false, 0);
    }

    /// Puts an event on the bus. It may be lost, late or delivered twice. An event that matches no rule reaches no
    /// function.
    pub(super) fn send(&mut self, event: &Value) {
        if self.harness.permissions.function_of(event).is_none() {
            return;
        }
        if event["source"] == "aws.ec2" && self.rng.occurs(self.chaos.lost) {
            return;
        }
        let copies = if self.rng.occurs(self.chaos.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            let share = self.rng.share();
            let is_late = !self.chaos.delay.is_zero() && self.rng.occurs(1.0);
            let delay = if is_late { self.chaos.delay.mul_f64(share) } else { Duration::ZERO };
            let delay = if self.rng.occurs(self.chaos.hour_late) { HOUR } else { delay };
            self.kernel.deliver(self.harness.now + delay, event.clone());
        }
    }

    /// The fault of the next invocation.
    pub(super) fn fault(&mut self) -> InvocationFault {
        let chosen = self.chaos.killed_at.and_then(|point| point.checked_sub(self.passed));
        let dies_at = self.rng.occurs(self.chaos.killed).then(|| self.rng.choose(POINTS));
        let fails_at = self.rng.occurs(self.chaos.failed).then(|| self.rng.choose(POINTS));
        let entry_error = self.rng.occurs(self.chaos.unsent).then(|| ENTRY_ERRORS[self.rng.choose(2)]);
        let mut fault = InvocationFault { dies_at: chosen.or(dies_at), fails_at, skew_ms: 0, entry_error };
        if !self.chaos.skew.is_zero() && self.rng.occurs(0.5) {
            let furthest = self.chaos.skew.as_secs_f64() * 1000.0;
            #[expect(clippy::cast_possible_truncation, reason = "some seconds in milliseconds")]
            let off = ((self.rng.share() * 2.0 - 1.0) * furthest) as i64;
            fault.skew_ms = off;
        }
        fault
    }

    /// Takes the next event from the bus, to run concurrently with the next invocation.
    pub(super) fn companion(&mut self) -> Option<Delivery> {
        let is_wanted = self.rng.occurs(self.chaos.beside);
        is_wanted.then(|| self.kernel.take_delivery(self.harness.now + INVOCATION)).flatten()
    }

    /// EC2 reclaims an instance with a training, or its whole zone.
    pub(super) fn reclaim(&mut self) {
        let mean = self.chaos.reclaim_every.unwrap_or(RECONCILE);
        let training: Vec<String> = self.agents.values().map(|agent| agent.container.instance.clone()).collect();
        if self.reclaims < self.chaos.most_reclaims {
            let wait = mean.mul_f64(2.0 * self.rng.share());
            self.at(wait, Scheduled::Reclaim);
        }
        let (chosen, share) = (self.rng.choose(training.len()), self.rng.share());
        let is_announced = share >= self.chaos.unannounced;
        let Some(instance) = training.get(chosen).filter(|_| self.rng.occurs(1.0)) else { return };
        let notice = is_announced.then_some(Duration::from_secs(120));
        let now = self.harness.now;
        let zone = self.harness.cloud.world().instance(instance).map(|found| found.zone.clone());
        self.reclaims += 1;
        if let Some(zone) = zone.filter(|_| self.rng.occurs(self.chaos.zone_wide)) {
            let _ = self.harness.cloud.world().reclaim_zone(&zone, notice, now);
            self.at(Duration::from_secs(900), Scheduled::Reopen(zone));
        } else {
            // The World refuses an instance that is already under reclaim.
            let _ = self.harness.cloud.world().reclaim(instance, notice, now);
        }
        self.notices_are_out();
    }
}
