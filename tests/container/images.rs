//! Images that hold no runner, as people take them from a registry: the instance has fetched the runner, and the job
//! mounts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use spotsweep_needs::{opted_in, programs};
use spotsweep_tests::local::Binaries;

use crate::image::image;
use crate::interrupted;
use crate::scene::{Scene, until};

/// An entrypoint as NVIDIA's images have it.
const OWN_ENTRYPOINT: &[&str] = &["/bin/sh", "-c", "export GREETED=yes; exec \"$@\"", "entrypoint"];

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_runner_and_mkfs_trains() {
    let Some(image) = image() else { return };
    let mut scene = Scene::of(image.to_owned(), Some(&built()), &parameters());
    scene.without = &["usr/sbin/mkfs.ext4", "usr/sbin/mke2fs"];
    goes_on_elsewhere(scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_with_an_entrypoint_of_its_own_trains() {
    let Some(image) = image() else { return };
    let mut scene = Scene::of(image.to_owned(), Some(&built()), &parameters());
    scene.entrypoint = OWN_ENTRYPOINT;
    goes_on_elsewhere(scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_holds_a_runner_trains_once() {
    let Some(image) = image() else { return };
    let mut scene = Scene::of(image.to_owned(), Some(&built()), &parameters());
    scene.entrypoint = &["spotsweep-runner", "--"];
    goes_on_elsewhere(scene).await;
}

/// The image has BusyBox and nothing else. The runner for it is the static one that a deployment has.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_a_c_library_trains() {
    let Some(runner) = opted_in("SPOTSWEEP_STATIC_RUNNER") else { return };
    if image().is_none() || !spotsweep_needs::met(programs(&["busybox"])) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::of(busybox(folder.path()), Some(Path::new(&runner)), &parameters());
    scene.command = &["sh", "/train.sh", "${args}"];
    goes_on_elsewhere(scene).await;
}

fn parameters() -> serde_json::Value {
    json!({ "steps": 30, "waits": "14", "linger": 0 })
}

fn built() -> PathBuf {
    Binaries::build().get("spotsweep-runner")
}

/// Makes an image of this machine's BusyBox, which must be the static one.
fn busybox(folder: &Path) -> PathBuf {
    let (image, programs) = (folder.join("image"), folder.join("image/bin"));
    fs::create_dir_all(&programs).unwrap();
    fs::copy("/bin/busybox", programs.join("busybox")).unwrap();
    let installed = Command::new("busybox").args(["--install", "-s"]).arg(&programs).status().unwrap();
    assert!(installed.success());
    for entry in fs::read_dir(&programs).unwrap().map(Result::unwrap) {
        // BusyBox links to where it lies on this machine.
        if entry.file_type().unwrap().is_symlink() {
            fs::remove_file(entry.path()).unwrap();
            std::os::unix::fs::symlink("busybox", entry.path()).unwrap();
        }
    }
    image
}

/// The first attempt makes the file system, trains and is interrupted. The second one goes on from another device.
async fn goes_on_elsewhere(mut scene: Scene) {
    let first = scene.start(1, &[]);
    until("the first container waits", &first, || !scene.services.invocations("access").is_empty()).await;
    scene.volume.attach();
    until("a sealed checkpoint", &first, || scene.has_trained(14) && scene.has_sealed("step-010")).await;
    scene.services.announce(Some(60));
    interrupted(&mut scene, first, "step-014").await;
    scene.finish(2, 14).await;
    let expected = "claim access mounted notice release claim access mounted end";
    assert_eq!(scene.kinds(), expected.split(' ').collect::<Vec<_>>());
}
