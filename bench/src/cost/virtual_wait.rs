//! Waits on the virtual clock for AWS, because Lambda bills an invocation while it waits.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_control_plane::calls::Wait;
use spotsweep_simulation::cloud::Cloud;

/// The clock of one invocation. The World's clock advances with it.
#[derive(Debug)]
pub(super) struct VirtualWait<'a> {
    cloud: &'a Cloud,
    now: Mutex<Timestamp>,
}

impl<'a> VirtualWait<'a> {
    pub(super) fn new(cloud: &'a Cloud, now: Timestamp) -> Self {
        Self { cloud, now: Mutex::new(now) }
    }

    /// Returns the time at which the invocation ends.
    pub(super) fn ends(self) -> Timestamp {
        self.now.into_inner().expect("no other user of the lock has panicked")
    }
}

impl Wait for VirtualWait<'_> {
    async fn wait(&self, time: Duration) -> bool {
        let mut now = self.now.lock().expect("no other user of the lock has panicked");
        *now += time;
        self.cloud.world().advance(*now);
        true
    }
}
