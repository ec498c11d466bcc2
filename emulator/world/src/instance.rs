//! The states of EC2 instances: pending → running → shutting-down → terminated.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::catalog::Resources;
use super::ids::RunRef;
use super::{ApiError, Effect, Timer, World};

/// The time from shutting-down to terminated.
const SHUTDOWN: Duration = Duration::from_millis(300);
/// How long a terminated instance can still be described ("approximately one hour",
/// EC2 user guide, "Terminate your instance").
const REMEMBERED: Duration = Duration::from_secs(3600);

/// An instance's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// The instance boots.
    Pending,
    /// The instance can run jobs.
    Running,
    /// The instance shuts down, and its containers have ended.
    ShuttingDown,
    /// The instance is gone.
    Terminated,
}

impl InstanceState {
    /// All states.
    pub const ALL: [InstanceState; 4] = [Self::Pending, Self::Running, Self::ShuttingDown, Self::Terminated];

    /// Returns EC2's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            InstanceState::Pending => "pending",
            InstanceState::Running => "running",
            InstanceState::ShuttingDown => "shutting-down",
            InstanceState::Terminated => "terminated",
        }
    }

    /// Returns EC2's number of the state.
    pub fn code(self) -> u16 {
        match self {
            InstanceState::Pending => 0,
            InstanceState::Running => 16,
            InstanceState::ShuttingDown => 32,
            InstanceState::Terminated => 48,
        }
    }

    /// Whether the instance is pending or running, so that it counts towards vCPU and zone limits.
    pub fn is_live(self) -> bool {
        match self {
            InstanceState::Pending | InstanceState::Running => true,
            InstanceState::ShuttingDown | InstanceState::Terminated => false,
        }
    }
}

/// Why an instance is shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    SpotReclaim,
    User,
    ScaleIn,
}

impl Cause {
    /// Returns EC2's `stateReason`: code and message.
    fn state_reason(self) -> (&'static str, &'static str) {
        match self {
            Cause::SpotReclaim => {
                ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination")
            }
            Cause::User | Cause::ScaleIn => {
                ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
            }
        }
    }

    /// Returns EC2's StateTransitionReason, which has the time if a user or Batch ended the instance (EC2 user guide,
    /// "Instance termination reason").
    fn transition_reason(self, at: Timestamp) -> String {
        match self {
            Cause::SpotReclaim => "Server.SpotInstanceTermination".to_owned(),
            Cause::User | Cause::ScaleIn => format!("User initiated ({} GMT)", at.strftime("%Y-%m-%d %H:%M:%S")),
        }
    }
}

/// Why no training succeeds on an instance. EC2, ECS and Batch do not detect it (fact 60).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// The instance's GPU does not answer, which a check can detect.
    Visible,
    /// Each training fails at once, and nothing else shows the defect.
    Hidden,
}

/// An EC2 instance of a managed compute environment.
#[derive(Debug, Clone)]
pub struct Instance {
    /// `i-` and 17 hex digits.
    pub id: String,
    /// The compute environment that launched it.
    pub environment: String,
    /// Availability zone.
    pub zone: String,
    /// Subnet in that zone.
    pub subnet: String,
    /// The instance type, such as `g5.xlarge`.
    pub instance_type: String,
    /// The state.
    pub state: InstanceState,
    /// Whether it is a Spot instance.
    pub spot: bool,
    /// When it was requested.
    pub launched_at: Timestamp,
    /// When it will be (or was) reclaimed, once the notice is out.
    pub interruption: Option<Timestamp>,
    /// When a rebalance was recommended.
    pub rebalance: Option<Timestamp>,
    /// The defect that it has from its launch on.
    pub defect: Option<Defect>,
    /// Whether UpdateContainerInstancesState has set it to DRAINING.
    pub drained: bool,
    /// Whether its ECS agent is disconnected. ECS then places nothing there, and does not learn what happens to its
    /// tasks.
    pub disconnected: bool,
    /// Whether EC2's status checks of it fail.
    pub impaired: bool,
    /// Tags: `computeResources.tags` and Batch's own.
    pub tags: Vec<(String, String)>,
    /// The ECS container instance that Batch's events name (fact 13), with its cluster's name.
    pub container_instance_arn: String,
    /// `stateReason`, code and message, once it shuts down.
    pub state_reason: Option<(&'static str, &'static str)>,
    /// EC2's StateTransitionReason; empty until it shuts down.
    pub transition_reason: String,
    pub(super) total: Resources,
    pub(super) free: Resources,
    /// UUIDs of the GPUs that no container has.
    pub(super) free_gpus: BTreeSet<String>,
    pub(super) runs: BTreeSet<RunRef>,
    pub(super) idle_since: Option<Timestamp>,
    pub(super) images: BTreeSet<String>,
}

impl Instance {
    /// Returns the UUIDs of an instance's GPUs. They are unique, but not random.
    pub(super) fn gpus(id: &str, count: u32) -> BTreeSet<String> {
        let digits = id.trim_start_matches("i-");
        (0..count).map(|number| format!("GPU-{digits:0>8.8}-0000-4000-a000-{number:012}")).collect()
    }

    /// Returns the UUIDs of all its GPUs.
    pub fn gpu_ids(&self) -> BTreeSet<String> {
        Self::gpus(&self.id, self.total.gpus)
    }

    /// Whether Batch has placed jobs there that have not ended.
    pub fn has_jobs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether the instance can take another container with these resources.
    pub(super) fn accepts(&self, wanted: &Resources) -> bool {
        self.state == InstanceState::Running && !self.disconnected && self.free.fits(wanted)
    }
}

impl World {
    /// Whether ECS places nothing more there: it was drained, or its interruption notice is out and
    /// `ECS_ENABLE_SPOT_INSTANCE_DRAINING` is set (fact 9).
    pub(super) fn is_draining(&self, instance: &Instance) -> bool {
        instance.drained || (instance.interruption.is_some() && !self.trouble.without_draining)
    }

    /// Returns the instance with this id. A terminated one is known for an hour.
    pub fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(id)
    }

    /// Returns all instances, in the order of their ids.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values()
    }

    /// Reclaims a Spot instance. With a notice, it is sent now (event and IMDS), and the instance ends when the notice
    /// is over. Without one the instance ends now.
    ///
    /// # Errors
    /// `InvalidInstanceID.NotFound` for an unknown id, `UnsupportedOperation` for an instance that is not a live Spot
    /// instance.
    pub fn reclaim(&mut self, id: &str, notice: Option<Duration>, now: Timestamp) -> Result<(), ApiError> {
        self.advance(now);
        let zone = self.live_spot(id)?.zone.clone();
        match notice {
            None => self.shut_down(id, Cause::SpotReclaim),
            Some(notice) => {
                let at = self.now.saturating_add(notice).unwrap_or(Timestamp::MAX);
                self.live_spot(id)?.interruption = Some(at);
                self.emit_interruption_warning(id, &zone);
                if !self.trouble.without_draining {
                    self.emit_container_instance(id);
                }
                self.after(notice, Timer::Reclaim { instance: id.to_owned() });
            }
        }
        self.schedule();
        Ok(())
    }

    /// Reclaims all live Spot instances of a zone; those under an earlier notice keep that. The zone has no new ones
    /// until [`World::set_zone_capacity`] changes that. Returns the ids of the instances.
    ///
    /// # Errors
    /// `InvalidZone.NotFound`.
    pub fn reclaim_zone(
        &mut self,
        zone: &str,
        notice: Option<Duration>,
        now: Timestamp,
    ) -> Result<Vec<String>, ApiError> {
        self.check_zone(zone)?;
        self.set_zone_capacity(zone, Some(0), now);
        let lost = self.instances.values().filter(|instance| instance.zone == zone && instance.spot);
        let lost = lost.filter(|instance| instance.state.is_live());
        let lost = lost.filter(|instance| notice.is_none() || instance.interruption.is_none());
        let lost: Vec<String> = lost.map(|instance| instance.id.clone()).collect();
        for id in &lost {
            self.reclaim(id, notice, now)?;
        }
        Ok(lost)
    }

    /// Recommends a rebalance, which has no effect other than event and IMDS.
    ///
    /// # Errors
    /// The same as those of [`World::reclaim`].
    pub fn recommend_rebalance(&mut self, id: &str, now: Timestamp) -> Result<(), ApiError> {
        self.advance(now);
        let at = self.now;
        self.live_spot(id)?.rebalance = Some(at);
        self.emit_rebalance(id);
        Ok(())
    }

    /// Sets whether the ECS agent of a live instance is disconnected, and whether EC2's status checks fail.
    pub fn set_connection(&mut self, id: &str, disconnected: bool, impaired: bool, now: Timestamp) {
        self.advance(now);
        let Some(instance) = self.instances.get_mut(id).filter(|instance| instance.state.is_live()) else { return };
        (instance.disconnected, instance.impaired) = (disconnected, impaired);
        self.emit_container_instance(id);
        self.schedule();
    }

    fn live_spot(&mut self, id: &str) -> Result<&mut Instance, ApiError> {
        let Some(instance) = self.instances.get_mut(id) else {
            return Err(instance_not_found(&[id]));
        };
        if !instance.spot || !instance.state.is_live() {
            let message = format!("The instance '{id}' is not a live Spot instance.");
            return Err(ApiError::ec2("UnsupportedOperation", message));
        }
        Ok(instance)
    }

    pub(super) fn booted(&mut self, id: &str) {
        let now = self.now;
        let Some(instance) = self.instances.get_mut(id) else { return };
        if instance.state != InstanceState::Pending {
            return;
        }
        instance.state = InstanceState::Running;
        instance.idle_since = Some(now);
        self.emit_instance_state(id, InstanceState::Running);
        self.emit_container_instance(id);
        self.watch_idle(id);
    }

    /// Starts the timer that ends an instance if it stays without jobs.
    pub(super) fn watch_idle(&mut self, id: &str) {
        let idle = self.settings.timings.idle;
        if let Some(since) = self.instances.get(id).and_then(|instance| instance.idle_since) {
            self.after(idle, Timer::Idle { instance: id.to_owned(), since });
        }
    }

    pub(super) fn idle_over(&mut self, id: &str, since: Timestamp) {
        let Some(instance) = self.instances.get(id) else { return };
        let still_idle = instance.state == InstanceState::Running && instance.idle_since == Some(since);
        if !still_idle {
            return;
        }
        if self.may_scale_in(instance) {
            self.shut_down(id, Cause::ScaleIn);
        } else {
            self.watch_idle(id);
        }
    }

    /// Shuts an instance down. The containers end with it at once, but Batch reports that only when the instance is
    /// gone.
    pub(super) fn shut_down(&mut self, id: &str, cause: Cause) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        if !instance.state.is_live() {
            return;
        }
        instance.state = InstanceState::ShuttingDown;
        instance.state_reason = Some(cause.state_reason());
        instance.transition_reason = cause.transition_reason(self.now);
        let runs: Vec<RunRef> = instance.runs.iter().copied().collect();
        for run in runs {
            if let Some(attempt) = self.batch.running_attempt(run) {
                self.effects.push(Effect::Kill(attempt));
            }
        }
        self.emit_instance_state(id, InstanceState::ShuttingDown);
        self.after(SHUTDOWN, Timer::Terminated { instance: id.to_owned() });
    }

    pub(super) fn terminated(&mut self, id: &str) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.state = InstanceState::Terminated;
        let runs: Vec<RunRef> = instance.runs.iter().copied().collect();
        self.detach_all(id);
        self.emit_instance_state(id, InstanceState::Terminated);
        for run in runs {
            self.host_terminated(run, id);
        }
        self.after(REMEMBERED, Timer::Forgotten { instance: id.to_owned() });
    }
}

/// Returns EC2's error for unknown ids.
pub(super) fn instance_not_found(ids: &[&str]) -> ApiError {
    let message = match ids {
        [one] => format!("The instance ID '{one}' does not exist"),
        _ => format!("The instance IDs '{}' do not exist", ids.join(", ")),
    };
    ApiError::ec2("InvalidInstanceID.NotFound", message)
}
