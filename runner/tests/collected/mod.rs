//! What the runner collects from a trial that leaves its model among its checkpoints.

use serde_json::{Value, json};

use crate::world::{Answer, World, granted, granted_workspace, kind, well};

/// Two checkpoints, of which the second one has two files, and nothing in the storage folder.
const SAVES: &str = r#"
    cd "$SPOTSWEEP_CHECKPOINTS"; mkdir epoch-1 epoch-2
    head -c 20000 /dev/urandom > epoch-1/model.bin; head -c 30000 /dev/urandom > epoch-2/model.bin; sleep 0.1
    head -c 20000 /dev/urandom > epoch-2/optimizer.bin
"#;

fn with_workspace(request: &str, nth: usize) -> Answer {
    if request == "claim" { granted_workspace(true) } else { kind(request, nth) }
}

fn of(checkpoints: &str, request: &str, nth: usize) -> Answer {
    match (request, granted()) {
        ("claim", Answer::Json(mut grant)) => {
            grant["granted"]["patterns"] = json!({ "checkpoints": checkpoints });
            Answer::Json(grant)
        }
        _ => kind(request, nth),
    }
}

fn all(request: &str, nth: usize) -> Answer {
    of("all", request, nth)
}

fn none(request: &str, nth: usize) -> Answer {
    of("none", request, nth)
}

/// The answers of `trial-claim`, the command's exit code, and the files in the bucket.
type Case<'a> = (fn(&str, usize) -> Answer, i32, &'a [&'a str]);

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_checkpoint_of_a_success_is_collected() {
    let (first, newest) = ("epoch-1/model.bin", ["epoch-2/model.bin", "epoch-2/optimizer.bin"]);
    let every = [first, newest[0], newest[1]];
    let cases: [Case; 5] =
        [(kind, 0, &newest), (with_workspace, 0, &newest), (all, 0, &every), (none, 0, &[]), (kind, 3, &[])];
    for (answers, code, expected) in cases {
        let world = World::start(answers, well).await;
        std::fs::create_dir(world.path("volume")).unwrap();
        world.attach(&world.path("volume"));
        let outcome = world.run(&[], &["sh", "-c", &format!("{SAVES}\nexit {code}")]).await;
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        let collected: Vec<_> = every
            .into_iter()
            .filter(|path| {
                let object = world.output(&format!("checkpoints/{path}"));
                let places =
                    ["volume/checkpoints", "dltraining/checkpoints"].map(|folder| world.path(folder).join(path));
                let saved = places.iter().find_map(|place| std::fs::read(place).ok());
                assert!(object.is_none() || object == saved, "{path} differs");
                object.is_some()
            })
            .collect();
        assert_eq!(collected, expected, "{}", outcome.stderr);
        let end = world.invocations("end").remove(0);
        let is_empty = end["outputs"]["without_files"] == Value::Bool(true);
        assert_eq!(is_empty, expected.is_empty(), "{end}");
    }
}
