//! Lambda bills an invocation while it waits: what waits on AWS waits here, on the virtual clock.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_control_plane::calls::Wait;
use spotsweep_simulation::cloud::Cloud;

/// The clock of one invocation. The World's goes along.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    cloud: &'a Cloud,
    now: Mutex<Timestamp>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(cloud: &'a Cloud, now: Timestamp) -> Self {
        Self { cloud, now: Mutex::new(now) }
    }

    /// What time it is when the invocation ends.
    pub(super) fn ends(self) -> Timestamp {
        self.now.into_inner().expect("nobody has panicked")
    }
}

impl Wait for Patience<'_> {
    async fn wait(&self, time: Duration) -> bool {
        let mut now = self.now.lock().expect("nobody has panicked");
        *now += time;
        self.cloud.world().advance(*now);
        true
    }
}
