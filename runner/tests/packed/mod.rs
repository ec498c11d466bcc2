//! Training code from a packed folder in the bucket.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use axum::http::{Method, StatusCode};
use serde_json::json;
use spotsweep_code::{Selection, list, pack};

use crate::world::{Answer, World, generous, preparing, read, well};

fn packed(folder: &Path) -> (String, Vec<u8>) {
    let mut archive = Vec::new();
    let listing = list(folder, &Selection::default()).unwrap();
    let packed = pack(folder, &listing, &mut archive).unwrap();
    (packed.sha256, archive)
}

fn with_code(request: &str, nth: usize, sha256: &str) -> Answer {
    preparing(json!({"code": {"sha256": sha256}}), request, nth)
}

fn write(world: &World, train: &str) -> std::path::PathBuf {
    let folder = world.path("mine");
    fs::create_dir_all(folder.join("lib")).unwrap();
    fs::write(folder.join("lib/name.sh"), "NAME=mine\n").unwrap();
    fs::write(folder.join("train.sh"), train).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_has_the_folder_as_it_was_packed() {
    static SHA256: OnceLock<String> = OnceLock::new();
    fn granted(request: &str, nth: usize) -> Answer {
        with_code(request, nth, SHA256.get().unwrap())
    }
    let world = World::with_volume(granted).await;
    let folder = write(&world, ". ./lib/name.sh; echo \"$NAME in $(basename $PWD)\"; echo own > output; sh change.sh");
    let elsewhere = world.path("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let change = format!("echo changed > train.sh; rm -r lib; ln -s {} lib", elsewhere.display());
    fs::write(folder.join("change.sh"), change).unwrap();
    let (sha256, archive) = packed(&folder);
    SHA256.set(sha256.clone()).unwrap();
    world.put(&format!("code/{sha256}.tar.zst"), archive);

    let command = ["sh", "-c", r#"test "$PWD" -ef "$SPOTSWEEP_CODE" && sh train.sh"#];
    for attempt in ["root-a", "root-b"] {
        let root = world.path(attempt);
        let outcome = world.run(&[("SPOTSWEEP_ROOT", root.to_str().unwrap())], &command).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "mine in code\n"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(&sha256), "{}", outcome.stderr);
    }
    assert_eq!(read(&world.path("volume/.spotsweep/code/output")), "own\n", "what it has written there stays");
    assert!(fs::read_dir(&elsewhere).unwrap().next().is_none(), "nothing is written through its link");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_of_another_source_is_put_aside() {
    static SHA256: OnceLock<String> = OnceLock::new();
    fn granted(request: &str, nth: usize) -> Answer {
        with_code(request, nth, SHA256.get().unwrap())
    }
    let world = World::start(granted, well).await;
    let code = world.path("volume/.spotsweep/code");
    fs::create_dir_all(&code).unwrap();
    fs::write(code.join("old.sh"), "exit 9").unwrap();
    fs::write(world.path("volume/.spotsweep/code.json"), r#"{"git": "https://h/x", "ref": null, "commit": "a"}"#)
        .unwrap();
    world.attach(&world.path("volume"));
    let (sha256, archive) = packed(&write(&world, "test ! -e old.sh && echo new"));
    SHA256.set(sha256.clone()).unwrap();
    world.put(&format!("code/{sha256}.tar.zst"), archive);
    let outcome = world.run(&[], &["sh", "train.sh"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "new\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("put aside"), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_without_the_whole_folder() {
    static SHA256: OnceLock<String> = OnceLock::new();
    fn granted(request: &str, nth: usize) -> Answer {
        with_code(request, nth, SHA256.get().unwrap())
    }
    fn unsteady(_method: &Method, key: &str) -> StatusCode {
        if key.contains("code/") { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
    }
    let (sha256, archive) = {
        let world = World::start(generous, well).await;
        packed(&write(&world, "echo trained"))
    };
    SHA256.set(sha256.clone()).unwrap();
    let key = format!("code/{sha256}.tar.zst");
    let cut = archive[..archive.len() - 9].to_vec();
    let mut changed = archive.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    for (store, content, code, said) in [
        (well as fn(&Method, &str) -> StatusCode, None, 76, "could not be read"),
        (well, Some(cut), 76, "could not be unpacked"),
        (well, Some(changed), 76, "could not be unpacked"),
        (unsteady, Some(archive), 75, "did not arrive"),
    ] {
        let world = World::start(granted, store).await;
        fs::create_dir_all(world.path("volume")).unwrap();
        world.attach(&world.path("volume"));
        content.into_iter().for_each(|content| world.put(&key, content));
        let outcome = world.run(&[], &["sh", "train.sh"]).await;
        assert_eq!(outcome.code, Some(code), "{said}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{said}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{said}");
        assert!(!world.path("dltraining").is_symlink(), "unmounted");
    }
}
