//! What is kept of ended trials: a retry goes on from it, and everything else is deleted.

use serde_json::{Value, json};
use spotsweep_tests::local::{Stack, eventually};

use super::by_hand::{leftovers, run, settled, status, submit};

/// Counts epochs on its volume. It fails after one epoch, and sleeps after another one.
const COUNT: &str = r#"
metric: {name: val_accuracy, goal: maximize}
spotsweep:
  workspace: {size: 1GiB, keep_succeeded: 1h}
  command:
    - sh
    - -c
    - 'e=$(cat $SPOTSWEEP_CHECKPOINTS/epoch 2>/dev/null || echo 0); echo "started after $e"; while [ $e -lt $HP_EPOCHS ]; do e=$((e+1)); echo $e > $SPOTSWEEP_CHECKPOINTS/epoch; echo "epoch=$e val_accuracy=0.$e"; [ $e = $HP_FAILS ] && exit 3; [ $e = $HP_SLEEPS ] && sleep 600; done; exit 0'
trials:
  - {epochs: 4, fails: 2, sleeps: 0}
  - {epochs: 3, fails: 0, sleeps: 0}
  - {epochs: 5, fails: 0, sleeps: 3}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_goes_on_from_what_is_kept() {
    let stack = Stack::start("kept").await;
    let sweep = submit(&stack, "count", COUNT).await;
    let sleeps =
        async || trial(&stack, &sweep, 2).await.filter(|trial| trial["metrics"]["val_accuracy"]["last"] == 0.3);
    eventually("the third trial sleeps", sleeps).await;
    run(&stack, &["retry", &sweep, "2", "--continue"]).await.said(1, "trial 2: it has not ended, it is running");
    run(&stack, &["cancel", &sweep, "2", "--wait"]).await.said(0, "but what `workspace` keeps");

    let ended = settled(&stack, &sweep).await;
    let counts = [&ended["succeeded"], &ended["failed"], &ended["cancelled"]];
    assert_eq!(counts, [&json!(1); 3], "{ended}");
    assert!(ended["each"][2]["reason"].as_str().unwrap().starts_with("cancelled by "), "{ended}");
    for index in 0..3 {
        let kept = async || {
            let trial = trial(&stack, &sweep, index).await?;
            trial["notes"].as_array()?.iter().any(|note| note.as_str().unwrap().contains(" as snap-")).then_some(())
        };
        eventually("its workspace is saved", kept).await;
    }
    assert_eq!(leftovers(&stack).await["volumes"], json!([]), "the snapshots are all that is kept");

    // Each trial goes on from its own checkpoint: one that failed, one that succeeded, and one that was cancelled.
    let arguments = ["retry", &sweep, "0", "1", "--cancelled", "--continue", "--json"];
    let set = ["--set", "epochs=5", "--set", "fails=0", "--set", "sleeps=0"];
    let retried = run(&stack, &[&arguments[..], &set[..]].concat()).await.said(0, "3 trials of").json();
    let again = retried["sweep"].as_str().unwrap();
    let ended = settled(&stack, again).await;
    assert_eq!(ended["succeeded"], 3, "{ended}");
    for (index, after) in [(0, 2), (1, 3), (2, 3)] {
        assert_eq!(ended["each"][index]["metrics"]["val_accuracy"]["last"], 0.5, "{ended}");
        let log = run(&stack, &["logs", again, &index.to_string()]).await.said(0, "").out;
        assert!(log.contains(&format!("started after {after}\n")), "{log}");
    }
    nothing_to_continue(&stack, again).await;
    a_success_goes_on_from_its_collected_checkpoint(&stack).await;
    stack.stop().await;
}

/// By default nothing is kept of a trial that succeeds.
async fn a_success_goes_on_from_its_collected_checkpoint(stack: &Stack) {
    let file = COUNT.replace(", keep_succeeded: 1h", "").replace("  - {epochs: 5, fails: 0, sleeps: 3}\n", "");
    let sweep = submit(stack, "longer", &file).await;
    let ended = settled(stack, &sweep).await;
    assert_eq!([&ended["succeeded"], &ended["failed"]], [&json!(1); 2], "{ended}");

    let saved = async || trial(stack, &sweep, 0).await.filter(|trial| trial["notes"].to_string().contains(" as snap-"));
    eventually("the workspace of the trial that failed is saved", saved).await;
    let apart = run(stack, &["retry", &sweep, "0", "1", "--continue"]).await.said(1, "Retry them apart");
    assert!(apart.notes.contains(&format!("spotsweep retry {sweep} 1 --continue")), "{}", apart.notes);

    let arguments = ["retry", &sweep, "1", "--continue", "--set", "epochs=5", "--json"];
    let said = "continuing 1 trial from checkpoints in the bucket: 2 bytes in 1 file";
    let retried = run(stack, &arguments).await.said(0, said).json();
    let again = retried["sweep"].as_str().unwrap();
    let ended = settled(stack, again).await;
    let metric = &ended["each"][0]["metrics"]["val_accuracy"];
    assert_eq!(
        (&ended["succeeded"], &metric["last"], &metric["min"]),
        (&json!(1), &json!(0.5), &json!(0.4)),
        "{ended}"
    );
    let log = run(stack, &["logs", again, "0"]).await.said(0, "").out;
    assert!(log.contains("started after 3\nepoch=4 "), "{log}");
}

/// A trial is cancelled with --delete.
async fn nothing_to_continue(stack: &Stack, other: &str) {
    let sweep =
        submit(stack, "delete", &COUNT.replace("epochs: 4, fails: 2, sleeps: 0", "epochs: 4, fails: 0, sleeps: 1"))
            .await;
    let sleeps = async || trial(stack, &sweep, 0).await.filter(|trial| trial["metrics"]["val_accuracy"]["last"] == 0.1);
    eventually("the first trial sleeps", sleeps).await;
    run(stack, &["cancel", &sweep, "--delete", "--wait"]).await.said(0, "");
    let none = run(stack, &["retry", &sweep, "0", "--continue"]).await.said(1, "nothing was started");
    assert!(none.notes.contains("trial 0: its workspace is deleted"), "{}", none.notes);
    run(stack, &["retry", &sweep]).await.said(1, "cancelled: --cancelled retries those");
    run(stack, &["retry", other, "0", "--continue", "--set", "epoch=7"]).await.said(2, "no parameter \"epoch\" to set");
}

async fn trial(stack: &Stack, sweep: &str, index: u32) -> Option<Value> {
    let status = status(stack, sweep).await;
    status["each"].as_array()?.iter().find(|trial| trial["index"] == index).cloned()
}
