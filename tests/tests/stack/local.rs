//! Runs `spotsweep local` and `demo --code` by hand: instances are reclaimed, and a running stack stays as it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spotsweep_tests::local::{Binaries, Demo, Stack, eventually};

use super::by_hand::{run, settled, status, submit};

/// Two trials that save at the stop signal, which takes two seconds, and end in their second attempt.
const SWEEP: &str = r#"
spotsweep:
  command:
    - sh
    - -c
    - 'trap "sleep 2; echo saved > /dltraining/checkpoints/last; exit 0" TERM; echo "val_accuracy=0.5"; ls /dltraining/checkpoints; [ $AWS_BATCH_JOB_ATTEMPT = 2 ] || while :; do sleep 0.1; done'
trials: [{n: 1}, {n: 2}]
"#;

async fn both_run(stack: &Stack, sweep: &str) {
    eventually("both trials run", async || {
        let status = status(stack, sweep).await;
        let reported = |trial: &&Value| trial["metrics"]["val_accuracy"]["last"] == 0.5;
        (status["each"].as_array()?.iter().filter(reported).count() == 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_taken_by_hand_with_and_without_a_notice() {
    let stack = Stack::start_with("reclaim", &["--max-vcpus", "3"]).await;
    run(&stack, &["local", "reclaim"]).await.said(1, "no trial runs on an instance now");
    run(&stack, &["local", "reclaim", "missing-0123456789ab"]).await.said(1, "no sweep named `missing-0123456789ab`");
    let sweep = submit(&stack, "taken", SWEEP).await;
    both_run(&stack, &sweep).await;
    run(&stack, &["local", "reclaim", "--trial", "7"]).await.said(1, "trial 7 does not run on an instance now");

    let first =
        run(&stack, &["local", "reclaim", "--notice", "12"]).await.said(0, " with a notice of 12 s: trial 0 attempt 1");
    assert!(first.notes.contains("reclaimed i-") && first.notes.contains(&format!("spotsweep explain {sweep} 0")));
    run(&stack, &["local", "reclaim", &sweep, "--trial", "1"]).await.said(0, " without notice: trial 1 attempt 1");
    let ended = settled(&stack, &sweep).await;
    assert_eq!(ended["succeeded"], 2, "{ended}");
    for (index, has_saved) in [("0", true), ("1", false)] {
        let log = run(&stack, &["logs", &sweep, index, "--attempt", "2"]).await.said(0, "").out;
        assert_eq!(log.lines().any(|line| line == "last"), has_saved, "trial {index}: {log}");
    }

    let forever = SWEEP.replace("= 2 ]", "= 9 ]");
    let [one, other] = [submit(&stack, "one", &forever).await, submit(&stack, "other", &forever).await];
    eventually("trials of both run", async || {
        let runs = async |sweep: &str| status(&stack, sweep).await["running"].as_u64().is_some_and(|count| count > 0);
        (runs(&one).await && runs(&other).await).then_some(())
    })
    .await;
    let both = eventually("both are known", async || {
        let tried = run(&stack, &["local", "reclaim"]).await;
        tried.notes.contains("several sweeps run").then_some(tried)
    })
    .await;
    let said = both.said(2, "name one: ");
    assert!(said.notes.contains(&one) && said.notes.contains(&other), "{}", said.notes);

    let kept = stack.subfolder("kept");
    let down =
        async |folder: &str, yes: &[&str]| run(&stack, &[&["local", "down", "--keep", folder][..], yes].concat()).await;
    down(kept.to_str().unwrap(), &[]).await.said(2, "give --yes");
    down("/proc/kept", &["--yes"]).await.said(1, "/proc/kept");
    down(kept.to_str().unwrap(), &["--yes"]).await.said(0, "what it had is kept");
    let explained = run(&stack, &["explain", &sweep, "0", "--kept", kept.to_str().unwrap()]).await.said(0, "");
    assert!(explained.out.contains("succeeded after 2 attempts"), "{}", explained.out);
    assert!(kept.join(format!("bucket/results/{sweep}/leaderboard.csv")).exists());
    stack.gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_stack_stays_as_it_is_and_says_so() {
    let code = tempfile::tempdir().unwrap();
    let stack = Stack::start_with("unchanged", &["--max-vcpus", "2"]).await;
    run(&stack, &["local", "up"]).await.said(0, "the local stack is running already; its trials run in ");
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    run(&stack, &["local", "up", "--code", digits.to_str().unwrap()]).await.said(0, "running already");
    let other = run(&stack, &["local", "up", "--code", code.path().to_str().unwrap(), "--max-vcpus", "2"]).await;
    let other = other.said(1, "the local stack is running already, and --code=");
    for part in
        ["changes nothing", "examples/digits --max-vcpus=2", "`spotsweep local down`", "spotsweep local up --code="]
    {
        assert!(other.notes.contains(part), "no {part:?}: {}", other.notes);
    }
    run(&stack, &["local", "up", "--max-vcpus", "5"]).await.said(1, "--max-vcpus=5 changes nothing");
    run(&stack, &["local", "up", "--max-vcpus", "2"]).await.said(0, "running already");
    stack.stop().await;
}

#[test]
fn without_a_stack_there_is_nothing_to_take() {
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(Binaries::build().get("spotsweep"))
        .args(["local", "reclaim"])
        .env("SPOTSWEEP_LOCAL", folder.path())
        .output()
        .unwrap();
    let notes = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code() == Some(1) && notes.contains("start one with `spotsweep local up`"), "{notes}");
}

#[test]
fn a_demo_runs_code_of_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("my code, with: signs");
    fs::create_dir(&code).unwrap();
    fs::write(code.join("mine.sh"), "echo val_accuracy=0.7; touch beside\n").unwrap();
    let sweep = "spotsweep: {workspace: off, command: [sh, mine.sh]}\ntrials: [{n: 1}]\n";
    let run = Demo::run(folder.path(), "a.yaml", sweep, &["--code", code.to_str().unwrap()]);
    assert_eq!(run.code(), Some(0), "{}", run.messages());
    assert_eq!(run.summary()["succeeded"], 1);
    assert!(!code.join("beside").exists());
}
