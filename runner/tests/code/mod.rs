//! Training code from git, with local repositories and the real git.

mod private;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::json;

use crate::world::{Answer, World, generous, read, well};

/// The repository's URL and reference. It is static because the answers are plain functions, without state.
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

    // The branch gets a new commit. A hook that an attempt has left must not run with the runner's rights.
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

/// What an attempt leaves in its checkout for the next one. Each tries to run a program that leaves a trace and hangs.
const LEFT: [(&str, &str); 8] = [
    ("a hook", "cp $EVIL .git/hooks/post-checkout; cp $EVIL .git/hooks/reference-transaction"),
    ("a folder of hooks", "mkdir hooks; cp $EVIL hooks/post-checkout; git config core.hooksPath $PWD/hooks"),
    (
        "a filter",
        "git config filter.evil.smudge $EVIL; git config filter.evil.process $EVIL; \
                  echo '* filter=evil' | tee .git/info/attributes > .gitattributes; rm train.sh",
    ),
    ("fsmonitor", "git config core.fsmonitor $EVIL"),
    (
        "sshCommand",
        "git config core.sshCommand $EVIL; git config url.ssh://x/.insteadOf file://; rm -r .git/objects/??",
    ),
    (
        "an included file",
        "echo '[core]\n fsmonitor = '$EVIL > $SPOTSWEEP_CHECKPOINTS/more; \
                          git config include.path $SPOTSWEEP_CHECKPOINTS/more",
    ),
    (
        "a repository elsewhere",
        "cp -r .git $SPOTSWEEP_CHECKPOINTS/git; rm -r .git; ln -s $SPOTSWEEP_CHECKPOINTS/git .git; \
                                git config core.fsmonitor $EVIL; cp $EVIL .git/hooks/post-checkout",
    ),
    ("a damaged object", "for file in $(find .git/objects -type f); do chmod u+w $file; echo evil > $file; done"),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_an_attempt_leaves_in_its_checkout_is_run() {
    static URL: OnceLock<String> = OnceLock::new();
    fn by_branch(request: &str, nth: usize) -> Answer {
        answer(request, nth, URL.get().unwrap(), Some("main"))
    }
    let world = World::start(by_branch, well).await;
    let repository = world.path("repository");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    commit(&repository, "echo trained");
    URL.set(format!("file://{}", repository.display())).unwrap();
    let (evil, ran) = (world.path("evil"), world.path("ran"));
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\nexec sleep 1000\n", ran.display())).unwrap();
    fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let extra = [("EVIL", evil.to_str().unwrap())];
    for (what, leaves) in LEFT {
        let volume = world.path("volume");
        let _ = fs::remove_dir_all(&volume);
        fs::create_dir_all(&volume).unwrap();
        world.attach(&volume);
        let first = world.run(&extra, &["sh", "-c", &format!("set -e; {leaves}; echo own > mine")]).await;
        assert_eq!(first.code, Some(0), "{what}: {}", first.stderr);
        let _ = fs::remove_file(&ran);
        let runner = world.spawn(&extra, &["sh", "train.sh"]);
        let second = tokio::time::timeout(std::time::Duration::from_secs(30), world.outcome(runner)).await;
        let second = second.unwrap_or_else(|_elapsed| panic!("{what} hangs"));
        assert_eq!((second.code, second.stdout.as_str()), (Some(0), "trained\n"), "{what}: {}", second.stderr);
        assert!(!ran.exists(), "{what} has run");
        let aside = volume.join(".spotsweep/torn/code-1");
        assert_eq!(aside.exists(), what.contains("object") || what == "sshCommand", "{what}: {}", second.stderr);
        let mine = if aside.exists() { aside } else { volume.join(".spotsweep/code") };
        assert_eq!(read(&mine.join("mine")), "own\n", "{what}: what it has written is kept");
    }
}

/// A variable of the job contains a path at which an earlier attempt has left files.
#[tokio::test(flavor = "multi_thread")]
async fn git_is_led_to_nothing_on_the_workspace() {
    static URL: OnceLock<String> = OnceLock::new();
    fn by_branch(request: &str, nth: usize) -> Answer {
        answer(request, nth, URL.get().unwrap(), Some("main"))
    }
    let world = World::start(by_branch, well).await;
    let repository = world.path("repository");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    commit(&repository, "echo trained");
    URL.set(format!("file://{}", repository.display())).unwrap();
    let ran = world.path("ran");
    let volume = world.path("volume");
    fs::create_dir_all(volume.join("bin")).unwrap();
    let evil = format!("#!/bin/sh\ntouch {}\nexit 1\n", ran.display());
    for name in ["bin/git", "evil"] {
        fs::write(volume.join(name), &evil).unwrap();
        fs::set_permissions(volume.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let point = world.path("dltraining");
    fs::write(volume.join(".gitconfig"), format!("[core]\n\tfsmonitor = {}/evil\n", point.display())).unwrap();
    world.attach(&volume);
    let path = format!("{}/bin:{}", point.display(), std::env::var("PATH").unwrap());
    let extra = [("PATH", path.as_str()), ("HOME", point.to_str().unwrap())];
    let outcome = world.run(&extra, &["sh", "train.sh"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "trained\n"), "{}", outcome.stderr);
    assert!(!ran.exists());
}
