//! Unfit instances: the attempt claims its trial, reports the defect, and leaves.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::world::{Answer, World, kind, well};

/// The first claim waits while the instance is drained; the next one is answered `unavailable`.
fn drained(request: &str, nth: usize) -> Answer {
    match (request, nth) {
        ("claim", 0) => Answer::Json(json!({"waiting": {"reason": "not placed", "retry_after_ms": 50}})),
        ("claim", _) => Answer::Json(json!({"unavailable": {"reason": "as you say"}})),
        (request, nth) => kind(request, nth),
    }
}

/// A PATH in which `nvidia-smi` is this script.
fn path_with(world: &World, script: &str) -> String {
    let program = world.path("bin/nvidia-smi");
    std::fs::create_dir_all(world.path("bin")).unwrap();
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_leaves_an_instance_whose_gpu_does_not_answer() {
    let lost = "echo 'Unable to determine the device handle for GPU 0000:00:1E.0: GPU is lost' >&2; exit 15";
    // How trial-claim answers, and how many claims there are. The last answer is of a version that does not have
    // defects.
    for (invoke, claims) in [(drained as crate::world::Invoke, 2), (kind, 1)] {
        let world = World::start(invoke, well).await;
        let path = path_with(&world, lost);
        let extra = [("PATH", path.as_str()), ("SPOTSWEEP_GPUS", "1")];
        let outcome = world.run(&extra, &["touch", world.path("started").to_str().unwrap()]).await;
        assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("this instance cannot train"), "{}", outcome.stderr);
        assert!(!world.path("started").exists());
        let asked = world.invocations("claim");
        assert_eq!(asked.len(), claims);
        for claim in asked {
            let defect = claim["defect"].as_str().unwrap();
            assert!(defect.starts_with("0 of 1 GPUs answer: Unable to determine the device handle"), "{defect}");
        }
        assert!(world.invocations("release").is_empty() && world.invocations("end").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_answers_is_trained_on_and_none_is_looked_for_unasked() {
    let world = World::start(kind, well).await;
    let (good, broken) = ("echo 'GPU-5a2c, 15360, 3'", "exit 9");
    for (script, asked) in [(good, "1"), (broken, "0"), (broken, "")] {
        let path = path_with(&world, script);
        let outcome = world.run(&[("PATH", path.as_str()), ("SPOTSWEEP_GPUS", asked)], &["true"]).await;
        assert_eq!(outcome.code, Some(0), "{script} {asked}: {}", outcome.stderr);
    }
    assert!(world.invocations("claim").iter().all(|claim| claim.get("defect").is_none()));
}

/// The control plane waits for other trainings, to see whether the instance or the training caused a failure at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_training_that_fails_because_of_its_instance_is_left_to_another_one() {
    fn blamed(request: &str, nth: usize) -> Answer {
        match (request, nth) {
            ("end", 0 | 1) => Answer::Json(json!({"waiting": {"reason": "not known yet", "retry_after_ms": 50}})),
            ("end", _) => Answer::Json(json!({"unavailable": {"reason": "3 attempts failed at once there"}})),
            (request, nth) => kind(request, nth),
        }
    }
    let world = World::start(blamed, well).await;
    let outcome = world.run(&[], &["sh", "-c", "exit 3"]).await;
    assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("leaving for another one: 3 attempts failed"), "{}", outcome.stderr);
    let mut ends = world.invocations("end");
    let numbers = ends.iter_mut().map(|end| end.as_object_mut().unwrap().remove("sequence").unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3]);
    assert!(ends.iter().all(|end| end == &ends[0]), "the same request each time: {ends:?}");
    assert_eq!(ends[0]["exit_code"], 3);
}

/// AWS refuses requests that are signed by a wrong clock. The SDK signs them once more, with the date of the refusal.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_wrong_is_no_defect() {
    fn an_hour_ahead(request: &str, nth: usize) -> Answer {
        if (request, nth) == ("claim", 0) { Answer::Refused { ahead_seconds: 3600 } } else { kind(request, nth) }
    }
    let world = World::start(an_hour_ahead, well).await;
    let outcome = world.run(&[], &["true"]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let signed: Vec<jiff::civil::DateTime> = world.seen(|seen| {
        seen.signed_at.iter().map(|at| jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", at).unwrap()).collect()
    });
    let moved = signed[1].duration_since(signed[0]).as_secs();
    assert!((3590..3700).contains(&moved), "{moved} s later");
}
