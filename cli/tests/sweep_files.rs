//! Runs `spotsweep validate` and `spotsweep expand` as a shell does.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const GRID: &str = "\
program: train.py
method: grid
metric: {name: val_accuracy, goal: maximize}
parameters:
  lr: {values: [0.1, 1.0e-3]}
  units: {values: [16, 32, 64]}
";

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn spotsweep() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spotsweep"));
    command.env_remove("SPOTSWEEP_BUCKET").env_remove("SPOTSWEEP_TABLE");
    command
}

fn run(arguments: &[&str]) -> Output {
    spotsweep().args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn a_valid_file_is_counted() {
    let files = Files::new();
    let path = files.write("grid.yaml", GRID);
    let output = run(&["validate", path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let verdict: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(verdict, json!({ "valid": true, "trials": 6, "problems": [], "warnings": [] }));
    let output = run(&["validate", path.to_str().unwrap()]);
    assert!(stdout(&output).ends_with("grid.yaml: valid, 6 trials\n"), "{}", stdout(&output));
}

#[test]
fn a_valid_files_warnings_are_shown() {
    let files = Files::new();
    let path = files.write("random.yaml", "comment: x\nmethod: random\nparameters: {lr: {min: 0.0, max: 1.0}}\n");
    let output = run(&["validate", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("random.yaml: valid, 30 trials\n"), "{}", stdout(&output));
    assert!(stderr(&output).starts_with("warning: unknown key `comment`"), "{}", stderr(&output));
    let output = run(&["validate", path.to_str().unwrap(), "--json"]);
    let verdict: Value = serde_json::from_str(stdout(&output)).unwrap();
    let lines: Vec<&Value> = verdict["warnings"].as_array().unwrap().iter().map(|warning| &warning["line"]).collect();
    assert_eq!((verdict["valid"].as_bool(), lines), (Some(true), vec![&json!(1), &json!(2)]));
}

#[test]
fn one_trial_is_not_called_trials() {
    let files = Files::new();
    let path = files.write("one.yaml", "- {lr: 0.1}\n");
    let output = run(&["validate", path.to_str().unwrap()]);
    assert!(stdout(&output).ends_with("one.yaml: valid, 1 trial\n"), "{}", stdout(&output));
}

/// The bucket would reject these files, or not answer them at all.
#[test]
fn names_that_the_bucket_refuses_are_invalid() {
    let files = Files::new();
    for (name, part) in [
        ("notes.txt", "file name must end in .yaml or .yml"),
        ("GRID.YAML", "file name must end in .yaml or .yml"),
        ("my grid.yaml", "' '"),
        ("a+b.yaml", "'+'"),
        ("größe.yaml", "'ö'"),
        ("a..b.yaml", "\"..\""),
    ] {
        let path = files.write(name, GRID);
        let output = run(&["validate", path.to_str().unwrap(), "--json"]);
        let verdict: Value = serde_json::from_str(stdout(&output)).unwrap();
        assert_eq!((output.status.code(), &verdict["valid"]), (Some(1), &json!(false)), "{name}");
        let problem = &verdict["problems"][0];
        assert!(problem["message"].as_str().unwrap().contains(part), "{name}: {problem}");
        assert!(problem["help"].as_str().unwrap().contains("rename"), "{name}: {problem}");
        let output = run(&["submit", path.to_str().unwrap(), "--bucket", "b"]);
        assert!(output.status.code() == Some(2) && stderr(&output).contains(part), "{name}: {}", stderr(&output));
    }
    // The mistakes in the file are reported as well.
    let path = files.write("my grid.yaml", &GRID.replace("method: grid", "methud: grid"));
    let output = run(&["validate", path.to_str().unwrap()]);
    assert!(stderr(&output).contains("' '") && stderr(&output).contains("methud"), "{}", stderr(&output));
}

/// The environment has the variables of `spotsweep local env`, and their stack has ended.
#[test]
fn every_command_explains_an_environment_that_is_left() {
    let files = Files::new();
    let path = files.write("grid.yaml", GRID);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sweep = "digits-0123456789ab";
    let commands: [&[&str]; 17] = [
        &["ls"],
        &["watch"],
        &["status", sweep],
        &["watch", sweep],
        &["explain", sweep, "0"],
        &["logs", sweep, "0"],
        &["report", "latest"],
        &["cost", sweep],
        &["pull", sweep],
        &["export", sweep, "--format", "json"],
        &["cancel", sweep],
        &["retry", sweep],
        &["submit", path.to_str().unwrap()],
        &["doctor"],
        &["doctor", "--stack", "s"],
        &["doctor", "--before-deploy"],
        &["redrive", "--stack", "s"],
    ];
    for command in commands {
        let output = spotsweep()
            .args(command)
            .envs([("SPOTSWEEP_TABLE", "t"), ("SPOTSWEEP_BUCKET", "b"), ("AWS_REGION", "us-east-1")])
            .envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, "test")))
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
            .env("SPOTSWEEP_LOCAL", files.0.path().join("local"))
            .env_remove("SPOTSWEEP_STACK")
            .output()
            .unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {message}");
        for part in ["has ended", "spotsweep local env", &port.to_string()] {
            assert!(message.contains(part), "{command:?} says nothing of {part}: {message}");
        }
    }
}

#[test]
fn an_invalid_file_is_explained_at_its_place() {
    let files = Files::new();
    let path = files.write("grid.yaml", &GRID.replace("method: grid", "methud: grid"));
    let output = run(&["validate", path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let verdict: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(verdict["valid"], json!(false));
    let problem = verdict["problems"].as_array().unwrap().iter().find(|problem| problem["line"] == json!(2)).unwrap();
    assert_eq!(problem["column"], json!(1));
    assert!(problem["message"].as_str().unwrap().contains("methud"), "{problem}");
    assert!(problem["help"].as_str().unwrap().contains("method"), "{problem}");
    for command in ["validate", "expand"] {
        let output = run(&[command, path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(stdout(&output), "", "{command}");
        assert!(stderr(&output).contains("methud: grid"), "{command}: {}", stderr(&output));
    }
}

#[test]
fn an_unreadable_file_is_wrong_usage() {
    for arguments in [&["validate", "absent.yaml"][..], &["expand", "absent.yaml"], &["validate", "/", "--json"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("cannot read"), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_file_over_the_limit_is_refused_without_reading_it_all() {
    let files = Files::new();
    let path = files.write("huge.yaml", "");
    // The file is sparse, because no memory holds 200 GB.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(200 << 30).unwrap();
    let output = run(&["validate", path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let verdict: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(verdict["problems"].as_array().unwrap().len(), 1, "{verdict}");
}

#[test]
fn trials_expand_in_order_in_every_format() {
    let files = Files::new();
    let path = files.write("grid.yaml", GRID);
    let path = path.to_str().unwrap();
    let expected: Vec<Value> = [(0.1, 16), (0.1, 32), (0.1, 64), (0.001, 16), (0.001, 32), (0.001, 64)]
        .iter()
        .enumerate()
        .map(|(index, (lr, units))| json!({ "index": index, "parameters": { "lr": lr, "units": units } }))
        .collect();
    let output = run(&["expand", path]);
    let trials: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(trials, expected);
    let output = run(&["expand", path, "--limit", "2"]);
    assert_eq!(stdout(&output).lines().count(), 2);
    let output = run(&["expand", path, "--limit", "2", "--format", "csv"]);
    assert_eq!(stdout(&output), "index,lr,units\n0,0.1,16\n1,0.1,32\n");
    let output = run(&["expand", path, "--format", "table", "--limit", "4"]);
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines[0], "index  lr     units");
    assert_eq!(lines[4], "3      0.001  16");
    assert_eq!(lines.len(), 5);
}

#[test]
fn columns_cover_trials_that_differ() {
    let files = Files::new();
    let path = files.write("list.yaml", "- {lr: 0.1, note: \"a,b\"}\n- {units: 8}\n");
    let output = run(&["expand", path.to_str().unwrap(), "--format", "csv"]);
    assert_eq!(stdout(&output), "index,lr,note,units\n0,0.1,\"a,b\",\n1,,,8\n", "{}", stderr(&output));
}

#[test]
fn standard_input_works_too() {
    let mut child = spotsweep().args(["expand", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"- {lr: 0.1}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "{\"index\":0,\"parameters\":{\"lr\":0.1}}\n");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let files = Files::new();
    let values: Vec<String> = (0..300).map(|value| value.to_string()).collect();
    let values = values.join(", ");
    let text =
        format!("program: t.py\nmethod: grid\nparameters:\n  a: {{values: [{values}]}}\n  b: {{values: [{values}]}}\n");
    let path = files.write("wide.yaml", &text);
    for format in ["json", "csv", "table"] {
        let mut command = spotsweep();
        command.args(["expand", path.to_str().unwrap(), "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty(), "{format}");
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""), "{format}");
    }
}

#[test]
fn without_a_control_plane_the_commands_say_how_to_name_one() {
    let files = Files::new();
    let path = files.write("notes.txt", "- {lr: 0.1}\n");
    let output = run(&["submit", path.to_str().unwrap(), "--bucket", "b"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("must end in .yaml"), "{}", stderr(&output));
    let output = run(&["status", "not a sweep", "--table", "t"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no sweep named `not a sweep`"), "{}", stderr(&output));
}
