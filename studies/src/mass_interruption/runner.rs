//! A runner: claims, mounts, trains until the notice, saves, releases and leaves.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use spotsweep_protocol::claim::{Found, NoticeKind, Reply, Request, Seal};
use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_simulation::container::Container;
use spotsweep_world::Start;

use super::Scene;
use super::functions::asked;

/// The time between two polls of the metadata service (fact 32).
const POLL: Duration = Duration::from_secs(5);

/// The pause after a call without an answer.
const PAUSE: Duration = Duration::from_secs(2);

/// The longest time from the notice until everything is sealed. Trainings take between none and all of it.
const SAVING: Duration = Duration::from_secs(90);

struct Runner {
    scene: Rc<Scene>,
    container: Container,
}

/// Runs one attempt until its container ends or is killed.
pub(super) async fn run(scene: Rc<Scene>, start: Start) {
    let Some(container) = Container::of(&start, &scene.harness.cloud.world()) else { return };
    let runner = Rc::new(Runner { scene: Rc::clone(&scene), container });
    // Containers do not start together.
    scene.clock().sleep(POLL.mul_f64(runner.share(1))).await;
    let Some(volume) = runner.workspace().await else { return };
    scene.mounted.set(scene.mounted.get() + 1);
    while !scene.noticed.get() {
        scene.clock().sleep(POLL).await;
    }
    // Saving does not wait for the report of the notice.
    let notifier = Rc::clone(&runner);
    scene.begin(async move {
        notifier.ask(Request::Notice { kind: NoticeKind::Interruption }).await;
    });
    scene.clock().sleep(SAVING.mul_f64(runner.share(2))).await;
    runner.leave(&volume).await;
}

impl Runner {
    /// Claims and mounts the volume; `None` if its container ended first.
    async fn workspace(&self) -> Option<String> {
        let volume = loop {
            match self.ask(Request::Claim(self.container.place())).await? {
                Reply::Granted(grant) => {
                    self.ask(Request::Access).await?;
                    break grant.workspace?.volume;
                }
                Reply::Waiting { retry_after_ms, .. } => {
                    self.scene.clock().sleep(Duration::from_millis(retry_after_ms)).await;
                }
                Reply::Unavailable { .. }
                | Reply::Refused { .. }
                | Reply::Access(_)
                | Reply::Accepted {}
                | Reply::Stop { .. } => return None,
            }
        };
        self.scene.harness.cloud.world().set_mounted(&volume, true);
        self.ask(Request::Mounted { volume: volume.clone(), found: Found::default(), seconds: 1.0 }).await?;
        Some(volume)
    }

    /// Unmounts the volume, releases the trial, and ends the container.
    async fn leave(&self, volume: &str) {
        self.scene.harness.cloud.world().set_mounted(volume, false);
        let seal = Some(Seal { files: 1, bytes: 1, newest: Some("newest".to_owned()) });
        if self
            .ask(Request::Release {
                sequence: 1,
                metrics: BTreeMap::new(),
                seal,
                rollback: None,
                stalled_seconds: None,
                rungs: Vec::new(),
            })
            .await
            .is_some()
        {
            let now = self.scene.clock().now();
            self.scene.harness.cloud.world().job_exited(&self.container.key, INTERRUPTED_EXIT_CODE, now);
        }
    }

    /// Repeats a request until there is a reply; `None` if the container has ended.
    async fn ask(&self, request: Request) -> Option<Reply> {
        let request = self.container.request(request);
        while self.scene.live.borrow().contains(&self.container.key) {
            if let Some(reply) = asked(&self.scene, &request).await {
                return Some(reply);
            }
            self.scene.clock().sleep(PAUSE).await;
        }
        None
    }

    /// Returns a number from 0 to 1 that differs for each trial and use.
    fn share(&self, of: u32) -> f64 {
        let mixed =
            (self.container.trial.index + 1).wrapping_mul(2_654_435_761).wrapping_add(of.wrapping_mul(0x9E37_79B9));
        f64::from(mixed ^ (mixed >> 15)) / f64::from(u32::MAX)
    }
}
