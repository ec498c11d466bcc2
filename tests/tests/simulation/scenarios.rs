//! Scenarios: what a trial's workspace does, told step by step in `tests/scenarios/*.txt`.
//!
//! `given` makes the trial, each `when` is an event, and the `then` lines under it are all that follows: the new stage,
//! a note for people, the commands, the reply. `UPDATE_EXPECTED=1 cargo test --workspace --test simulation scenarios::` writes them again.

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
        let told = fs::read_to_string(file).unwrap();
        let played = play(&told).unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
        steps += played.matches("\nwhen ").count();
        if update {
            fs::write(file, &played).unwrap();
        } else if played != told {
            wrong.push(format!("{}\n--- told\n{told}\n--- played\n{played}", file.display()));
        }
    }
    println!("{} scenarios, {steps} steps", files.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(files.len() > 10);
}
