//! The files that a script has for itself on the local stack, as in a container on AWS: `/dltraining` and `/storage`
//! with these very paths, its home, its working folder, and `/tmp`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use spotsweep_needs::{met, programs};
use spotsweep_tests::local::{Binaries, Stack, call_json, eventually};

use super::by_hand::{run, settled, status, submit};

/// Prints what it finds, and leaves marks. The first attempt waits to be ended.
const SCRIPT: &str = r#"
index=$AWS_BATCH_JOB_ARRAY_INDEX
for mark in /dltraining/checkpoints/mark /storage/$index/mark ~/mark ./mark /tmp/spotsweep-mark; do
    [ ! -e $mark ] || echo "found $mark: $(cat $mark)"
    echo "$index $AWS_BATCH_JOB_ATTEMPT" > $mark || exit 1
done
echo '# changed' >> train.sh
ls -A
echo "$SPOTSWEEP_CHECKPOINTS $SPOTSWEEP_OUTPUT"
echo "val_accuracy=0.5"
[ $AWS_BATCH_JOB_ATTEMPT = 2 ] || sleep 600
"#;

const SWEEP: &str = "spotsweep: {command: [sh, train.sh]}\ntrials: [{n: 1}, {n: 2}]\n";

/// Makes a code folder for one test, with the script in it.
fn code(name: &str) -> PathBuf {
    let code = Binaries::build().target().join("local-tests").join(format!("{name}-code"));
    let _ = fs::remove_dir_all(&code);
    fs::create_dir_all(&code).unwrap();
    fs::write(code.join("train.sh"), SCRIPT).unwrap();
    code
}

async fn assert_own_files(options: &[&str], name: &str) {
    let before = ["/dltraining", "/storage"].map(|path| Path::new(path).exists());
    let code = code(name);
    let code_option = ["--code", code.to_str().unwrap(), "--max-vcpus", "2"];
    let stack = Stack::start_with(name, &[&code_option[..], options].concat()).await;
    let sweep = submit(&stack, "marks", SWEEP).await;
    let instances = eventually("both trials run", async || {
        let status = status(&stack, &sweep).await;
        let trials = status["each"].as_array()?.iter();
        let reported = trials.filter(|trial| trial["metrics"]["val_accuracy"]["last"] == 0.5);
        (reported.count() == 2).then_some(())?;
        Some(
            run(&stack, &["explain", &sweep, "0", "--json"]).await.said(0, "").out
                + &run(&stack, &["explain", &sweep, "1", "--json"]).await.said(0, "").out,
        )
    })
    .await;
    for instance in ids(&instances) {
        let endpoint = format!("{}/_emulator/reclaim", stack.emulator);
        call_json(&endpoint, "reclaim", &json!({ "instance": instance, "notice_seconds": 1.0 })).await;
    }
    let ended = settled(&stack, &sweep).await;
    assert_eq!(ended["succeeded"], 2, "{ended}");
    for index in ["0", "1"] {
        for attempt in ["1", "2"] {
            let log = run(&stack, &["logs", &sweep, index, "--attempt", attempt]).await.said(0, "").out;
            let found: Vec<&str> = log.lines().filter(|line| line.starts_with("found ")).collect();
            let of_workspace = ["/dltraining/checkpoints/mark", &format!("/storage/{index}/mark")]
                .map(|mark| format!("found {mark}: {index} 1"));
            let expected: &[String] = if attempt == "1" { &[] } else { &of_workspace };
            assert_eq!(found, expected, "trial {index} attempt {attempt}: {log}");
            assert!(log.contains("mark\ntrain.sh\n"), "{log}");
            assert!(log.contains(&format!("/dltraining/checkpoints /storage/{index}\n")), "{log}");
        }
        let to = stack.subfolder("pulled");
        run(&stack, &["pull", &sweep, index, "--to", to.to_str().unwrap()]).await.said(0, "");
        let pulled = to.join("trials").join(index).join("mark");
        assert_eq!(fs::read_to_string(&pulled).unwrap(), format!("{index} 2\n"), "{}", pulled.display());
    }
    assert_eq!(fs::read_to_string(code.join("train.sh")).unwrap(), SCRIPT, "the code stays as it was");
    assert_eq!(fs::read_dir(&code).unwrap().count(), 1, "the code stays as it was");
    assert_eq!(
        ["/dltraining", "/storage"].map(|path| Path::new(path).exists()),
        before,
        "nothing is made on the machine"
    );
    stack.stop().await;
    fs::remove_dir_all(code).unwrap();
}

/// Ids of instances in a text.
fn ids(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let mut ids: Vec<String> = words.filter(|word| word.starts_with("i-")).map(str::to_owned).collect();
    ids.sort();
    ids.dedup();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn each_trial_and_attempt_has_files_of_its_own() {
    assert_own_files(&[], "own-files").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_on_block_devices() {
    if met(spotsweep_needs::block_devices()) {
        assert_own_files(&["--block-devices"], "own-files-block").await;
    }
}

#[test]
fn where_trials_would_share_their_files_there_is_no_local_stack() {
    if !met(programs(&["unshare"])) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let none = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$0\" demo --binaries \"$1\"";
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", none])
        .arg(Binaries::build().get("spotsweep"))
        .arg(Binaries::build().folder())
        .env("SPOTSWEEP_LOCAL", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let notes = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{notes}");
    for part in ["lets no process make a mount namespace", "/dltraining", "Run as root", "user.max_user_namespaces"] {
        assert!(notes.contains(part), "no {part:?}: {notes}");
    }
}
