//! Lambda bills an invocation while it waits: what waits on AWS waits here, on the virtual clock.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::handle::{ExecuteError, Executor};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::workspace::{Call, detach_pauses};
use spotsweep_simulation::cloud::Cloud;

/// The cloud, for one invocation.
pub(super) struct Patient<'a> {
    cloud: &'a Cloud,
    now: Mutex<Timestamp>,
}

impl<'a> Patient<'a> {
    pub(super) fn new(cloud: &'a Cloud, now: Timestamp) -> Self {
        Self { cloud, now: Mutex::new(now) }
    }

    /// What time it is when the invocation ends.
    pub(super) fn ends(self) -> Timestamp {
        self.now.into_inner().expect("nobody has panicked")
    }

    fn wait(&self, pause: Duration) {
        let mut now = self.now.lock().expect("nobody has panicked");
        *now += pause;
        self.cloud.world().advance(*now);
    }

    fn is_on_an_instance(&self, volume: &str) -> bool {
        self.cloud.world().volume(volume).is_some_and(|volume| volume.attachment.is_some())
    }
}

impl Executor for Patient<'_> {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        if let Command::Workspace { call: Call::AwaitDetached(volume), .. } = &command {
            // As `await_detached` of the AWS executor does.
            for pause in detach_pauses() {
                if !self.is_on_an_instance(volume) {
                    break;
                }
                self.wait(pause);
            }
        }
        self.cloud.execute(command).await
    }
}
