//! Runs what people put around their training. Process 1 of the container is the runner, and all others are below it.

use serde_json::{Value, json};

use crate::interrupted;
use crate::scene::{Scene, until};

const PIPELINE: &[&str] = &["sh", "-c", "python3 /train.py \"$@\" | tee /tmp/log", "sh", "${args}"];
const TRAP: &[&str] = &["bash", "-c", "trap 'echo ended' TERM; python3 /train.py \"$@\"; exit $?", "bash", "${args}"];
const WRAPPERS: &[&str] = &["timeout", "600", "nohup", "python3", "/train.py", "${args}"];
const LAUNCHER: &[&str] = &[
    "python3",
    "-c",
    "import subprocess, sys; sys.exit(subprocess.call(['python3', '/train.py', *sys.argv[1:]]))",
    "${args}",
];

/// The attempt after a notice goes on from `newest`. Nothing of either attempt is left in the container or on the
/// volume.
async fn goes_on(command: &'static [&'static str], parameters: &Value, newest: u64) {
    let Some(mut scene) = Scene::make(parameters) else { return };
    scene.command = command;
    let first = scene.start(1, &[]);
    until("the first container waits", &first, || !scene.services.invocations("access").is_empty()).await;
    scene.volume.attach();
    until("a sealed checkpoint", &first, || scene.has_trained(14) && scene.has_sealed("step-010")).await;
    scene.services.announce(Some(60));
    interrupted(&mut scene, first, &format!("step-{newest:03}")).await;
    scene.finish(2, newest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_saves_whatever_has_started_it() {
    for command in [PIPELINE, TRAP, WRAPPERS, LAUNCHER] {
        goes_on(command, &json!({ "steps": 30, "waits": "14", "linger": 0 }), 14).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_without_a_handler_completes_its_next_checkpoint() {
    for command in [PIPELINE, LAUNCHER] {
        goes_on(command, &json!({ "steps": 30, "waits": "14", "linger": 0, "handles": "no" }), 20).await;
    }
}
