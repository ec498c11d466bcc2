//! Runs `spotsweep demo` as a person does, and reads what it leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::binaries::Binaries;

/// A demo that has ended.
#[derive(Debug)]
pub struct Demo {
    folder: PathBuf,
    output: Output,
}

impl Demo {
    /// Runs the demo with a file of this text in `folder`, and keeps the bucket and the table there.
    ///
    /// # Panics
    /// Panics if the demo cannot be started.
    pub fn run(folder: &Path, file: &str, text: &str, arguments: &[&str]) -> Self {
        fs::write(folder.join(file), text).expect("the folder can be written");
        let output = Command::new(Binaries::build().get("spotsweep"))
            .args(["demo", "--json", "--keep", "keep", "--sweep", file, "--binaries"])
            .arg(Binaries::build().folder())
            .args(arguments)
            .current_dir(folder)
            .output();
        Self { folder: folder.to_owned(), output: output.expect("the command can be started") }
    }

    /// Exit code of the command. None if a signal has ended it.
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// The messages for people, on standard error.
    pub fn messages(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The sweep's summary.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn summary(&self) -> Value {
        let text = String::from_utf8_lossy(&self.output.stdout);
        let last = text.lines().last().unwrap_or_else(|| unreachable!("no summary: {}", self.messages()));
        serde_json::from_str(last).expect("the last line is JSON")
    }

    /// A path in the demo's folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// The folder of the sweep's results.
    ///
    /// # Panics
    /// Panics if the summary names none.
    pub fn outputs(&self) -> PathBuf {
        self.folder.join(self.summary()["outputs"].as_str().expect("the summary names the outputs"))
    }

    /// The table's records of sweeps and trials whose sort key begins with this text.
    ///
    /// # Panics
    /// Panics if the table was not kept.
    pub fn records(&self, sort_key: &str) -> Vec<Value> {
        let table = fs::read_to_string(self.path("keep/table.jsonl")).expect("the table was kept");
        let rows = table.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row is JSON"));
        let begins = |row: &Value, key: &str, with: &str| row[key].as_str().is_some_and(|key| key.starts_with(with));
        rows.filter(|row| begins(row, "pk", "SWEEP#") && begins(row, "sk", sort_key)).collect()
    }

    /// Runs another command of the same binary on the kept bucket and table.
    ///
    /// # Panics
    /// Panics if the command fails.
    pub fn command(&self, arguments: &[&str]) -> String {
        let run = Command::new(Binaries::build().get("spotsweep")).args(arguments).current_dir(&self.folder).output();
        let run = run.expect("the command can be started");
        assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8_lossy(&run.stdout).into_owned()
    }
}
