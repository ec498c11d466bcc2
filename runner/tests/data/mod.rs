//! Data sets: fetched once for an instance, seen by the trainings whose plan names them, and by no other.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use spotsweep_needs::{met, programs, root};
use spotsweep_protocol::words::hexadecimal;
use tokio::time::sleep;

use crate::world::{Answer, Outcome, World, preparing};

const OBJECTS: [(&str, &[u8]); 3] = [("labels.csv", b"cat,1\n"), ("train/a.bin", &[7; 300_000]), ("train/empty", b"")];

/// The listing of [`OBJECTS`], as `sweep-upload` writes it. `etag` is the first object's; the server has "e" for all.
fn listing(etag: &str) -> String {
    listing_of(&OBJECTS, etag)
}

fn listing_of(objects: &[(&str, &[u8])], etag: &str) -> String {
    let line = |(number, (key, bytes)): (usize, &(&str, &[u8]))| {
        let etag = format!("\"{}\"", if number == 0 { etag } else { "e" });
        json!({"key": key, "size": bytes.len(), "etag": etag}).to_string() + "\n"
    };
    objects.iter().enumerate().map(line).collect()
}

fn set(name: &str, etag: &str) -> Value {
    set_of(&OBJECTS, (name, etag))
}

fn set_of(objects: &[(&str, &[u8])], (name, etag): (&str, &str)) -> Value {
    let sha256 = hexadecimal(Sha256::digest(listing_of(objects, etag)));
    let bytes: usize = objects.iter().map(|(_, bytes)| bytes.len()).sum();
    json!({"name": name, "bucket": "b", "prefix": "data/set/", "sha256": sha256, "objects": objects.len(), "bytes": bytes})
}

fn grants_both(request: &str, nth: usize) -> Answer {
    preparing(json!({"data": [set("my-set", "e"), set("same", "e")]}), request, nth)
}

fn grants_some(request: &str, nth: usize) -> Answer {
    preparing(json!({"data": [set_of(&OBJECTS[1..], ("some", "e"))]}), request, nth)
}

fn grants_changed(request: &str, nth: usize) -> Answer {
    preparing(json!({"data": [set("changed", "old")]}), request, nth)
}

async fn world(invoke: fn(&str, usize) -> Answer) -> World {
    let world = World::with_volume(invoke).await;
    for (key, bytes) in OBJECTS {
        world.put(&format!("data/set/{key}"), bytes.to_vec());
    }
    world.put("data/other", b"of another sweep".to_vec());
    for (name, etag) in [("my-set", "e"), ("same", "e"), ("changed", "old")] {
        world.put(&format!("results/s-1/data/{name}.jsonl"), listing(etag).into_bytes());
    }
    let some = listing_of(&OBJECTS[1..], "e");
    world.put("results/s-1/data/some.jsonl", some.into_bytes());
    fs::create_dir(world.path("cache")).unwrap();
    world
}

/// A mount namespace of its own stands for the container.
async fn run(world: &World, cache: &Path, script: &str) -> Outcome {
    let variables = [("SPOTSWEEP_DATA", cache.to_str().unwrap())];
    let own = ["--mount", env!("CARGO_BIN_EXE_spotsweep-runner")];
    let mut runner = world.runner("unshare", &own, &variables, &["sh", "-c", script, cache.to_str().unwrap()]);
    world.outcome(runner.spawn().unwrap()).await
}

fn requests(world: &World) -> usize {
    world.seen(|seen| seen.requests.iter().filter(|request| request.contains(" data/")).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_set_is_fetched_once_and_read_only() {
    if !met(root().or_else(|| programs(&["unshare"]))) {
        return;
    }
    // Two trials on one instance.
    let (world, other) = (world(grants_both).await, world(grants_both).await);
    let cache = &world.path("cache");
    fs::create_dir_all(cache.join("of-others/tree")).unwrap();
    let script = r#"
        set -e
        test "$(cat "$SPOTSWEEP_DATA_MY_SET/labels.csv")" = cat,1
        test "$(wc -c < "$SPOTSWEEP_DATA_MY_SET/train/a.bin")" = 300000
        test -e "$SPOTSWEEP_DATA_SAME/train/empty"
        if touch "$SPOTSWEEP_DATA_MY_SET/new" 2> /dev/null; then exit 3; fi
        if ls "$0" | grep -q .; then exit 4; fi
        echo "at $SPOTSWEEP_DATA_MY_SET"
    "#;
    let outcomes: [Outcome; 2] = tokio::join!(run(&world, cache, script), run(&other, cache, script)).into();
    for (outcome, of) in outcomes.into_iter().zip([&world, &other]) {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let at = format!("at {}", of.path("data/my-set").display());
        assert!(outcome.stdout.contains(&at), "{} {}", outcome.stdout, outcome.stderr);
    }
    // The empty object needs no request.
    assert_eq!(requests(&world) + requests(&other), 2, "two names of the same bytes, and two trials");
    let fetched = [world.invocations("fetching"), other.invocations("fetching")].concat();
    assert!(fetched.iter().any(|report| report["fetch"]["bytes"] == json!(300_006)), "{fetched:?}");
    let began = Instant::now();
    let third = run(&world, cache, "echo score=1").await;
    assert_eq!((third.code, requests(&world) + requests(&other)), (Some(0), 2), "{}", third.stderr);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(third.stderr.contains("are on this instance"), "{}", third.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_arrives_damaged_is_fetched_again() {
    if !met(root().or_else(|| programs(&["unshare"]))) {
        return;
    }
    let world = world(grants_both).await;
    world.damage("data/set/labels.csv", "cUDnvmv6zx4=");
    let script = r#"test "$(cat "$SPOTSWEEP_DATA_MY_SET/labels.csv")" = cat,1"#;
    let outcome = run(&world, &world.path("cache"), script).await;
    assert_eq!((outcome.code, requests(&world)), (Some(0), 3), "{}", outcome.stderr);
}

/// The disk has room for one of two data sets.
#[tokio::test(flavor = "multi_thread")]
async fn a_trial_waits_for_room_that_anothers_data_takes_up() {
    if !met(root().or_else(|| programs(&["unshare"]))) {
        return;
    }
    let (first, second) = (world(grants_both).await, world(grants_some).await);
    let cache = first.path("cache");
    mount("small", &cache, "tmpfs", MountFlags::empty(), Some(c"size=512k")).unwrap();
    let (holds, stop) = (first.path("holds"), first.path("stop"));
    let script =
        format!("touch {}; until test -e {}; do sleep 0.1; done; echo score=1", holds.display(), stop.display());
    let waiting = async {
        while !holds.exists() {
            sleep(Duration::from_millis(50)).await;
        }
        let frees = async {
            sleep(Duration::from_secs(3)).await;
            fs::write(&stop, "").unwrap();
        };
        tokio::join!(run(&second, &cache, "echo score=2"), frees).0
    };
    let outcomes: [Outcome; 2] = tokio::join!(run(&first, &cache, &script), waiting).into();
    unmount(&cache, UnmountFlags::DETACH).unwrap();
    for outcome in &outcomes {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    assert!(outcomes[1].stderr.contains("waits for room"), "{}", outcomes[1].stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_data_a_trial_fails_and_trains_nothing() {
    if !met(root().or_else(|| programs(&["unshare"]))) {
        return;
    }
    let touch = |world: &World| format!("touch {}", world.path("trained").display());
    let of = world(grants_changed).await;
    let outcome = run(&of, &of.path("cache"), &touch(&of)).await;
    assert_fails(&of, &outcome, "`labels.csv` has changed since the sweep was accepted");

    let of = world(grants_both).await;
    of.take("data/set/train/a.bin");
    let outcome = run(&of, &of.path("cache"), &touch(&of)).await;
    assert_fails(&of, &outcome, "`train/a.bin` cannot be read");

    let of = world(grants_both).await;
    let outcome = of.run(&[], &["touch", of.path("trained").to_str().unwrap()]).await;
    assert_fails(&of, &outcome, "mounts no folder for data sets");
}

fn assert_fails(world: &World, outcome: &Outcome, reason: &str) {
    assert_eq!(outcome.code, Some(76), "{}", outcome.stderr);
    assert!(!Path::exists(&world.path("trained")));
    let end = world.invocations("end").pop().unwrap();
    assert!(outcome.stderr.contains(reason), "{}", outcome.stderr);
    assert!(end["error"].as_str().unwrap().contains(reason), "{end}");
}
