//! Plays the scenarios in `tests/scenarios/*.txt`, each of which describes a trial's workspace step by step.
//!
//! `given` makes the trial, and each `when` is an event. The `then` lines under it are everything that follows: the new
//! stage, a note for people, the commands, the reply. `UPDATE_EXPECTED=1 cargo test --workspace --test simulation
//! scenarios::` writes them again.

use std::fs;
use std::path::Path;

use spotsweep_simulation::scenario::play;

#[test]
fn scenarios_go_as_they_are_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut wrong = Vec::new();
    let mut steps = 0;
    for file in &files {
        let expected = fs::read_to_string(file).unwrap();
        let played = play(&expected).unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
        steps += played.matches("\nwhen ").count();
        if update {
            fs::write(file, &played).unwrap();
        } else if played != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- played\n{played}", file.display()));
        }
    }
    println!("{} scenarios, {steps} steps", files.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(files.len() > 10);
}
