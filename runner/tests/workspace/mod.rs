//! Attempts with a workspace, on a volume that is a folder, as on the local stack.

mod waiting;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::{Value, json};

use crate::send;
use crate::world::{
    Answer, INTERRUPTION, Outcome, REBALANCE, World, generous, granted, in_seconds, kind, read, until, well,
};

/// Goes on from the newest checkpoint to the last epoch. Does not need any other file.
const TRAINING: &str = r#"
    cd "$SPOTSWEEP_CHECKPOINTS"
    epoch=$(ls | sed -n 's/^epoch-//p' | sort -n | tail -1)
    echo "resuming after ${epoch:-0} epochs"
    trap 'exit 143' TERM
    while [ "${epoch:-0}" -lt "$LAST" ]; do
        epoch=$((${epoch:-0} + 1))
        echo "the state after epoch $epoch" > beside.part
        mv beside.part "epoch-$epoch"
        touch -d "2020-01-01 00:00:$epoch" "epoch-$epoch"
        echo "epoch=$epoch acc=0.$epoch"
        echo "of attempt $AWS_BATCH_JOB_ATTEMPT" > "$SPOTSWEEP_STORAGE/7/epoch-$epoch"
        [ "$epoch" = "$WAIT_AT" ] && touch "$READY" && while :; do sleep 0.02; done
    done
    true
"#;

/// SHA-256 of the third checkpoint.
const DIGEST: &str = "650eabb7d06006f067ffdb08b3897f7789da8d4999cc8635f2a51d08460ca0f9";

impl World {
    /// Attaches a folder of that name as the volume.
    fn attach_folder(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
        self.attach(&self.path(name));
    }

    /// Runs the first attempt: it trains three epochs, and a notice interrupts it.
    async fn interrupted(&self) -> Outcome {
        self.attach_folder("volume-a");
        let ready = self.path("ready");
        let extra = [("LAST", "5"), ("WAIT_AT", "3"), ("READY", ready.to_str().unwrap())];
        let runner = self.spawn(&extra, &["sh", "-c", TRAINING]);
        until("three epochs", || ready.exists()).await;
        self.announce(INTERRUPTION, &in_seconds(120));
        self.outcome(runner).await
    }

    /// Runs the second attempt, with its own root, which trains to the end.
    async fn goes_on(&self) -> Outcome {
        self.announce(INTERRUPTION, "404 - Not Found");
        let root = self.path("root-b");
        let extra = [("LAST", "5"), ("SPOTSWEEP_ROOT", root.to_str().unwrap()), ("AWS_BATCH_JOB_ATTEMPT", "3")];
        self.run(&extra, &["sh", "-c", TRAINING]).await
    }

    fn kinds(&self) -> Vec<String> {
        let kind = |call: &Value| call["request"].as_str().unwrap().to_owned();
        let mut kinds: Vec<_> = self.seen(|seen| seen.invocations.iter().map(kind).collect());
        kinds.retain(|kind| kind != "report");
        kinds
    }
}

/// Copies as a snapshot and a new volume do: the same files with other inodes.
fn copy(from: &Path, to: &Path) {
    assert!(std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_seals_and_releases_and_the_next_attempt_goes_on_elsewhere() {
    let world = World::start(generous, well).await;
    let first = world.interrupted().await;
    assert_eq!(first.code, Some(75), "{}", first.stderr);
    assert!(first.stdout.starts_with("resuming after 0 epochs\n"), "{}", first.stdout);
    assert_eq!(world.kinds(), ["claim", "access", "mounted", "notice", "release"], "{}", first.stderr);
    let mounted = &world.invocations("mounted")[0];
    assert_eq!((&mounted["volume"], &mounted["found"]["newest"]), (&json!("vol-0abc"), &Value::Null));
    assert!(mounted["seconds"].as_f64().is_some());
    assert_eq!(world.invocations("notice")[0]["kind"], "interruption");
    let release = &world.invocations("release")[0];
    let bytes = 3 * "the state after epoch 1\n".len();
    assert_eq!(release["seal"], json!({"files": 3, "bytes": bytes, "newest": "epoch-3"}));
    assert_eq!(release["metrics"]["acc"]["last"], 0.3);
    assert!(
        world.invocations("report").iter().all(|report| report["sequence"].as_u64() < release["sequence"].as_u64())
    );
    let seal: Value = serde_json::from_str(&read(&world.path("volume-a/.spotsweep/seal.json"))).unwrap();
    assert_eq!(seal["final"], true);
    assert_eq!(seal["files"]["epoch-3"]["sha256"], DIGEST);
    assert!(!world.path("dltraining").is_symlink(), "unmounted");
    assert_eq!(world.output("train.log"), None, "the last attempt uploads");

    copy(&world.path("volume-a"), &world.path("volume-b"));
    world.attach(&world.path("volume-b"));
    // The state after the instance was lost in the middle of a line.
    let record = world.path("volume-b/.spotsweep/metrics.jsonl");
    fs::write(&record, read(&record) + "{\"time\": 17").unwrap();
    let second = world.goes_on().await;
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert!(second.stdout.starts_with("resuming after 3 epochs\nepoch=4 "), "{}", second.stdout);
    let found = &world.invocations("mounted")[1]["found"];
    assert_eq!(*found, json!({"formatted": false, "newest": "epoch-3", "torn": [], "missing": []}));
    assert_eq!(world.kinds()[5..], ["claim", "access", "mounted", "end"]);
    let log = String::from_utf8(world.output("train.log").unwrap()).unwrap();
    let epochs: Vec<_> = log.lines().filter(|line| line.starts_with("epoch=")).collect();
    assert_eq!(
        epochs,
        (1..6).map(|epoch| format!("epoch={epoch} acc=0.{epoch}")).collect::<Vec<_>>(),
        "the whole story"
    );
    let record = String::from_utf8(world.output("metrics.jsonl").unwrap()).unwrap();
    let steps = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["step"].as_f64());
    assert_eq!(steps.collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0].map(Some), "each epoch once");
    assert_eq!(world.output("epoch-1").unwrap(), b"of attempt 2\n", "outputs of the first attempt are not lost");
    assert_eq!(world.output("epoch-5").unwrap(), b"of attempt 3\n");
    assert!(!world.path("root-b/dltraining").is_symlink(), "unmounted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_checkpoint_is_put_aside_and_the_one_before_it_is_used() {
    let world = World::start(generous, well).await;
    assert_eq!(world.interrupted().await.code, Some(75));
    let newest = world.path("volume-a/checkpoints/epoch-3");
    fs::write(&newest, "the state aft").unwrap();
    // There may be a kept copy of it, which would replace it.
    let _ = fs::remove_dir_all(world.path("volume-a/.spotsweep/kept"));
    let second = world.goes_on().await;
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert!(second.stdout.starts_with("resuming after 2 epochs\nepoch=3 "), "{}", second.stdout);
    assert!(second.stderr.contains("checkpoint epoch-3 is torn"), "{}", second.stderr);
    let found = &world.invocations("mounted")[1]["found"];
    assert_eq!(*found, json!({"formatted": false, "newest": "epoch-2", "torn": ["epoch-3"], "missing": []}));
    assert_eq!(read(&world.path("volume-a/.spotsweep/torn/3/epoch-3")), "the state aft");
    assert_eq!(read(&newest), "the state after epoch 3\n", "trained again");
}

#[tokio::test(flavor = "multi_thread")]
async fn seals_go_along_with_the_reports() {
    let world = World::start(generous, well).await;
    world.attach_folder("volume");
    let script = r#"echo 1234 > "$SPOTSWEEP_CHECKPOINTS/only"; trap 'exit 3' TERM; while :; do sleep 0.05; done"#;
    let runner = world.spawn(&[], &["sh", "-c", script]);
    let sealed = json!({"files": 1, "bytes": 5, "newest": "only"});
    until("a sealed report", || world.invocations("report").iter().any(|report| report["seal"] == sealed)).await;
    send(&runner, Signal::TERM);
    let outcome = world.outcome(runner).await;
    assert_eq!(outcome.code, Some(75), "docker stop and ECS leave the trial to the next attempt: {}", outcome.stderr);
    assert_eq!(world.invocations("release")[0]["seal"], sealed);
}

/// A retry may go on from the workspace.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_command_leaves_is_sealed() {
    let world = World::start(generous, well).await;
    world.attach_folder("volume");
    let script = r#"echo 1234 > "$SPOTSWEEP_CHECKPOINTS/only"; echo 'ValueError: nan' >&2; exit 3"#;
    let outcome = world.run(&[], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert_eq!(world.kinds(), ["claim", "access", "mounted", "end"]);
    let seal: Value = serde_json::from_str(&read(&world.path("volume/.spotsweep/seal.json"))).unwrap();
    assert_eq!((&seal["final"], &seal["files"]["only"]["bytes"]), (&json!(true), &json!(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_marker_says_that_a_command_has_finished_within_its_grace() {
    let saves = r#"trap 'echo half > "$SPOTSWEEP_OUTPUT/model"; CODE' USR1"#;
    let cases = [
        (saves.replace("CODE", "exit 0"), None),
        (saves.replace("CODE", "exit 143"), None),
        ("trap '' USR1".to_owned(), None),
        (saves.replace("half", "whole").replace("CODE", r#"touch "$SPOTSWEEP_FINISHED"; exit 0"#), Some("whole\n")),
    ];
    for (reaction, collected) in cases {
        let world = World::start(generous, well).await;
        world.attach_folder("volume");
        let script = format!("{reaction}; touch $READY; while :; do sleep 0.02; done");
        let ready = world.path("ready");
        let extra = [
            ("READY", ready.to_str().unwrap()),
            ("SPOTSWEEP_STOP_SIGNAL", "USR1"),
            ("SPOTSWEEP_GRACE_SECONDS", "1"),
            ("SPOTSWEEP_UPLOAD_SECONDS", "600"),
        ];
        let runner = world.spawn(&extra, &["sh", "-c", &script]);
        until("the command runs", || ready.exists()).await;
        world.announce(INTERRUPTION, &in_seconds(120));
        let outcome = world.outcome(runner).await;
        assert_eq!(outcome.code, Some(if collected.is_some() { 0 } else { 75 }), "{reaction} {}", outcome.stderr);
        let last = if collected.is_some() { "end" } else { "release" };
        assert_eq!(world.kinds(), ["claim", "access", "mounted", "notice", last], "{reaction}");
        let model = world.output("model").map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(model.as_deref(), collected, "{reaction}: a half-trained model is no result");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_is_cut_to_the_time_that_is_left() {
    let world = World::start(generous, well).await;
    world.attach_folder("volume");
    let ready = world.path("ready");
    let extra = [("READY", ready.to_str().unwrap()), ("SPOTSWEEP_GRACE_SECONDS", "60")];
    let script = r#"trap '' TERM; setsid sleep 600 & echo $! > "$SPOTSWEEP_CHECKPOINTS/daemon"; touch $READY; while :; do sleep 0.02; done"#;
    let runner = world.spawn(&extra, &["sh", "-c", script]);
    until("the command runs", || ready.exists()).await;
    let noticed = Instant::now();
    world.announce(INTERRUPTION, &in_seconds(4));
    let outcome = world.outcome(runner).await;
    assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
    // Either the grace is over, or writing out other programs' data to the same disk takes the rest of it.
    assert!(outcome.stderr.contains(": killing the command"), "{}", outcome.stderr);
    assert!(noticed.elapsed() < Duration::from_secs(5), "{:?}", noticed.elapsed());
    assert_eq!(world.invocations("release")[0]["seal"]["newest"], "daemon");
    let daemon = read(&world.path("volume/checkpoints/daemon")).trim().parse().ok().and_then(Pid::from_raw);
    assert!(test_kill_process(daemon.unwrap()).is_err(), "what left its group is gone too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_attempt_leaves_the_workspace_in_order() {
    fn fenced(request: &str, nth: usize) -> Answer {
        match request {
            "report" => Answer::Json(json!({"refused": {"reason": {"stop": "fenced", "attempt": 1}}})),
            _ => generous(request, nth),
        }
    }
    let world = World::start(fenced, well).await;
    world.attach_folder("volume");
    let script = r#"trap 'echo saved > "$SPOTSWEEP_CHECKPOINTS/state"; exit 143' TERM; echo acc=1; while :; do sleep 0.02; done"#;
    let outcome = world.run(&[], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(77), "{}", outcome.stderr);
    assert_eq!(world.kinds(), ["claim", "access", "mounted"]);
    let seal: Value = serde_json::from_str(&read(&world.path("volume/.spotsweep/seal.json"))).unwrap();
    assert_eq!((&seal["final"], &seal["files"]["state"]["bytes"]), (&json!(true), &json!(6)));
    assert!(!world.path("dltraining").is_symlink());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_notice_stops_a_training_and_only_one_that_can_go_on() {
    let garbage = [
        "",
        "terminate",
        "null",
        "[]",
        "{\"action\": \"terminate\"}",
        "{\"action\": 7, \"time\": \"2017-09-18T08:22:00Z\"}",
        "{\"action\": \"terminate\", \"time\": \"soon\"}",
        "{\"action\": \"celebrate\", \"time\": \"2017-09-18T08:22:00Z\"}",
        "\u{0}\u{fffd}",
    ];
    let script = "touch $READY; while ! test -e $GO; do sleep 0.02; done";
    for workspace in [true, false] {
        let world = World::start(if workspace { generous } else { kind }, well).await;
        world.attach_folder("volume");
        let (ready, go) = (world.path("ready"), world.path("go"));
        let extra = [("READY", ready.to_str().unwrap()), ("GO", go.to_str().unwrap())];
        let runner = world.spawn(&extra, &["sh", "-c", script]);
        until("the command runs", || ready.exists()).await;
        for text in garbage {
            world.announce(INTERRUPTION, text);
            world.announce(REBALANCE, text);
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        assert_eq!(world.invocations("notice"), [] as [Value; 0]);
        world.announce(REBALANCE, "{\"noticeTime\": \"2020-10-27T08:22:00Z\"}");
        until("the recommendation is reported", || !world.invocations("notice").is_empty()).await;
        if !workspace {
            // Without a workspace nothing could be saved, so the training may finish in the remaining time.
            world.announce(INTERRUPTION, &in_seconds(120));
            until("the interruption is reported", || world.invocations("notice").len() > 1).await;
        }
        fs::write(&go, "").unwrap();
        let outcome = world.outcome(runner).await;
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let kinds: Vec<_> = world.invocations("notice").iter().map(|notice| notice["kind"].clone()).collect();
        assert_eq!(kinds, if workspace { vec!["rebalance"] } else { vec!["rebalance", "interruption"] });
        let ignored = outcome.stderr.matches("ignoring what the metadata service says").count();
        assert_eq!(ignored, 2, "each source complains once: {}", outcome.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_image_are_never_hidden_on_the_local_stack() {
    let world = World::start(generous, well).await;
    world.attach_folder("volume");
    fs::create_dir_all(world.path("dltraining/datasets/mine")).unwrap();
    let outcome = world.run(&[], &["true"]).await;
    assert_eq!(outcome.code, Some(70), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("dltraining is in the way of the workspace"), "{}", outcome.stderr);
    assert!(world.path("dltraining/datasets/mine").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_say_what_is_collected() {
    fn chosen(request: &str, nth: usize) -> Answer {
        match (request, granted()) {
            ("claim", Answer::Json(mut grant)) => {
                grant["granted"]["patterns"] = json!({"include": ["model/**", "*.csv"], "exclude": ["*.tmp"]});
                Answer::Json(grant)
            }
            _ => kind(request, nth),
        }
    }
    let world = World::start(chosen, well).await;
    let script = r#"cd "$SPOTSWEEP_OUTPUT"; mkdir -p model/a; for f in model/a/x model/y.tmp deep.csv other; do echo 1 > $f; done; echo acc=1"#;
    let outcome = world.run(&[], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let names: Vec<_> =
        world.seen(|seen| seen.objects.keys().map(|key| key.replace("results/s-1/trials/7/", "")).collect());
    assert_eq!(names, ["deep.csv", "metrics.jsonl", "model/a/x", "train.log"]);
}
