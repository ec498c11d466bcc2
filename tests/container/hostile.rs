//! A training that tries to make the runner, which is root, do what the training cannot do itself.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;
use spotsweep_protocol::secret::TOKEN_VARIABLE;

use crate::scene::{Scene, until};

const COMMAND: &[&str] = &["python3", "/hostile.py", "${args}"];
/// A text that only root may read.
const SECRET: &str = "rootsecret=424242\n";
/// A variable that only the runner has.
const OF_THE_RUNNER: &str = TOKEN_VARIABLE;

/// Makes a file system whose top folder belongs to the training, as on a volume on which a person has run `chown`. A
/// folder with the runner's name leads elsewhere.
fn adopted(scene: &Scene) {
    let folder = scene.file("adopted", "");
    fs::remove_file(&folder).unwrap();
    let own = folder.join(".spotsweep");
    fs::create_dir_all(&own).unwrap();
    for (name, target) in [("storage", "folder"), ("train.log", "file"), ("metrics.jsonl", "file2"), ("kept", "folder")]
    {
        symlink(Path::new("/probe").join(target), own.join(name)).unwrap();
    }
    fs::write(own.join("seal.json"), r#"{"attempt":1,"final":true,"files":{}}"#).unwrap();
    for path in [&folder, &own, &own.join("seal.json")] {
        chown(path, Some(1000), Some(1000)).unwrap();
    }
    let image = folder.with_extension("image");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let made =
        Command::new("mkfs.ext4").args(["-q", "-E", "root_owner=1000:1000", "-d"]).args([&folder, &image]).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    scene.volume.hold(&image);
}

/// Makes files of root that the training may name.
fn put_bait(scene: &Scene) {
    fs::set_permissions(scene.probe(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(scene.probe("folder")).unwrap();
    for (name, content, mode) in [("secret", SECRET, 0o600), ("file", "a\n", 0o644), ("file2", "line1\nline2", 0o644)] {
        fs::write(scene.probe(name), content).unwrap();
        fs::set_permissions(scene.probe(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn assert_bait_is_whole(scene: &Scene, log: &str) {
    let owner = |name: &str| fs::metadata(scene.probe(name)).unwrap().uid();
    for (name, content) in [("secret", SECRET), ("file", "a\n"), ("file2", "line1\nline2")] {
        assert_eq!(
            (fs::read_to_string(scene.probe(name)).unwrap().as_str(), owner(name)),
            (content, 0),
            "{name}: {log}"
        );
    }
    assert_eq!((fs::read_dir(scene.probe("folder")).unwrap().count(), owner("folder")), (0, 0), "{log}");
}

/// Asserts that neither the bucket nor the volume nor a request to the control plane contains what only root may read.
fn assert_nothing_leaks(scene: &Scene, log: &str) {
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for (key, bytes) in &scene.services.seen().objects {
        for text in [SECRET.trim(), OF_THE_RUNNER, "root:"] {
            assert!(!holds(bytes, text), "{key} has {text}: {log}");
        }
    }
    let volume = fs::read(scene.volume.written()).unwrap();
    assert!(!holds(&volume, SECRET.trim()), "the volume has it: {log}");
    let requests = format!("{:?}", scene.services.seen().invocations);
    assert!(!requests.contains("rootsecret") && !requests.contains("424242"), "{requests}");
}

/// Runs two attempts, of which the first is interrupted.
async fn is_harmless(user: &str, metrics: &str, finished: &str, is_adopted: bool) {
    let parameters = json!({ "metrics": metrics, "finished": finished, "seconds": 3 });
    let Some(mut scene) = Scene::make(&parameters) else { return };
    scene.command = COMMAND;
    scene.variables = vec![("SPOTSWEEP_USER", user.to_owned()), ("SPOTSWEEP_UPLOAD_SECONDS", "0.2".to_owned())];
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("container/hostile.py");
    put_bait(&scene);
    if is_adopted {
        adopted(&scene);
    }
    let first = scene.start(1, &[(&script, "/hostile.py")]);
    until("the first container waits", &first, || !scene.services.invocations("access").is_empty()).await;
    scene.volume.attach();
    until("a report", &first, || scene.has_sealed("step-1")).await;
    // During this time the seal runs ten times, and the attacks go on.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    scene.services.announce(Some(15));
    let first = first.outcome().await;
    assert_eq!(first.code, Some(75), "{}", first.stderr);
    if !user.is_empty() {
        assert!(first.stdout.contains("takes over: PermissionError"), "{}", first.stdout);
    }
    assert!(first.stdout.contains("sees a claim token: False"), "{}", first.stdout);
    assert_bait_is_whole(&scene, &first.stderr);
    scene.volume.detach().await.unwrap();

    scene.services.announce(None);
    scene.volume.attach();
    let second = scene.start(2, &[(&script, "/hostile.py")]).outcome().await;
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert!(second.stdout.contains("newest ['step-1']"), "{}", second.stdout);
    assert_bait_is_whole(&scene, &second.stderr);
    assert_nothing_leaks(&scene, &second.stderr);
    let end = &scene.services.invocations("end")[0];
    assert_eq!((&end["exit_code"], &end["metrics"]["score"]["last"]), (&json!(0), &json!(2.0)), "{end}");
    let bottom = format!("{}bottom", "deep/".repeat(40));
    assert_eq!(scene.services.output(&bottom).as_deref(), Some("x"), "what is the training's is collected");
    scene.assert_nothing_is_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_roots_is_read_written_or_given_away() {
    is_harmless("1000:1000", "pipe", "folder", true).await;
    is_harmless("1000:1000", "secret", "pipe", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_link_is_followed_for_a_training_that_is_root() {
    is_harmless("", "zero", "secret", false).await;
    is_harmless("", "environment", "zero", true).await;
}
