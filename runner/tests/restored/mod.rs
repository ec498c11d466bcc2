//! A trial that starts from the collected checkpoint of another trial.

use std::fs;
use std::path::Path;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, INTERRUPTION, Invoke, World, granted, granted_workspace, in_seconds, kind, read, well};

const OTHER: &str = "results/old-0123456789ab/trials/3/";

/// Saves two epochs of several files, a pointer and a link. Two of the files contain metrics.
const SAVES: &str = r#"
    cd "$SPOTSWEEP_CHECKPOINTS"
    for e in 1 2; do
        mkdir epoch-$e
        # Random bytes alone may begin as a format does.
        (echo model; head -c 19994 /dev/urandom) > epoch-$e/model.bin
        (echo state; head -c 29994 /dev/urandom) > epoch-$e/optimizer.bin
        sleep 0.1
    done
    echo epoch-2 > latest; ln -s epoch-2 last; printf 'epoch,val_acc\n2,0.875\n' > epoch-2/metrics.csv
    echo '{"log_history": [{"epoch": 2.0, "eval_f1": 0.8125, "step": 8}]}' > epoch-2/trainer_state.json
    echo "epoch=2 val_acc=0.875"
"#;

/// Saves another epoch, and removes the previous one.
const TRAINS_ON: &str = r#"
    set -e; cd "$SPOTSWEEP_CHECKPOINTS"
    cp -r epoch-2 epoch-3; echo newer > epoch-3/model.bin; rm -r epoch-2; sleep 60
"#;

fn restoring(mut grant: Value) -> Answer {
    grant["granted"]["restores"] = json!({ "bucket": "b", "prefix": OTHER });
    Answer::Json(grant)
}

fn with_workspace(request: &str, nth: usize) -> Answer {
    match (request, granted_workspace(true)) {
        ("claim", Answer::Json(grant)) => restoring(grant),
        _ => kind(request, nth),
    }
}

fn without_workspace(request: &str, nth: usize) -> Answer {
    match (request, granted()) {
        ("claim", Answer::Json(grant)) => restoring(grant),
        _ => kind(request, nth),
    }
}

fn breaks(_method: &Method, key: &str) -> StatusCode {
    if key.ends_with("optimizer.bin") { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

fn with_volume(world: &World) {
    fs::create_dir(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));
}

/// The objects that a successful trial has left in the bucket, by the ends of their keys.
async fn collected() -> Vec<(String, Vec<u8>)> {
    let world = World::start(kind, well).await;
    let outcome = world.run(&[], &["sh", "-c", SAVES]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let own = "results/s-1/trials/7/";
    let all: Vec<_> = world.seen(|seen| seen.objects.clone()).into_iter().collect();
    all.into_iter().filter_map(|(key, bytes)| Some((key.strip_prefix(own)?.to_owned(), bytes))).collect()
}

fn put(world: &World, objects: &[(String, Vec<u8>)]) {
    objects.iter().for_each(|(name, bytes)| world.put(&format!("{OTHER}{name}"), bytes.clone()));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_starts_from_what_was_collected_of_another() {
    let objects = collected().await;
    let ways: [(Invoke, &str); 2] = [(with_workspace, "volume"), (without_workspace, "dltraining")];
    for (answers, folder) in ways {
        let world = World::start(answers, well).await;
        with_volume(&world);
        put(&world, &objects);
        // The log in a checkpoint also contains the entries of earlier checkpoints.
        let command = r#"
            cd "$SPOTSWEEP_CHECKPOINTS"; cat latest; ls; ls last/; echo "epoch=3 val_acc=0.25"; mkdir epoch-3
            log='{"epoch": 2.0, "eval_f1": 0.8125, "step": 8}, {"epoch": 3.0, "eval_f1": 0.5, "step": 12}'
            echo "{\"log_history\": [$log]}" > epoch-3/trainer_state.json
        "#;
        let outcome = world.run(&[], &["sh", "-c", command]).await;
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let files = "metrics.csv\nmodel.bin\noptimizer.bin\ntrainer_state.json\n";
        assert_eq!(outcome.stdout, format!("epoch-2\nepoch-2\nlast\nlatest\n{files}epoch=3 val_acc=0.25\n"));
        let checkpoints = world.path(folder).join("checkpoints");
        for (name, bytes) in objects.iter().filter(|(name, _)| name.starts_with("checkpoints/")) {
            assert_eq!(&fs::read(world.path(folder).join(name)).unwrap(), bytes, "{name}");
        }
        assert_eq!(names(&checkpoints), ["epoch-2", "epoch-3", "last", "latest"]);
        // None of the values is of the trial that the checkpoint comes from.
        let metrics = &world.invocations("end")[0]["metrics"];
        let [val_acc, eval_f1] = ["val_acc", "eval_f1"].map(|name| [&metrics[name]["last"], &metrics[name]["max"]]);
        assert_eq!((val_acc, eval_f1), ([&json!(0.25); 2], [&json!(0.5); 2]), "{metrics}");
        let record = String::from_utf8(world.output("metrics.jsonl").unwrap()).unwrap();
        assert!(!record.contains("0.875") && !record.contains("0.8125"), "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_attempt_keeps_its_own_checkpoints() {
    let world = World::start(with_workspace, well).await;
    with_volume(&world);
    put(&world, &collected().await);
    // The first attempt trains on, and is interrupted.
    let first = world.spawn(&[("AWS_BATCH_JOB_ATTEMPT", "1")], &["sh", "-c", TRAINS_ON]);
    let saved = world.path("volume/checkpoints/epoch-3/model.bin");
    // Before it saves, the runner may wait for the metadata services and read files for more than a minute.
    let first = world.until_done(first, "it has saved", || read(&saved) == "newer\n").await;
    world.announce(INTERRUPTION, &in_seconds(5));
    let outcome = world.outcome(first).await;
    assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);

    let second = World::start(with_workspace, well).await;
    second.attach(&world.path("volume"));
    let outcome = second.run(&[], &["sh", "-c", r#"cat "$SPOTSWEEP_CHECKPOINTS"/epoch-3/model.bin"#]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "newer\n"), "{}", outcome.stderr);
    assert!(
        second.seen(|seen| seen.requests.iter().all(|request| !request.contains(OTHER))),
        "nothing is fetched again"
    );
}

/// How the collected objects are changed, how S3 answers, the job's exit code, and the message.
type Case = (fn(&World), fn(&Method, &str) -> StatusCode, i32, &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_not_whole_is_not_restored() {
    let objects = collected().await;
    let cases: [Case; 4] = [
        (
            |world| drop(world.take(&format!("{OTHER}collected.json"))),
            well,
            76,
            "trials/3/collected.json could not be read",
        ),
        (
            |world| drop(world.take(&format!("{OTHER}checkpoints/epoch-2/model.bin"))),
            well,
            76,
            "epoch-2/model.bin could not",
        ),
        (
            |world| world.put(&format!("{OTHER}checkpoints/epoch-2/model.bin"), b"short".to_vec()),
            well,
            76,
            "epoch-2/model.bin is not what was collected: it has 5 bytes, and had 20000 bytes",
        ),
        // S3 may answer the next attempt.
        (|_world| (), breaks, 75, "optimizer.bin could not be read"),
    ];
    for (change, store, code, expected) in cases {
        let world = World::start(with_workspace, store).await;
        with_volume(&world);
        put(&world, &objects);
        change(&world);
        let outcome = world.run(&[], &["sh", "-c", "echo trained"]).await;
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains(expected) && outcome.stderr.contains("s3://b/results/old-"),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("`checkpoints_of`"), "{}", outcome.stderr);
        assert!(!outcome.stdout.contains("trained"), "{}", outcome.stdout);
        assert_eq!(names(&world.path("volume/checkpoints")), Vec::<String>::new(), "{expected}");
    }
}
