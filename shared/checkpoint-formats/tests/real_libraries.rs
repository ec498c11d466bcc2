//! Compares the judgements with the files that the trainings' libraries refuse. The libraries wrote these files, some
//! of which were damaged.
//!
//! `SPOTSWEEP_FORMATS_PYTHON` names a Python with these libraries; the test is skipped without it.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "runs the libraries")]

use std::collections::BTreeMap;
use std::process::Command;

use spotsweep_checkpoint_formats::{Completeness, completeness};

/// An item of the output of `formats/write.py`.
#[derive(serde::Deserialize)]
struct Written {
    file: String,
    format: String,
    loads: bool,
    whole: bool,
}

/// The counts of one format by judgement: whole files, damaged ones that the library refuses, and damaged ones that it
/// loads.
type Counts = [[usize; 3]; 3];

#[test]
fn what_libraries_refuse_is_not_whole_and_what_they_write_is_not_torn() {
    let Some(python) = spotsweep_needs::opted_in("SPOTSWEEP_FORMATS_PYTHON") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/formats/write.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    let table: Vec<Written> = serde_json::from_slice(&output.stdout).unwrap();

    let mut counts = BTreeMap::<&str, Counts>::new();
    let mut wrong = Vec::new();
    for Written { file, format, loads, whole } in &table {
        let found = completeness(&folder.path().join(file)).unwrap();
        let group = if *whole { 0 } else { 1 + usize::from(*loads) };
        let answer = match found {
            Completeness::Whole => 0,
            Completeness::Torn => 1,
            Completeness::Unknown | Completeness::Unjudged => 2,
        };
        counts.entry(format).or_default()[group][answer] += 1;
        let is_wrong =
            if *whole { found == Completeness::Torn || !loads } else { !loads && found == Completeness::Whole };
        if is_wrong {
            wrong.push(format!("{file}: {found:?}, the library loads it: {loads}"));
        }
    }
    eprintln!("format: whole files, refused damaged ones, loaded damaged ones, each as whole/torn/unknown");
    for (format, groups) in &counts {
        let shown = groups.map(|[whole, torn, unknown]| format!("{whole}/{torn}/{unknown}"));
        eprintln!("{format}: {}", shown.join(", "));
    }
    assert_eq!(wrong, [""; 0]);
    assert!(table.iter().filter(|written| written.whole).count() >= 65);
}
