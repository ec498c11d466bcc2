//! Secrets: stored by the command, read by attempts, rotated, and found nowhere else.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use aws_sdk_dynamodb::Client as Table;
use serde_json::json;
use spotsweep_tests::local::{Stack, eventually, s3};
use tokio::io::AsyncWriteExt as _;

use super::by_hand::{Run, run, settled, status, submit};

const SWEEP: &str = r#"
metric: {name: score, goal: maximize}
spotsweep:
  secrets: {API_KEY: team-key}
  setup: 'echo "setup has $API_KEY"'
  command:
  - sh
  - -c
  - |
    {script}
trials: [{n: 1}]
"#;

/// It prints its key, and a digest of it that shows which one it has.
const SCRIPT: &str = r#"
digest=$(printf %s "$API_KEY" | sha256sum | cut -c1-16)
step=$(cat "$SPOTSWEEP_CHECKPOINTS/step" 2>/dev/null || echo 0)
echo "digest $digest at $step"
while [ "$step" -lt 6 ]; do
    echo "key=$API_KEY; basic $(printf %s "user:$API_KEY" | base64 -w 0)"
    sleep 1
    step=$((step + 1))
    echo "$step" > "$SPOTSWEEP_CHECKPOINTS/part" && mv "$SPOTSWEEP_CHECKPOINTS/part" "$SPOTSWEEP_CHECKPOINTS/step"
    echo "score=0.$step step=$step"
done
"#;

pub(super) const FIRST: &str = "wandb_first/key+of 40 characters, or so";
pub(super) const SECOND: &str = "wandb_second/key+of 40 characters, or so";
/// `printf %s KEY | sha256sum`
const DIGESTS: [&str; 2] = ["adce38b0cc5c5cd7", "0366a976480c1360"];
/// The beginning of both keys, as they are, in base64 behind `user:`, and in a URL.
const FORMS: [&str; 6] = ["wandb_first", "wandb_second", "d2FuZGJf", "YW5kYl9m", "YW5kYl9z", "key%2Bof"];

pub(super) async fn set(stack: &Stack, name: &str, value: &str) -> Run {
    let mut command = stack.prepared(&["secret", "set", name]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).await.unwrap();
    Run::of(child.wait_with_output().await.unwrap())
}

pub(super) fn file() -> String {
    SWEEP.replace("{script}", &SCRIPT.trim().replace('\n', "\n    "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_where_it_is_used_and_nowhere_else() {
    let stack = Stack::start_with("secrets", &["--max-vcpus", "1"]).await;
    let text = file();
    let missing = stack.subfolder("files").join("missing.yaml");
    fs::write(&missing, &text).unwrap();
    run(&stack, &["submit", missing.to_str().unwrap()]).await.said(1, "no secret team-key");
    fs::write(&missing, text.replace("team-key", "/others/key")).unwrap();
    run(&stack, &["submit", missing.to_str().unwrap()]).await.said(1, "AllowedSecrets=/team/*,team/*,/others/key");
    refused(&stack).await;
    set(&stack, "team-key", &format!("{FIRST}\n")).await.said(0, "version 1");
    let listed = run(&stack, &["secret", "ls"]).await.said(0, "").out;
    assert!(listed.contains("team-key") && !listed.contains("wandb"), "{listed}");

    let rotate = async || set(&stack, "team-key", SECOND).await.said(0, "version 2");
    let (sweep, log) = trained_while_rotated(&stack, ("keys", &text), rotate).await;
    assert!(log.contains("key=***; basic ") && log.contains("setup has ***"), "{log}");

    run(&stack, &["secret", "rm", "team-key", "--yes"]).await.said(0, "");
    run(&stack, &["secret", "rm", "team-key", "--yes"]).await.said(1, "has no secret team-key");
    run(&stack, &["retry", &sweep, "0"]).await.said(1, "no secret team-key");
    stack.stop().await;
}

/// Trains a sweep of one trial, which is interrupted after its secret was changed. Each attempt has the value of its
/// time, and no value is found anywhere. Returns the sweep's id and its log.
pub(super) async fn trained_while_rotated<T>(
    stack: &Stack,
    (name, text): (&str, &str),
    rotate: impl AsyncFnOnce() -> T,
) -> (String, String) {
    let sweep = submit(stack, name, text).await;
    let saved = async || {
        let trial = status(stack, &sweep).await["each"][0].clone();
        (trial["metrics"]["score"]["last"].as_f64() >= Some(0.2)).then_some(())
    };
    eventually("the trial has a checkpoint", saved).await;
    rotate().await;
    run(stack, &["local", "reclaim", &sweep, "--trial", "0"]).await.said(0, "");
    let ended = settled(stack, &sweep).await;
    assert_eq!(ended["succeeded"], json!(1), "{ended}");
    let mut log = String::new();
    for (attempt, digest) in ["1", "2"].into_iter().zip(DIGESTS) {
        let part = run(stack, &["logs", &sweep, "0", "--attempt", attempt]).await.said(0, "").out;
        assert!(part.contains(&format!("digest {digest}")), "attempt {attempt} has its value: {part}");
        log.push_str(&part);
    }
    found_nowhere(stack, &sweep, &log).await;
    (sweep, log)
}

async fn refused(stack: &Stack) {
    set(stack, "a key", "x").await.said(2, "");
    set(stack, "KEY", "").await.said(2, "is empty");
    set(stack, "KEY", &"x".repeat(4097)).await.said(2, "more than 4096 bytes");
    set(stack, "KEY", "a\0b").await.said(2, "null character");
    set(stack, "SHORT", "abc").await.said(0, "is not hidden");
}

/// All files of the stack: logs, volumes and what the functions have written.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(kind) if kind.is_file() => {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                vec![(entry.path().display().to_string(), String::from_utf8_lossy(&bytes).into_owned())]
            }
            _ => Vec::new(),
        })
        .collect()
}

/// No object, row, page or log has a key in any form.
pub(super) async fn found_nowhere(stack: &Stack, sweep: &str, log: &str) {
    let mut texts = vec![("the log".to_owned(), log.to_owned())];
    for words in [["status", sweep, "--json"], ["explain", sweep, "0"], ["report", sweep, "--json"]] {
        let said = run(stack, &words).await;
        texts.push((words.join(" "), format!("{} {}", said.out, said.notes)));
    }
    let (s3, config) = (s3(&stack.config()), stack.config());
    let listed = s3.list_objects_v2().bucket(&stack.bucket).send().await.unwrap();
    assert!(listed.contents().iter().any(|object| object.key().is_some_and(|key| key.ends_with("train.log"))));
    for key in listed.contents().iter().filter_map(|object| object.key()) {
        let object = s3.get_object().bucket(&stack.bucket).key(key).send().await.unwrap();
        let bytes = object.body.collect().await.unwrap().to_vec();
        texts.push((key.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    let rows = Table::new(&config).scan().table_name(&stack.table).send().await.unwrap();
    texts.push(("the table".to_owned(), format!("{:?}", rows.items())));
    texts.extend(files(&stack.runs()));
    assert!(texts.iter().any(|(place, _)| place.ends_with("ministack.log")), "the functions' log is searched");
    for (place, text) in texts {
        for form in FORMS {
            assert!(!text.contains(form), "{form} is in {place}: {text}");
        }
    }
}
