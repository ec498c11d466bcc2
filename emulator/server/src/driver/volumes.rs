//! Stores the bytes of volumes and snapshots on disk, on the World's orders.
//!
//! `<work_dir>/volumes/<vol-…>` and `<work_dir>/snapshots/<snap-…>` are folders or, for block devices, images
//! (`….img`). While a volume is attached, its device is at
//! `<work_dir>/instances/<i-…>/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol…` (fact 27).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::Core;
use super::groups::{Groups, Running};
use super::tree;
use spotsweep_world::ebs::VolumeOrder;

mod block;
mod blocking;
mod directory;
mod disk;
mod tool;

pub(crate) use block::{Loops, check as check_block_devices};
pub(crate) use disk::Disk;

/// The time between two looks at something that has to end.
const POLL: Duration = Duration::from_millis(20);
/// The longest wait for the jobs of a dead instance to end, or for halted writers to stop.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Executes the orders about volumes, one after the other.
pub(crate) struct VolumeKeeper {
    core: Arc<Core>,
    groups: Groups,
    disk: Disk,
    /// Orders to detach that wait for an unmount.
    busy: BTreeMap<String, VolumeOrder>,
}

impl VolumeKeeper {
    pub(crate) fn new(core: Arc<Core>, groups: Groups, disk: Disk) -> Self {
        VolumeKeeper { core, groups, disk, busy: BTreeMap::new() }
    }

    /// Runs until `closed`; then removes all devices.
    pub(crate) async fn run(
        mut self,
        mut orders: mpsc::UnboundedReceiver<VolumeOrder>,
        mut closed: watch::Receiver<bool>,
    ) {
        loop {
            tokio::select! {
                Some(order) = orders.recv() => self.execute(order).await,
                () = sleep(POLL), if !self.busy.is_empty() => self.look_at_busy().await,
                () = closing(&mut closed) => break,
            }
        }
        self.disk.release_all().await;
    }

    async fn execute(&mut self, order: VolumeOrder) {
        let outcome = match &order {
            VolumeOrder::Make { volume, size_gib, from } => self.disk.make(volume, *size_gib, from.as_deref()).await,
            VolumeOrder::Attach { volume, instance, .. } => self.disk.attach(volume, instance).await,
            VolumeOrder::Detach { volume, instance, .. } => {
                self.busy.remove(volume);
                if !self.make_free(volume, instance).await {
                    self.busy.insert(volume.clone(), order);
                    return;
                }
                self.disk.detach(volume, instance).await
            }
            VolumeOrder::Copy { snapshot, volume, base, instance } => {
                self.copy(snapshot, volume, base.as_deref(), instance.as_deref()).await
            }
            VolumeOrder::RemoveVolume(volume) => self.disk.remove_volume(volume).await,
            VolumeOrder::RemoveSnapshot(snapshot) => self.disk.remove_snapshot(snapshot).await,
        };
        if let Err(error) = &outcome {
            tracing::error!(?order, error, "a volume's bytes cannot be kept as ordered");
        }
        self.core.with(|world, now| world.volume_order_done(&order, outcome, now));
    }

    /// Whether a volume can be detached now. If not, the World is notified.
    async fn make_free(&mut self, volume: &str, instance: &str) -> bool {
        let (alive, forced) = self.core.with(|world, _now| {
            let alive = world.instance(instance).is_some_and(|host| host.state.is_live());
            (alive, world.is_detach_forced(volume))
        });
        if !alive {
            // Its jobs have been killed already, so only their end is awaited.
            self.end(self.groups.on(instance), || self.groups.on(instance).is_empty()).await;
            return true;
        }
        let holders = self.holders(volume, instance);
        if holders.is_empty() {
            return true;
        }
        if forced {
            // A process cannot get the I/O errors of a removed device, so it is killed instead.
            self.end(holders, || self.holders(volume, instance).is_empty()).await;
            return true;
        }
        self.core.with(|world, _now| world.set_mounted(volume, true));
        false
    }

    fn holders(&self, volume: &str, instance: &str) -> Vec<Running> {
        let running = self.groups.on(instance);
        running.into_iter().filter(|one| self.disk.mount_of(volume, one).is_some()).collect()
    }

    async fn end(&self, running: Vec<Running>, is_over: impl Fn() -> bool) {
        running.iter().for_each(|one| one.signal(Signal::KILL));
        let over = until(is_over).await;
        if !over {
            tracing::error!("killed jobs are still there after {LONGEST_WAIT:?}");
        }
    }

    async fn look_at_busy(&mut self) {
        for (volume, order) in std::mem::take(&mut self.busy) {
            let VolumeOrder::Detach { instance, .. } = &order else { continue };
            let (alive, forced) = self.core.with(|world, _now| {
                let alive = world.instance(instance).is_some_and(|host| host.state.is_live());
                (alive, world.is_detach_forced(&volume))
            });
            if alive && !forced && !self.holders(&volume, instance).is_empty() {
                self.busy.insert(volume, order);
            } else {
                // The volume was unmounted, forced or orphaned: the World has repeated the order to detach, or does so
                // now.
                self.core.with(|world, _now| world.set_mounted(&volume, false));
            }
        }
    }

    /// Copies a volume. Its writers were halted when the snapshot was requested: see [`halt_writers`].
    async fn copy(
        &mut self,
        snapshot: &str,
        volume: &str,
        base: Option<&str>,
        instance: Option<&str>,
    ) -> Result<u64, String> {
        let writers = instance.map(|instance| self.groups.on(instance)).unwrap_or_default();
        let halted = until(|| writers.iter().all(|one| tree::is_halted(one.main))).await;
        if !halted {
            tracing::warn!(volume, "a job does not halt: the snapshot may hold bytes of after the request");
        }
        let mount = writers.iter().find_map(|one| self.disk.mount_of(volume, one));
        let outcome = self.disk.copy(snapshot, volume, base, mount).await;
        if let Some(instance) = instance {
            self.groups.resume(instance);
        }
        outcome
    }
}

async fn closing(closed: &mut watch::Receiver<bool>) {
    // An error means that the emulator has been dropped.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// Halts the instance's jobs until the copy is made, because a snapshot has the volume's content at the request (fact
/// 24).
pub(super) fn halt_writers(order: &VolumeOrder, groups: &Groups) {
    if let VolumeOrder::Copy { instance: Some(instance), .. } = order {
        groups.halt(instance);
    }
}

/// Whether a condition becomes true within [`LONGEST_WAIT`].
async fn until(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        sleep(POLL / 10).await;
    }
}

/// Returns the name of a volume's device in `/dev/disk/by-id` (fact 27).
fn device_link(volume: &str) -> PathBuf {
    PathBuf::from(format!("disk/by-id/nvme-Amazon_Elastic_Block_Store_{}", volume.replacen('-', "", 1)))
}
