//! Runs `spotsweep submit`: the command asks the control plane about more than the file.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use spotsweep_protocol::ids::SweepId;
use spotsweep_tests::local::{Stack, eventually, s3};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::time::sleep;

use super::by_hand::run;

const RANDOM: &str =
    "program: train.py\nmethod: random\nparameters: {lr: {min: 0.001, max: 0.1}, epochs: {value: 1}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_trials_goes_before_the_files_own() {
    let stack = Stack::start("submit").await;
    let file = |name: &str, text: &str| {
        let path = stack.subfolder("files").join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (random, list) = (file("random.yaml", RANDOM), file("list.yaml", "- {lr: 0.1}\n- {lr: 0.2}\n"));
    let submitted = run(&stack, &["submit", &random, "--trials", "2"]).await.said(0, "2 trials submitted");
    assert!(!submitted.notes.contains("default"), "{}", submitted.notes);
    run(&stack, &["submit", &list, "--trials", "1"]).await.said(2, "the file lists 2 trials");
    run(&stack, &["submit", &random, "--trials", "0"]).await.said(2, "0 is not in 1..");

    quoted(&stack, &list, &file("long.yaml", "spotsweep: {workspace: off, timeout: 6h}\ntrials: [{lr: 1}]\n")).await;
    stopped_while_it_waits(&stack, &random).await;

    // A file that was put by hand with a slip is answered, and nothing is started.
    let (bucket, key) = (&stack.bucket, "sweeps/by-hand.yaml");
    let put = s3(&stack.config()).put_object().bucket(bucket).key(key).metadata("spotsweep-run-cap", "two");
    put.body(ByteStream::from_static(RANDOM.as_bytes())).send().await.unwrap();
    let rejection = async || {
        let read = s3(&stack.config()).get_object().bucket(bucket).key(format!("{key}.rejected.json")).send().await;
        let bytes = read.ok()?.body.collect().await.ok()?.to_vec();
        serde_json::from_slice::<serde_json::Value>(&bytes).ok()
    };
    let rejection = eventually("the file is rejected", rejection).await;
    let message = rejection["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("is no number of trials: \"two\""), "{message}");
    assert_ne!(rejection["problems"][0]["help"], json!(""));
    stack.stop().await;
}

/// A long training without checkpoints is reported as a problem before it is submitted.
async fn quoted(stack: &Stack, short: &str, long: &str) {
    for (arguments, code, out) in [
        (&["validate", short, "--quote"][..], 0, "10.0 h "),
        (&["validate", short, "--quote"], 0, "a trial of 4.0 h: $"),
        (&["validate", long, "--quote"], 1, "problem: "),
        (&["validate", long, "--quote", "--hours", "0.5"], 0, "no workspace"),
    ] {
        let quote = run(stack, arguments).await.said(code, "");
        assert!(quote.out.contains(out), "{arguments:?}: {}", quote.out);
    }
    run(stack, &["validate", long]).await.said(0, "starts from its beginning");
    run(stack, &["validate", long, "--hours", "1"]).await.said(2, "--quote");
}

/// Ctrl-C after the upload ends the command, not the sweep. The message names the sweep, even if no answer has come
/// yet.
async fn stopped_while_it_waits(stack: &Stack, file: &str) {
    let rules = aws_sdk_eventbridge::Client::new(&stack.config());
    rules.disable_rule().name("sweep-upload").send().await.unwrap();
    let mut submit = stack.prepared(&["submit", file]);
    let mut submit = submit.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut notes = String::new();
    let mut lines = BufReader::new(submit.stderr.take().unwrap());
    while !notes.contains("waiting for the plan") {
        assert!(lines.read_line(&mut notes).await.unwrap() > 0, "{notes}");
    }
    // The command handles the signal from its first look for the answer on.
    sleep(Duration::from_millis(500)).await;
    let pid = Pid::from_raw(submit.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    lines.read_to_string(&mut notes).await.unwrap();
    assert_eq!(submit.wait().await.unwrap().code(), Some(1), "{notes}");
    rules.enable_rule().name("sweep-upload").send().await.unwrap();
    let key = format!("sweeps/{}", Path::new(file).file_name().unwrap().to_str().unwrap());
    let head = s3(&stack.config()).head_object().bucket(&stack.bucket).key(&key).send().await.unwrap();
    let sweep = SweepId::derive(&stack.bucket, &key, head.version_id().unwrap());
    for part in [&format!("sweep {sweep} goes on"), &format!("spotsweep watch {sweep}"), "spotsweep cancel"] {
        assert!(notes.contains(part), "no {part:?}: {notes}");
    }
}
