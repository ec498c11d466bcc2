//! Kills containers, as when an instance is lost or the grace of ECS ends.

use std::fs;

use serde_json::json;

use crate::container::Container;
use crate::scene::{Scene, until};

/// Stage of the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has claimed its trial, and waits for the volume.
    BeforeMount,
    /// A file system is being made.
    HalfFormatted,
    /// The volume has a file system, but is not mounted.
    Formatted,
    /// The volume is mounted, and the training has not started.
    Mounted,
    /// A checkpoint is sealed.
    Training,
    /// Under notice, the training has saved and still runs. What it has saved is sealed.
    Grace,
    /// The training has ended. The runner seals and unmounts.
    Sealing,
    /// The volume is unmounted, and the trial is not released yet.
    Unmounted,
}

impl Stage {
    /// Runs the attempt to this stage.
    async fn reach(self, scene: &mut Scene, container: &Container) {
        let asked = |scene: &Scene, kind: &str| !scene.services.invocations(kind).is_empty();
        until("the claim", container, || asked(scene, "access")).await;
        if self == Self::BeforeMount {
            return;
        }
        scene.services.hold(match self {
            Self::Mounted => Some("mounted"),
            Self::Sealing | Self::Unmounted => Some("release"),
            Self::BeforeMount | Self::HalfFormatted | Self::Formatted | Self::Training | Self::Grace => None,
        });
        if self == Self::HalfFormatted {
            fs::write(scene.probe("half"), "").unwrap();
        }
        scene.volume.attach();
        match self {
            Self::HalfFormatted | Self::Formatted => {
                until("a file system", container, || scene.probe("formatted").exists()).await;
            }
            Self::Mounted => until("the mount", container, || asked(scene, "mounted")).await,
            Self::BeforeMount | Self::Training | Self::Grace | Self::Sealing | Self::Unmounted => {
                until("a seal", container, || scene.has_trained(14) && scene.has_sealed("step-010")).await;
            }
        }
        if matches!(self, Self::Grace | Self::Sealing | Self::Unmounted) {
            scene.services.announce(Some(60));
        }
        match self {
            Self::Grace => {
                until("the saved state", container, || scene.has_saved() && scene.has_sealed("step-014")).await;
            }
            Self::Sealing => until("the training's end", container, || !container.trains()).await,
            Self::Unmounted => until("the release", container, || asked(scene, "release")).await,
            Self::BeforeMount | Self::HalfFormatted | Self::Formatted | Self::Mounted | Self::Training => {}
        }
    }

    /// The step after which the next attempt starts.
    fn kept(self) -> u64 {
        match self {
            Self::BeforeMount | Self::HalfFormatted | Self::Formatted | Self::Mounted => 0,
            Self::Training => 10,
            Self::Grace | Self::Sealing | Self::Unmounted => 14,
        }
    }
}

/// What ends together with the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dies {
    Container,
    /// What the kernel has not written to the volume is lost.
    Instance,
}

/// Kills an attempt at each of these stages. The next one goes on from what it has left.
async fn killed(stages: &[Stage], dies: Dies) {
    for stage in stages {
        let parameters = json!({ "steps": 30, "waits": "14", "linger": if *stage == Stage::Grace { 600 } else { 0 } });
        let Some(mut scene) = Scene::make(&parameters) else { return };
        let stopping = scene.file("mkfs.sh", include_str!("mkfs.sh"));
        let binds = [(stopping.as_path(), "/usr/local/sbin/mkfs.ext4")];
        let is_formatting = matches!(stage, Stage::HalfFormatted | Stage::Formatted);
        let container = scene.start(1, if is_formatting { &binds } else { &[] });
        stage.reach(&mut scene, &container).await;
        let written = (dies == Dies::Instance).then(|| scene.volume.written());
        container.signal("KILL");
        let killed = container.outcome().await;
        assert_eq!(killed.code, Some(137), "{stage:?} {dies:?}: {}", killed.stderr);
        scene.assert_nothing_is_left();
        scene.volume.detach().await.unwrap_or_else(|problem| panic!("{stage:?} {dies:?}: {problem}"));
        if let Some(written) = &written {
            scene.volume.hold(written);
        }
        if !matches!(stage, Stage::BeforeMount | Stage::HalfFormatted) {
            scene.volume.check().unwrap_or_else(|problem| panic!("{stage:?} {dies:?}: {problem}"));
        }
        scene.finish(2, stage.kept()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_killed_before_it_trains_leaves_no_mount() {
    killed(&[Stage::BeforeMount, Stage::HalfFormatted, Stage::Formatted, Stage::Mounted], Dies::Container).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_killed_once_it_trains_leaves_no_mount() {
    killed(&[Stage::Training, Stage::Grace, Stage::Sealing, Stage::Unmounted], Dies::Container).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sealed_outlives_the_instance() {
    let stages =
        [Stage::HalfFormatted, Stage::Formatted, Stage::Mounted, Stage::Training, Stage::Grace, Stage::Unmounted];
    killed(&stages, Dies::Instance).await;
}
