//! Drives a [`World`] by the wall clock, with child processes, volumes and event delivery.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::config::Config;
use crate::delivery::{Delivery, LogGroups};
use spotsweep_world::ebs::VolumeOrder;
use spotsweep_world::{Effect, World};

pub(crate) mod groups;
pub(crate) mod jobs;
pub(crate) mod process;
mod tree;
pub(crate) mod volumes;

use groups::Groups;

/// The state that the parts of an emulator share.
pub(crate) struct Core {
    world: Mutex<World>,
    wake: Notify,
    orders: mpsc::UnboundedSender<Effect>,
    volume_orders: mpsc::UnboundedSender<VolumeOrder>,
    groups: Groups,
    delivery: Delivery,
    requests: AtomicU64,
    logs: PathBuf,
}

impl Core {
    /// Creates a World from the configuration, at the present time. Its orders go to `orders` and `volume_orders`.
    pub(crate) fn new(
        config: &Config,
        groups: Groups,
        orders: mpsc::UnboundedSender<Effect>,
        volume_orders: mpsc::UnboundedSender<VolumeOrder>,
    ) -> Self {
        Core {
            world: Mutex::new(World::new(config.settings()).with_bytes_outside().with_ecs_events()),
            wake: Notify::new(),
            orders,
            volume_orders,
            groups,
            delivery: Delivery::start(config),
            requests: AtomicU64::new(0),
            logs: config.work_dir.join(process::LOGS),
        }
    }

    /// Returns the delivery of events from the World to the event bus's targets.
    pub(crate) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Runs `act` on the World at the present time, and passes on the World's orders.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        let result = self.step(act);
        self.wake.notify_one();
        result
    }

    fn step<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        let mut world = self.lock();
        let now = Timestamp::now();
        world.advance(now);
        let result = act(&mut world, now);
        // The lock is still held, so that effects keep their order.
        for effect in world.take_effects() {
            match effect {
                Effect::Emit(event) => self.delivery.hand_in(&event),
                order @ (Effect::Start(_) | Effect::Stop { .. } | Effect::Kill(_)) => {
                    // The channel is closed only after shutdown, and then nothing has to be started or stopped.
                    let _ = self.orders.send(order);
                }
            }
        }
        for order in world.take_volume_orders() {
            volumes::halt_writers(&order, &self.groups);
            // The channel is closed only after shutdown.
            let _ = self.volume_orders.send(order);
        }
        result
    }

    /// Locks the World, even after a caller has panicked.
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn snapshot(&self) -> Value {
        let mut snapshot = self.with(|world, _now| world.snapshot());
        snapshot["events"] = json!(self.delivery.counts());
        snapshot
    }

    /// Returns the folder of the containers' output, by log stream.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }

    pub(crate) fn log_groups(&self) -> &LogGroups {
        self.delivery.log_groups()
    }

    pub(crate) fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-a000-{number:012x}")
    }
}

/// Advances the World when its next event is due.
pub(crate) async fn keep_time(core: Arc<Core>) {
    loop {
        let due = core.lock().next_due();
        let woken = core.wake.notified();
        match due {
            None => woken.await,
            Some(due) => {
                let wait = due.duration_since(Timestamp::now());
                let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = woken => {}
                }
            }
        }
        core.step(|_world, _now| ());
    }
}
