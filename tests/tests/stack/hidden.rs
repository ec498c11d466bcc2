//! Control characters and invisible characters in everything that others choose: keys and values of a sweep file, the
//! name of an object, a training's last lines and the names of its files. No command prints them.

use std::fs;

use aws_sdk_s3::primitives::ByteStream;
use serde_json::Value;
use spotsweep_tests::local::{Stack, eventually, s3};

use super::by_hand::{Run, run, settled, submit};

/// Keys that a sweep file does not have. Each gets a warning.
const KEYS: &str = r#"spotsweep: {workspace: off, command: ["true"]}
trials:
  - {lr: 0.1}
"\e[2Jkey": 3
"x\u009b31m\u202ey": 4
"#;

/// A line that messages quote completely.
const LINE: &str =
    "method: gird # \u{202e}\u{85}\u{2066}\u{e0041}\nparameters: {lr: {values: [1]}}\nprogram: train.py\n";

/// A trial that fails with such output, and leaves a file whose name is too long for a key.
const GOOD: &str = r#"
metric: {name: score, goal: maximize}
spotsweep:
  workspace: off
  attempts: 1
  command:
    - sh
    - -c
    - |
      cd "$SPOTSWEEP_OUTPUT"
      part=$(printf '\342\200\256\033[2J\nspotsweep-runner: forged %0200d' 0)
      mkdir -p "$part/$part/$part/$part" && touch "$part/$part/$part/$part/$part"
      echo score=1
      printf 'ValueError: \033[2J\302\23331m\342\200\256 gone\n' >&2
      exit 3
trials:
  - {lr: "\e[2J\u009b31m\u202e\nb\U000E0041"}
"#;

/// The characters of a text that must not be there.
fn hidden(text: &str) -> String {
    let is_hidden = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{e0000}'..='\u{e0fff}' | '\u{feff}')
    };
    text.chars().filter(is_hidden).collect()
}

fn assert_plain(what: &[&str], run: &Run) {
    for text in [&run.out, &run.notes] {
        assert_eq!(hidden(text), "", "{what:?}: {text:?}");
    }
}

async fn plain(stack: &Stack, arguments: &[&str], code: i32) -> Run {
    let run = run(stack, arguments).await.said(code, "");
    assert_plain(arguments, &run);
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_passes_on_what_a_terminal_would_obey() {
    let stack = Stack::start("hidden").await;
    let file = |name: &str, text: &str| {
        let path = stack.subfolder("files").join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (keys, line) = (file("keys.yaml", KEYS), file("line.yaml", LINE));
    for (file, code) in [(&keys, 0), (&line, 1)] {
        for command in [&["validate", file][..], &["validate", file, "--json"], &["expand", file], &["submit", file]] {
            plain(&stack, command, code).await;
        }
    }
    let said = plain(&stack, &["validate", &keys], 0).await;
    assert!(said.notes.contains(r"unknown key `\u001b[2Jkey`"), "{}", said.notes);
    plain(&stack, &["validate", "\u{1b}[2J\u{202e}.yaml"], 2).await;
    plain(&stack, &["validate", "--\u{1b}[2J\u{202e}"], 2).await;

    let good = file("good.yaml", GOOD);
    plain(&stack, &["validate", &good], 0).await;
    plain(&stack, &["expand", &good, "--format", "table"], 0).await;
    let expanded = plain(&stack, &["expand", &good], 0).await.json();
    assert_eq!(expanded["parameters"]["lr"], "\u{1b}[2J\u{9b}31m\u{202e}\nb\u{e0041}", "JSON is read back unchanged");

    put(&stack, "sweeps/a\u{202e}b\u{9b}c.yaml").await;
    let sweep = submit(&stack, "good", GOOD).await;
    settled(&stack, &sweep).await;
    let listed = eventually("the other file's sweep is listed", async || {
        let listed = plain(&stack, &["ls"], 0).await.out;
        listed.contains("rejected").then_some(listed)
    });
    assert_eq!(listed.await.lines().count(), 4, "a row for each");
    let all: Vec<Value> =
        plain(&stack, &["ls", "--json"], 0).await.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rejected = all.iter().find(|sweep| sweep["stage"] == "rejected").unwrap();
    let rejected = rejected["sweep"].as_str().unwrap();
    plain(&stack, &["status", rejected], 0).await;
    let warned = all.iter().find(|sweep| sweep["key"] == "sweeps/keys.yaml").unwrap()["sweep"].as_str().unwrap();
    let warned = plain(&stack, &["status", warned], 0).await.out;
    assert!(warned.contains(r"unknown key `x\u009b31m\u202ey`"), "{warned}");
    plain(&stack, &["watch", rejected], 1).await;
    of_a_sweep(&stack, &sweep).await;
    stack.stop().await;
}

async fn of_a_sweep(stack: &Stack, sweep: &str) {
    for command in ["status", "watch", "explain", "cost", "report"] {
        for json in [&[][..], &["--json"]] {
            let index = if command == "explain" { &["0"][..] } else { &[] };
            let code = if command == "watch" { 1 } else { 0 };
            plain(stack, &[&[command, sweep], index, json].concat(), code).await;
        }
    }
    let explained = plain(stack, &["explain", sweep, "0"], 0).await.out;
    assert!(explained.contains("output not collected"), "{explained}");
    assert!(!explained.lines().any(|line| line.starts_with("spotsweep-runner:")), "{explained}");
    let to = stack.subfolder("pulled");
    plain(stack, &["pull", sweep, "--to", to.to_str().unwrap()], 0).await;

    // A training's own output is passed on unchanged. The runner's lines are escaped.
    let logs = run(stack, &["logs", sweep, "0"]).await.said(0, "");
    assert!(logs.out.contains("\u{1b}[2J"), "{:?}", logs.out);
    let own: Vec<&str> = logs.out.lines().filter(|line| line.starts_with("spotsweep-runner:")).collect();
    assert!(own.iter().any(|line| line.contains("is left out")), "{own:?}");
    assert!(own.iter().all(|line| hidden(line).is_empty() && !line.starts_with("spotsweep-runner: forged")), "{own:?}");
}

async fn put(stack: &Stack, key: &str) {
    let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key(key);
    put.body(ByteStream::from_static(b"- lr: 1\n")).send().await.unwrap();
}
