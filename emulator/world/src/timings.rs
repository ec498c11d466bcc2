//! How long things take.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// An instance, from the request until it runs jobs: the fastest one.
    pub boot: Duration,
    /// How much longer the slowest boot takes. The others lie evenly in between.
    pub boot_spread: Duration,
    /// Pulling an image, once per image and instance: the fastest one.
    pub image_pull: Duration,
    /// How much longer the slowest pull takes. The others lie evenly in between.
    pub image_pull_spread: Duration,
    /// How long an instance without jobs is kept.
    pub idle: Duration,
    /// From an interruption's warning to the instance's end, where FIS interrupts it.
    pub notice: Duration,
    /// From StartExperiment until FIS has chosen its targets and begins.
    pub experiment_start: Duration,
    /// From SIGTERM to SIGKILL for a container that is stopped (30 s for the ECS agent).
    pub stop_grace: Duration,
    /// A volume, from the request until it is available.
    pub create_volume: Duration,
    /// A volume, from the request until it is gone.
    pub delete_volume: Duration,
    /// From the request until a device is attached.
    pub attach: Duration,
    /// From the request, or the unmount, until a device is detached.
    pub detach: Duration,
    /// A snapshot without changed bytes.
    pub snapshot_base: Duration,
    /// How fast changed bytes get into a snapshot.
    pub snapshot_bytes_per_second: u64,
    /// How fast a volume made from a snapshot loads its bytes, unless a rate is asked for.
    pub initialization_bytes_per_second: u64,
}

impl Default for Timings {
    /// For the local stack: a workspace moves to another zone within a second.
    fn default() -> Self {
        Timings {
            boot: Duration::from_secs(1),
            boot_spread: Duration::ZERO,
            image_pull: Duration::from_millis(500),
            image_pull_spread: Duration::ZERO,
            idle: Duration::from_secs(5),
            // As the demo's reclaims have it: nobody waits two minutes for a training of seconds.
            notice: Duration::from_secs(2),
            experiment_start: Duration::from_millis(200),
            stop_grace: Duration::from_secs(30),
            create_volume: Duration::from_millis(150),
            delete_volume: Duration::from_millis(100),
            attach: Duration::from_millis(100),
            detach: Duration::from_millis(100),
            snapshot_base: Duration::from_millis(300),
            snapshot_bytes_per_second: 200 * MIB,
            initialization_bytes_per_second: 1024 * MIB,
        }
    }
}

impl Timings {
    /// Boots and pulls as uneven as on AWS, at the local stack's minute of a second: an instance boots for one to six of
    /// them, and an image arrives after half a minute to ten and a half. AWS publishes neither.
    #[must_use]
    pub fn with_slow_starts(self) -> Self {
        Timings { boot_spread: Duration::from_secs(5), image_pull_spread: Duration::from_secs(10), ..self }
    }

    /// For the simulation: orders of magnitude as on AWS. No service level is published for any of
    /// them, so each is on the slow side of what its source says.
    pub fn realistic() -> Self {
        Timings {
            // A GPU AMI until its ECS agent has registered.
            boot: Duration::from_secs(90),
            boot_spread: Duration::ZERO,
            // 5 GB (the size of pytorch's CUDA images) at about 60 MB/s, download and unpacking.
            image_pull: Duration::from_secs(80),
            image_pull_spread: Duration::ZERO,
            // Batch keeps an idle instance for some minutes, so that the next job finds it warm.
            idle: Duration::from_secs(300),
            // EC2 user guide, "Spot Instance interruption notices".
            notice: Duration::from_secs(120),
            // Reported: `initiating` at first, and `running` ten seconds later (fact 33).
            experiment_start: Duration::from_secs(10),
            // ECS_CONTAINER_STOP_TIMEOUT's default.
            stop_grace: Duration::from_secs(30),
            create_volume: Duration::from_secs(5),
            delete_volume: Duration::from_secs(5),
            attach: Duration::from_secs(5),
            detach: Duration::from_secs(8),
            // Even a snapshot without changes passes through S3's bookkeeping.
            snapshot_base: Duration::from_secs(45),
            // gp3's baseline of 125 MiB/s (EBS user guide, "General Purpose SSD volumes"), shared
            // with the training's own reads and writes.
            snapshot_bytes_per_second: 60 * MIB,
            // About 9 MB/s have been reported for one reader on first touch; training has a few readers.
            // VolumeInitializationRate buys 100 to 300 MiB/s (fact 25).
            initialization_bytes_per_second: 20 * MIB,
        }
    }
}

/// How long the boots and pulls of a World take, one after the other.
#[derive(Debug, Default)]
pub(super) struct Spread {
    boots: u32,
    pulls: u32,
}

impl Spread {
    pub(super) fn boot(&mut self, timings: &Timings) -> Duration {
        timings.boot + timings.boot_spread.mul_f64(next(&mut self.boots))
    }

    pub(super) fn pull(&mut self, timings: &Timings) -> Duration {
        timings.image_pull + timings.image_pull_spread.mul_f64(next(&mut self.pulls))
    }
}

/// A share from 0 to 1. Multiples of the golden ratio lie evenly in there, however many there are: no seed makes all of
/// them alike.
fn next(count: &mut u32) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    *count = count.wrapping_add(1);
    (f64::from(*count) * GOLDEN).fract()
}
