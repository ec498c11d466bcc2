//! A sweep that brings its folder, its setup and its variables: sent, trained, interrupted, run again.

use std::fs;
use std::path::Path;

use serde_json::json;
use spotsweep_tests::local::{Stack, eventually, s3};

use super::by_hand::{run, settled, status};

const SWEEP: &str = r#"
metric: {name: score, goal: maximize}
spotsweep:
  code: .
  setup: "echo setup has run > $SPOTSWEEP_DATASETS/setup; echo score=99"
  env: {GREETING: hello, PLACE: "{file}"}
  resources: {shared_memory: 3MiB}
  command: [sh, train.sh]
trials: [{n: 1}, {n: 2}]
"#;

/// It goes on from its checkpoint, and prints what it was sent with.
const TRAIN: &str = r#"
. ./lib/version.sh
step=$(cat "$SPOTSWEEP_CHECKPOINTS/step" 2>/dev/null || echo 0)
[ -e data ] || [ -e .env ] && exit 7
echo "begins at $step"
while [ "$step" -lt 6 ]; do
    sleep 1
    step=$((step + 1))
    echo "$step" > "$SPOTSWEEP_CHECKPOINTS/part" && mv "$SPOTSWEEP_CHECKPOINTS/part" "$SPOTSWEEP_CHECKPOINTS/step"
    echo "score=0.$step step=$step"
done
echo "version $VERSION, $GREETING $PLACE, $(cat $SPOTSWEEP_DATASETS/setup)"
echo "shared memory $(df -k /dev/shm | awk 'END { print $2 }')"
"#;

fn write(folder: &Path, version: u32) {
    fs::create_dir_all(folder.join("lib")).unwrap();
    fs::write(folder.join("lib/version.sh"), format!("VERSION={version}\n")).unwrap();
    fs::write(folder.join("train.sh"), TRAIN).unwrap();
    fs::write(folder.join(".gitignore"), "data\n").unwrap();
    fs::write(folder.join("data"), "much").unwrap();
    fs::write(folder.join(".env"), "PASSWORD=none\n").unwrap();
    fs::write(folder.join("sweep.yaml"), SWEEP.replace("{file}", "file")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_runs_the_folder_as_it_was_sent() {
    let stack = Stack::start_with("code", &["--max-vcpus", "2"]).await;
    let folder = stack.subfolder("mine");
    write(&folder, 1);
    let file = folder.join("sweep.yaml");
    let file = file.to_str().unwrap();
    dropped_without_its_folder(&stack).await;
    much_is_asked_about(&stack, &folder, file).await;
    run(&stack, &["submit", file, "--env", "AWS_REGION=x"]).await.said(2, "`AWS_REGION` cannot be set");
    run(&stack, &["submit", file, "--env", "NOT_SET_HERE"]).await.said(2, "has no such variable");

    let submitted = run(&stack, &["submit", file, "--env", "PLACE=wörld"]).await.said(0, "code: 3 files");
    assert!(submitted.notes.contains("`.env` is left out"), "{}", submitted.notes);
    assert!(!submitted.notes.contains("`data`"), "an ignore file names it: {}", submitted.notes);
    let sweep = submitted.out.trim().to_owned();
    // What was sent runs, whatever the folder has by then.
    write(&folder, 2);
    let saved = async || {
        let trial = status(&stack, &sweep).await["each"][0].clone();
        (trial["metrics"]["score"]["last"].as_f64() >= Some(0.2)).then_some(())
    };
    eventually("trial 0 has a checkpoint", saved).await;
    run(&stack, &["local", "reclaim", &sweep, "--trial", "0"]).await.said(0, "");
    let ended = settled(&stack, &sweep).await;
    assert_eq!(ended["succeeded"], json!(2), "{ended}");
    let log = run(&stack, &["logs", &sweep, "0"]).await.said(0, "").out;
    assert!(log.contains("version 1, hello wörld, setup has run"), "{log}");
    assert!(log.contains("shared memory 3072"), "{log}");
    assert!(log.contains("attempt 2") && log.contains("begins at ") && !log.contains("begins at 0"), "{log}");

    again(&stack, &folder, file, &sweep).await;
    stack.stop().await;
}

/// More than 100 MiB are sent only if that was agreed to.
async fn much_is_asked_about(stack: &Stack, folder: &Path, file: &str) {
    let parts = ["w0.bin", "w1.bin", "w2.bin"].map(|name| folder.join(name));
    parts.iter().for_each(|part| fs::File::create(part).unwrap().set_len(40 << 20).unwrap());
    let asked = run(stack, &["submit", file]).await.said(2, "give --yes");
    assert!(asked.notes.contains("40.0 MiB  w2.bin"), "the largest files are named: {}", asked.notes);
    parts.iter().for_each(|part| fs::remove_file(part).unwrap());
}

async fn dropped_without_its_folder(stack: &Stack) {
    let text = SWEEP.replace("{file}", "file");
    let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key("sweeps/dropped.yaml");
    put.body(text.into_bytes().into()).send().await.unwrap();
    let answer = async || {
        let key = "sweeps/dropped.yaml.rejected.json";
        let got = s3(&stack.config()).get_object().bucket(&stack.bucket).key(key).send().await.ok()?;
        String::from_utf8(got.body.collect().await.ok()?.to_vec()).ok()
    };
    let answer = eventually("the file is answered", answer).await;
    assert!(answer.contains("was not sent with the file") && answer.contains("spotsweep submit"), "{answer}");
}

/// The same folder is not sent again, and a retry runs what the first sweep ran.
async fn again(stack: &Stack, folder: &Path, file: &str, sweep: &str) {
    let listed = run(stack, &["code", "ls"]).await.said(0, "").out;
    let sha256 = listed.lines().nth(1).and_then(|line| line.split_whitespace().last()).unwrap().to_owned();
    let retried = run(stack, &["retry", sweep, "1"]).await.said(0, "").out;
    let ended = settled(stack, retried.trim()).await;
    assert_eq!(ended["succeeded"], json!(1), "{ended}");
    let log = run(stack, &["logs", retried.trim(), "0"]).await.said(0, "").out;
    assert!(log.contains("version 1, hello wörld"), "{log}");

    write(folder, 1);
    let pushed = run(stack, &["code", "push", folder.to_str().unwrap()]).await.said(0, "code: 4 files");
    assert_ne!(pushed.out.trim(), sha256, "the sweep file is code to `push`");
    let second = run(stack, &["submit", file]).await.said(0, "the bucket has it already").out;
    run(stack, &["cancel", second.trim()]).await.said(0, "");

    run(stack, &["code", "rm", &sha256]).await.said(2, "give --yes");
    run(stack, &["code", "rm", &sha256, "--yes"]).await.said(0, "");
    run(stack, &["retry", sweep, "1"]).await.said(1, "the bucket has no folder of code with the SHA-256");
}
