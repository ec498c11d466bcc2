//! Training code from git: local repositories, the real git.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::json;

use crate::world::{Answer, World, generous, read, well};

/// The repository's URL and reference, for the answers, which cannot hold anything themselves.
static REPOSITORY: OnceLock<String> = OnceLock::new();

fn with_code(mut grant: serde_json::Value, git: &str, reference: Option<&str>) -> Answer {
    grant["granted"]["code"] = json!({"git": git, "ref": reference});
    Answer::Json(grant)
}

fn answer(request: &str, nth: usize, git: &str, reference: Option<&str>) -> Answer {
    match (request, generous(request, nth)) {
        ("claim", Answer::Json(grant)) => with_code(grant, git, reference),
        (_, other) => other,
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(folder: &Path, content: &str) -> String {
    fs::write(folder.join("train.sh"), content).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", "change"]);
    git(folder, &["rev-parse", "HEAD"])
}

#[tokio::test(flavor = "multi_thread")]
async fn all_attempts_of_a_trial_run_one_commit() {
    fn by_branch(request: &str, nth: usize) -> Answer {
        answer(request, nth, REPOSITORY.get().unwrap(), Some("main"))
    }
    let world = World::start(by_branch, well).await;
    let repository = world.path("repository");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    let first = commit(&repository, "echo \"one $1 in $(basename $PWD)\"; echo changed > train.sh; echo own > output");
    REPOSITORY.set(format!("file://{}", repository.display())).unwrap();
    fs::create_dir_all(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));

    let script = r#"test "$PWD" -ef "$SPOTSWEEP_CODE" && sh train.sh "$@""#;
    let outcome = world.run(&[], &["sh", "-c", script, "sh", "${args}"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "one --lr=0.1 in code\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("at {first}")), "{}", outcome.stderr);

    // The branch moves on; a hook that an attempt has left must not run with the runner's rights.
    commit(&repository, "echo two");
    let root = world.path("root-b");
    let outcome = world.run(&[("SPOTSWEEP_ROOT", root.to_str().unwrap())], &["sh", "-c", script, "sh", "again"]).await;
    assert_eq!(outcome.stdout, "one again in code\n", "{}", outcome.stderr);
    assert_eq!(read(&world.path("volume/.spotsweep/code/output")), "own\n", "what it has written there stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_every_kind_are_found_and_wrong_ones_named() {
    static REFERENCE: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);
    static URL: OnceLock<String> = OnceLock::new();
    fn by_reference(request: &str, nth: usize) -> Answer {
        let reference = REFERENCE.lock().unwrap().clone();
        match reference.as_deref().and_then(|text| text.strip_prefix("url ")) {
            Some(url) => answer(request, nth, url, None),
            None => answer(request, nth, URL.get().unwrap(), reference.as_deref()),
        }
    }
    let world = World::start(by_reference, well).await;
    let repository = world.path("repository");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    let first = commit(&repository, "echo one");
    git(&repository, &["tag", "-a", "v1", "-m", "tag"]);
    commit(&repository, "echo two");
    git(&repository, &["checkout", "--quiet", "-b", "side/branch"]);
    commit(&repository, "echo three");
    git(&repository, &["checkout", "--quiet", "main"]);
    URL.set(format!("file://{}", repository.display())).unwrap();

    let short = first[..9].to_owned();
    let (mine, gone) = ("url -uevil", "url file:///nowhere/ana:secret@x");
    let cases: [(Option<&str>, i32, &str); 9] = [
        (None, 0, "two\n"),
        (Some("main"), 0, "two\n"),
        (Some("side/branch"), 0, "three\n"),
        (Some("v1"), 0, "one\n"),
        (Some(&first), 0, "one\n"),
        (Some(&short), 0, "one\n"),
        (Some("no-such-branch"), 76, "git rev-parse failed for file://"),
        (Some(mine), 76, "may start with a dash"),
        (Some(gone), 76, "git fetch failed for file:///nowhere"),
    ];
    for (reference, code, expected) in cases {
        *REFERENCE.lock().unwrap() = reference.map(str::to_owned);
        let volume = world.path("volume");
        let _ = fs::remove_dir_all(&volume);
        fs::create_dir_all(&volume).unwrap();
        world.attach(&volume);
        let outcome = world.run(&[], &["sh", "train.sh"]).await;
        assert_eq!(outcome.code, Some(code), "{reference:?} {}", outcome.stderr);
        let said = if code == 0 { &outcome.stdout } else { &outcome.stderr };
        assert!(said.contains(expected), "{reference:?} {said}");
        assert!(!world.path("dltraining").is_symlink(), "unmounted");
    }

    *REFERENCE.lock().unwrap() = None;
    fs::remove_dir_all(world.path("volume")).unwrap();
    fs::create_dir_all(world.path("volume")).unwrap();
    fs::create_dir_all(world.path("bin")).unwrap();
    let outcome = world.run(&[("PATH", world.path("bin").to_str().unwrap())], &["/bin/true"]).await;
    assert_eq!(outcome.code, Some(76), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("the image has no git: add it"), "{}", outcome.stderr);
}
