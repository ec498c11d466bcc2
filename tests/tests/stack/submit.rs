//! `spotsweep submit`: what it asks the control plane for beyond the file.

use aws_sdk_s3::primitives::ByteStream;
use serde_json::json;
use spotsweep_tests::local::{Stack, eventually, s3};

use super::commands::run;

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
    run(&stack, &["submit", &list, "--trials", "1"]).await.said(2, "the file lists its 2 trials");
    run(&stack, &["submit", &random, "--trials", "0"]).await.said(2, "0 is not in 1..");

    // Whoever puts the object by hand is told of a slip, and nothing is started.
    let (bucket, key) = (&stack.bucket, "sweeps/by-hand.yaml");
    let put = s3(&stack.config()).put_object().bucket(bucket).key(key).metadata("spotsweep-run-cap", "two");
    put.body(ByteStream::from_static(RANDOM.as_bytes())).send().await.unwrap();
    let rejection = async || {
        let read = s3(&stack.config()).get_object().bucket(bucket).key(format!("{key}.rejected.json")).send().await;
        let bytes = read.ok()?.body.collect().await.ok()?.to_vec();
        serde_json::from_slice::<serde_json::Value>(&bytes).ok()
    };
    let rejection = eventually("the file is rejected", std::time::Duration::from_secs(60), rejection).await;
    let message = rejection["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("is no number of trials: \"two\""), "{message}");
    assert_ne!(rejection["problems"][0]["help"], json!(""));
    stack.stop().await;
}
