//! Compares commands and values with the answers of W&B's own release, which `tests/wandb/test_wandb.py` checks against
//! it.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "the cases are a file")]

use std::path::Path;

use serde_json::{Value, json};
use spotsweep_protocol::command_line::{MACROS, expand};
use spotsweep_sweep_file::parse;

fn cases() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wandb/cases.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_macros_are_wandbs() {
    assert_eq!(cases()["macros"], json!(MACROS));
}

#[test]
fn commands_are_wandbs() {
    for case in cases()["commands"].as_array().unwrap() {
        let text = case["file"].as_str().unwrap();
        let file = parse("f", "v", text.as_bytes()).unwrap_or_else(|problems| unreachable!("{text}{problems:?}"));
        let environment = |name: &str| case["environment"][name].as_str().map(str::to_owned);
        let trials: Vec<_> = file.trials().collect();
        assert_eq!(trials.len(), 1);
        let template = file.settings.command.as_deref().unwrap();
        let command = expand(template, &trials[0], &environment, "<parameters.json>").unwrap();
        assert_eq!(json!(command), case["arguments"], "{text}");
    }
}

#[test]
fn values_are_wandbs_or_refused() {
    let (mut refused, mut numbers) = (Vec::new(), Vec::new());
    let cases = cases();
    for case in cases["scalars"].as_array().unwrap() {
        let (written, wandb) = (case["written"].as_str().unwrap(), &case["wandb"]);
        let Ok(file) = parse("f", "v", format!("- x: {written}\n").as_bytes()) else {
            refused.push(written);
            continue;
        };
        let read = file.trials().next().unwrap()["x"].clone();
        // W&B reads a text, which becomes the same number in the program that reads the argument.
        if read.is_f64() && wandb.is_string() {
            assert_eq!(read.as_f64(), wandb.as_str().unwrap().parse().ok(), "{written}");
            numbers.push(written);
        } else {
            assert_eq!(&read, wandb, "{written}");
        }
    }
    let expected = "0o17 017 010 -010 0_17 08 09 018 1:30 -1:30 12:30 12:30:45 1:30.5 0:30.5 190:20:30";
    assert_eq!(refused.join(" "), expected);
    assert_eq!(numbers.join(" "), "-.5 +.5 1e3 1e-3 1.5e3 -1e-3 12e03");
}
