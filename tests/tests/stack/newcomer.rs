//! The way of a newcomer: a folder that is not in git, packages, an own key and a team's, and data sets, interrupted twice.

use std::fs;
use std::path::Path;
use std::process::Command;

use aws_sdk_ssm::types::ParameterType;
use serde_json::json;
use spotsweep_tests::local::{Stack, eventually, s3};

use super::by_hand::{run, settled, status};
use super::secrets::{found_nowhere, set};

const SWEEP: &str = r#"
metric: {name: score, goal: maximize}
spotsweep:
  code: .
  setup:
  - python3 -m venv "$HOME/packages"
  - '"$HOME/packages/bin/pip" install --quiet --no-index --find-links wheels --requirement requirements.txt'
  secrets: {WANDB_API_KEY: WANDB_API_KEY, TEAM_KEY: /team/keys/hf}
  data:
    digits: s3://spotsweep-local/data/digits/
    words: {from: s3://spotsweep-local-data/words.tar, unpack: true}
  command: [sh, -c, '"$HOME/packages/bin/python" train.py']
trials: [{n: 1}]
"#;

const TRAIN: &str = r#"
import os, signal, time
from pathlib import Path
import model, reading

checkpoint = Path(os.environ["SPOTSWEEP_CHECKPOINTS"]) / "step"
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
print("begins at", step, "with", len(os.environ["WANDB_API_KEY"]), "characters of a key", os.environ["WANDB_API_KEY"])
print("the key of the team is", os.environ["TEAM_KEY"], "of", len(os.environ["TEAM_KEY"]))
while step < 8:
    step += 1
    part = checkpoint.with_name("part")
    part.write_text(str(step))
    part.rename(checkpoint)
    print(f"score={model.score(reading.digits(), reading.words()) + step / 100} step={step}", flush=True)
    time.sleep(1)
    if step == 3:
        os.kill(os.getppid() if model.is_direct() else model.runner(), signal.SIGTERM)
        time.sleep(60)
print("version", model.VERSION)
"#;

const MODEL: &str = r#"
import os, scores
VERSION = 1

def score(digits, words):
    return scores.of(digits) + len(words)

def is_direct():
    return "runner" in open(f"/proc/{os.getppid()}/comm").read()

def runner():
    return int(open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()[1])
"#;

const READING: &str = r#"
import os
from pathlib import Path

def digits():
    return [len(path.read_bytes()) for path in sorted(Path(os.environ["SPOTSWEEP_DATA_DIGITS"]).rglob("*.bin"))]

def words():
    return (Path("/data/words") / "list/words.txt").read_text().split()
"#;

/// Makes a wheel of one module.
const WHEEL: &str = r#"
import sys, zipfile
info = "scores-1.0.dist-info"
with zipfile.ZipFile(f"{sys.argv[1]}/scores-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("scores.py", "def of(sizes):\n    return sum(sizes)\n")
    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: scores\nVersion: 1.0\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
"#;

const KEY: &str = "wandb_first/key+of 40 characters, or so";
const TEAM_KEY: &str = "wandb_second/key+of the team";

fn write(folder: &Path, model: &str) {
    fs::create_dir_all(folder.join("wheels")).unwrap();
    for (name, text) in [("train.py", TRAIN), ("model.py", model), ("reading.py", READING), ("sweep.yaml", SWEEP)] {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::write(folder.join("requirements.txt"), "scores==1.0\n").unwrap();
    let made = Command::new("python3").args(["-c", WHEEL]).arg(folder.join("wheels")).status().unwrap();
    assert!(made.success());
}

async fn store_of_team(stack: &Stack) {
    let put = aws_sdk_ssm::Client::new(&stack.config()).put_parameter().name("/team/keys/hf").value(TEAM_KEY);
    put.r#type(ParameterType::SecureString).send().await.unwrap();
}

async fn upload(stack: &Stack) {
    let s3 = s3(&stack.config());
    for number in 0..10 {
        let put = s3.put_object().bucket(&stack.bucket).key(format!("data/digits/{}/{number}.bin", number % 3));
        put.body(vec![7; 100].into()).send().await.unwrap();
    }
    s3.create_bucket().bucket("spotsweep-local-data").send().await.unwrap();
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(8);
    header.set_mode(0o644);
    archive.append_data(&mut header, "list/words.txt", &b"one two\n"[..]).unwrap();
    let put = s3.put_object().bucket("spotsweep-local-data").key("words.tar");
    put.body(archive.into_inner().unwrap().into()).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_a_key_and_a_data_set_become_a_trained_model() {
    let stack = Stack::start_with("newcomer", &["--max-vcpus", "1"]).await;
    let folder = stack.subfolder("mine");
    write(&folder, MODEL);
    let file = folder.join("sweep.yaml");
    let file = file.to_str().unwrap();
    run(&stack, &["validate", file]).await.said(0, "");
    run(&stack, &["submit", file]).await.said(1, "no secret WANDB_API_KEY");
    set(&stack, "WANDB_API_KEY", KEY).await.said(0, "");
    run(&stack, &["submit", file]).await.said(1, "no parameter /team/keys/hf");
    store_of_team(&stack).await;
    run(&stack, &["submit", file]).await.said(1, "nothing is at s3://spotsweep-local/data/digits/");
    upload(&stack).await;
    let sweep = run(&stack, &["submit", file]).await.said(0, "submitted").out.trim().to_owned();
    // What was sent runs, whatever the folder has by then.
    write(&folder, &MODEL.replace("VERSION = 1", "VERSION = 2"));

    let saved = async || {
        let trial = status(&stack, &sweep).await["each"][0].clone();
        (trial["metrics"]["score"]["step"].as_f64() >= Some(5.0)).then_some(())
    };
    eventually("the second attempt trains", saved).await;
    run(&stack, &["local", "reclaim", &sweep, "--trial", "0"]).await.said(0, "");
    let ended = settled(&stack, &sweep).await;
    assert_eq!(ended["succeeded"], json!(1), "{ended}");
    let score = ended["each"][0]["metrics"]["score"]["last"].as_f64().unwrap();
    assert!((score - 1002.08).abs() < 1e-6, "{ended}");

    let mut logs = Vec::new();
    for attempt in ["1", "2", "3"] {
        logs.push(run(&stack, &["logs", &sweep, "0", "--attempt", attempt]).await.said(0, "").out);
    }
    let fetches = logs.iter().map(|log| log.matches("data set digits: fetched").count()).collect::<Vec<_>>();
    assert_eq!(fetches, [1, 0, 1], "only a new instance fetches: {logs:?}");
    assert!(logs[1].contains("data set digits: 1000 bytes are on this instance"), "{}", logs[1]);
    assert!(logs[2].contains("version 1") && logs[1].contains("begins at 3"), "{logs:?}");
    assert!(logs[0].contains("characters of a key ***"), "{}", logs[0]);
    assert!(logs[2].contains(&format!("the key of the team is *** of {}", TEAM_KEY.len())), "{}", logs[2]);
    let explained = run(&stack, &["explain", &sweep, "0", "--verbose"]).await.said(0, "").out;
    assert!(explained.contains("attempt 1 has fetched its data: "), "{explained}");
    found_nowhere(&stack, &sweep, &logs.concat()).await;

    let more = s3(&stack.config()).put_object().bucket(&stack.bucket).key("data/digits/more.bin");
    more.body(vec![7; 10].into()).send().await.unwrap();
    let retried = run(&stack, &["retry", &sweep, "0"]).await.said(0, "the data set digits has changed");
    assert!(!retried.notes.contains("data set words"), "{}", retried.notes);
    run(&stack, &["cancel", retried.out.trim()]).await.said(0, "");
    stack.stop().await;
}
