//! The files that a job can see on this machine, and those that it leaves there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use aws_sdk_batch::types::JobStatus;
use serde_json::json;
use spotsweep_emulator::container::HOME;
use spotsweep_needs::{met, programs, root};

use crate::rig::Rig;

const CONTAINER: &str = env!("CARGO_BIN_EXE_spotsweep-container");

/// Writes its own name to each place, waits for the other job, and prints what is there. A second attempt prints what
/// is there at its start.
const PLACES: &str = r#"
    places="/dltraining/mark /storage/0/mark $HOME/mark ./mark /tmp/spotsweep-wire-mark"
    for place in $places; do [ ! -e $place ] || echo "found $place"; done
    mkdir -p /dltraining /storage/0
    for place in $places; do echo $AWS_BATCH_JOB_ID > $place; done
    echo changed >> given
    until [ $(ls OTHERS | wc -l) -ge 2 ]; do touch OTHERS/$AWS_BATCH_JOB_ID; sleep 0.05; done
    cat $places given
    [ $AWS_BATCH_JOB_ATTEMPT = 2 ] || exit 3
"#;

#[tokio::test]
async fn each_attempt_has_folders_of_its_own() {
    let rig = Rig::new().await;
    let image = rig.folder.path().join("image");
    fs::write(image.join("given"), "given\n").unwrap();
    let before = ["/dltraining", "/storage", HOME].map(|path| Path::new(path).exists());
    // The folder is below the emulator's own folder, which jobs see unchanged.
    let others = rig.folder.path().join("work/others");
    fs::create_dir(&others).unwrap();
    let script = PLACES.replace("OTHERS", others.to_str().unwrap());
    let jobs = [rig.submit(&script, 2).await, rig.submit(&script, 2).await];
    for job in &jobs {
        let ended = rig.wait_for(job, JobStatus::Succeeded).await;
        assert_eq!(ended.attempts().len(), 2);
        for attempt in ended.attempts() {
            let log = rig.log(attempt.container().unwrap().log_stream_name().unwrap());
            assert_eq!(log, format!("{}given\nchanged\n", format!("{job}\n").repeat(5)));
        }
    }
    assert_eq!(["/dltraining", "/storage", HOME].map(|path| Path::new(path).exists()), before);
    assert!(!Path::new("/tmp/spotsweep-wire-mark").exists());
    assert_eq!(fs::read_to_string(image.join("given")).unwrap(), "given\n");
    assert_eq!(fs::read_dir(&image).unwrap().count(), 1, "the image stays as it was");
    rig.emulator.shutdown().await;
}

/// A folder that every user can reach, with the files of a container, for the user with this number.
struct Scene {
    folder: tempfile::TempDir,
    user: u32,
    image: String,
}

impl Scene {
    fn new(user: u32) -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap(), user, image: "image".into() };
        fs::set_permissions(scene.folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::copy(CONTAINER, scene.path("container")).unwrap();
        for name in ["work/root", "work/changes", "image"] {
            fs::create_dir_all(scene.path(name)).unwrap();
        }
        fs::write(scene.path("image/given"), "given\n").unwrap();
        for path in ["work", "work/root", "work/changes", "image", "image/given"] {
            std::os::unix::fs::chown(scene.path(path), Some(user), Some(user)).unwrap();
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a script in a container, with `before` in front of its words.
    fn run(&self, before: &[&str], script: &str) -> Output {
        let setup = json!({ "root": self.path("work/root"), "changes": self.path("work/changes"),
            "work_dir": self.path("work"), "image": self.folder.path().join(&self.image) });
        let mut words = before.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        words.extend([self.path("container").display().to_string(), setup.to_string()]);
        words.extend(["sh", "-c", script].map(str::to_owned));
        Command::new(&words[0]).args(&words[1..]).env("HOME", HOME).current_dir("/").output().unwrap()
    }
}

const USER: u32 = 43_210;
const SHOW: &str =
    "id -u; pwd; echo new >> given; cat given; mkdir /dltraining; echo x > ~/x; ls -d /dltraining ~/x; rm given; ls";

fn expected(scene: &Scene) -> String {
    let image = scene.path("image");
    format!("{}\n{}\ngiven\nnew\n{HOME}/x\n/dltraining\n", scene.user, image.display())
}

#[test]
fn without_privileges_it_is_the_same_in_a_user_namespace() {
    if !met(root().or_else(|| programs(&["setpriv", "unshare"]))) {
        return;
    }
    let id = USER.to_string();
    let as_user = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    let without_mounting = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all"];
    for (user, before) in [(0, &[][..]), (USER, &as_user), (0, &without_mounting)] {
        let scene = Scene::new(user);
        let before = if before.is_empty() { &["env"][..] } else { before };
        let run = scene.run(before, SHOW);
        let (out, notes) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert_eq!((out.as_ref(), notes.as_ref()), (expected(&scene).as_str(), ""), "{before:?}");
        assert_eq!(fs::read_to_string(scene.path("image/given")).unwrap(), "given\n", "{before:?}");
        assert!(scene.path("work/root/dltraining").is_dir(), "{before:?}");
        // The user who has made the folders can remove them.
        let remove = format!("rm -r {0}/root {0}/changes", scene.path("work").display());
        let removed = Command::new(before[0]).args(&before[1..]).args(["sh", "-c", &remove]).status().unwrap();
        assert!(removed.success(), "{before:?}");
    }
}

#[test]
fn the_image_may_hold_the_emulators_folder() {
    let mut scene = Scene::new(rustix::process::geteuid().as_raw());
    fs::create_dir_all(scene.path("work/volumes/v")).unwrap();
    scene.image = String::new();
    let volume = scene.path("work/volumes/v");
    let run = scene.run(&["env"], &format!("pwd; echo x > new; echo x > {}/new; ls", volume.display()));
    let here = scene.folder.path().canonicalize().unwrap();
    let shown = format!("{}\ncontainer\nimage\nnew\nwork\n", here.display());
    assert_eq!(String::from_utf8_lossy(&run.stdout), shown, "{}", String::from_utf8_lossy(&run.stderr));
    assert!(volume.join("new").exists(), "volumes are the machine's");
    assert!(!scene.path("new").exists(), "what is beside them is not");
}

#[test]
fn where_no_mount_namespace_is_allowed_it_says_so() {
    if !met(programs(&["unshare"])) {
        return;
    }
    let scene = Scene::new(rustix::process::geteuid().as_raw());
    let none = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$0\" \"$@\"";
    let run = scene.run(&["unshare", "--user", "--map-root-user", "sh", "-c", none], "true");
    let notes = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(125), "{notes}");
    assert!(notes.contains("cannot make a mount namespace: No space left on device"), "{notes}");
}
