use std::time::Duration;

const MIB: u64 = 1 << 20;

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// Shortest time from the request of an instance until it runs jobs.
    pub boot: Duration,
    /// How much longer the slowest boot takes. The others are evenly spread between.
    pub boot_spread: Duration,
    /// Shortest time to pull an image, once for each image and instance.
    pub image_pull: Duration,
    /// How much longer the slowest pull takes. The others are evenly spread between.
    pub image_pull_spread: Duration,
    /// How long an instance without jobs is kept.
    pub idle: Duration,
    /// From an interruption notice to the instance's end, if FIS interrupts it.
    pub notice: Duration,
    /// From StartExperiment until FIS has chosen its targets and begins.
    pub experiment_start: Duration,
    /// From SIGTERM to SIGKILL for a container that is stopped (30 s for the ECS agent).
    pub stop_grace: Duration,
    /// From the request of a volume until it is available.
    pub create_volume: Duration,
    /// From the request of a volume's deletion until it is gone.
    pub delete_volume: Duration,
    /// From the request until a device is attached.
    pub attach: Duration,
    /// From the request, or the unmount, until a device is detached.
    pub detach: Duration,
    /// The time of a snapshot without changed bytes.
    pub snapshot_base: Duration,
    /// How many changed bytes a snapshot copies per second.
    pub snapshot_bytes_per_second: u64,
    /// How many bytes per second a volume from a snapshot loads, unless a rate was requested.
    pub initialization_bytes_per_second: u64,
}

impl Default for Timings {
    /// Returns the timings of the local stack, with which a workspace moves to another zone within a second.
    fn default() -> Self {
        Timings {
            boot: Duration::from_secs(1),
            boot_spread: Duration::ZERO,
            image_pull: Duration::from_millis(500),
            image_pull_spread: Duration::ZERO,
            idle: Duration::from_secs(5),
            // The demo's interruptions have the same notice, because two minutes are too long for a training of
            // seconds.
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
    /// Makes boots and pulls as uneven as on AWS, with a second of the local stack for each minute. An instance boots
    /// for one to six seconds, and an image is pulled in half a second to ten and a half. AWS publishes neither.
    #[must_use]
    pub fn with_slow_starts(self) -> Self {
        Timings { boot_spread: Duration::from_secs(5), image_pull_spread: Duration::from_secs(10), ..self }
    }

    /// Returns the timings of the simulation, with AWS's orders of magnitude. AWS publishes no service level for any of
    /// them, so each is on the slow side of its source.
    pub fn realistic() -> Self {
        Timings {
            // A GPU AMI takes this long until its ECS agent has registered.
            boot: Duration::from_secs(90),
            boot_spread: Duration::ZERO,
            // An image has 5 GB (the size of pytorch's CUDA images), and download and unpacking run at about 60 MB/s.
            image_pull: Duration::from_secs(80),
            image_pull_spread: Duration::ZERO,
            // Batch keeps an idle instance for some minutes for the next job.
            idle: Duration::from_secs(300),
            // The source is the EC2 user guide, "Spot Instance interruption notices".
            notice: Duration::from_secs(120),
            // Users have reported `initiating` at first, and `running` ten seconds later (fact 33).
            experiment_start: Duration::from_secs(10),
            // This is the default of ECS_CONTAINER_STOP_TIMEOUT.
            stop_grace: Duration::from_secs(30),
            create_volume: Duration::from_secs(5),
            delete_volume: Duration::from_secs(5),
            attach: Duration::from_secs(5),
            detach: Duration::from_secs(8),
            // Even a snapshot without changes takes some time.
            snapshot_base: Duration::from_secs(45),
            // gp3's baseline is 125 MiB/s (EBS user guide, "General Purpose SSD volumes"), which is shared with the
            // training's own reads and writes.
            snapshot_bytes_per_second: 60 * MIB,
            // Users have reported about 9 MB/s for one reader on first touch, and a training has a few readers.
            // VolumeInitializationRate buys 100 to 300 MiB/s (fact 25).
            initialization_bytes_per_second: 20 * MIB,
        }
    }
}

/// The sequence of boot and pull times of a World.
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

/// Returns a share from 0 to 1. Multiples of the golden ratio are evenly spread, however many there are, so no seed
/// makes all of them similar.
fn next(count: &mut u32) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    *count = count.wrapping_add(1);
    (f64::from(*count) * GOLDEN).fract()
}
