//! Runs the command line as a person does, on a local stack.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use spotsweep_tests::local::{PATIENCE, Stack, eventually, get_json};
use tokio::process::Command;
use tokio::time::timeout;

/// The result of a command.
pub(super) struct Run {
    code: i32,
    pub(super) out: String,
    pub(super) notes: String,
}

impl Run {
    pub(super) fn of(ended: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: ended.status.code().unwrap(), out: text(ended.stdout), notes: text(ended.stderr) }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| unreachable!("{error}: {} {}", self.out, self.notes))
    }

    /// Asserts the exit code, and that the output contains a text.
    pub(super) fn said(self, code: i32, part: &str) -> Self {
        assert_eq!(self.code, code, "{} {}", self.out, self.notes);
        assert!(self.notes.contains(part), "no {part:?}: {} {}", self.out, self.notes);
        self
    }
}

pub(super) async fn run(stack: &Stack, arguments: &[&str]) -> Run {
    Run::of(stack.command(arguments).await)
}

/// Runs a command at a terminal, and returns its exit code. When a text appears, an answer is typed. An empty answer
/// closes the terminal.
pub(super) async fn at_terminal(stack: &Stack, arguments: &[&str], text: &str, answer: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stack/at_terminal.py");
    let prepared = stack.prepared(arguments);
    let mut command = Command::new("python3");
    command.arg(script).args([text, answer]).arg(prepared.as_std().get_program()).args(arguments);
    command.envs(prepared.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = timeout(PATIENCE, command.kill_on_drop(true).output()).await.expect("the command ends").unwrap();
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

pub(super) async fn submit(stack: &Stack, name: &str, text: &str) -> String {
    let file = stack.subfolder("files").join(format!("{name}.yaml"));
    fs::write(&file, text).unwrap();
    run(stack, &["submit", file.to_str().unwrap()]).await.said(0, "submitted").out.trim().to_owned()
}

pub(super) async fn status(stack: &Stack, sweep: &str) -> Value {
    run(stack, &["status", sweep, "--json"]).await.said(0, "").json()
}

pub(super) async fn settled(stack: &Stack, sweep: &str) -> Value {
    let stage = async || Some(status(stack, sweep).await).filter(|status| status["stage"] == "settled");
    eventually("the sweep settles", stage).await
}

pub(super) async fn leftovers(stack: &Stack) -> Value {
    get_json(&format!("{}/_emulator/state", stack.emulator)).await["leftovers"].clone()
}
