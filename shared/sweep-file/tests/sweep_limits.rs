//! Bounds the time and memory of a large sweep and of a hostile file.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "measures the clock, this process and a disk")]

mod sweep_measure;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use spotsweep_sweep_file::parse;
use spotsweep_sweep_file::trials;

use sweep_measure::{computed, peak_kib, scaled};

/// It measures from the file's bytes to `trials.jsonl` and `trials.idx` on disk.
#[test]
fn ten_thousand_trials_are_written_in_a_blink() {
    let mut text = String::from("method: random\nrun_cap: 10000\nparameters:\n");
    for index in 0..6 {
        writeln!(text, "  lr{index}: {{distribution: log_uniform_values, min: 1e-5, max: 0.1}}").unwrap();
    }
    text.push_str("  units: {values: [16, 32, 64]}\n  depth: {min: 1, max: 8}\n");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // The fastest of several is taken, because the machine may be busy.
    let elapsed = (0..5).map(|_| write_trials(&text, folder)).min().unwrap();
    let written = std::fs::read_to_string(folder.join("trials.jsonl")).unwrap();
    println!("10 000 trials, {} bytes, in {elapsed:?}", written.len());
    assert_eq!(written.lines().count(), 10_000);
    assert!(elapsed < scaled(Duration::from_millis(100)), "{elapsed:?}");
}

fn write_trials(text: &str, folder: &Path) -> Duration {
    let started = computed();
    let file = parse("f", "v", text.as_bytes()).unwrap();
    let mut to = BufWriter::new(File::create(folder.join("trials.jsonl")).unwrap());
    let mut index = trials::Index::default();
    for line in trials::lines(&file) {
        let line = line.unwrap();
        index.push(&line);
        to.write_all(&line).unwrap();
    }
    to.into_inner().unwrap();
    std::fs::write(folder.join("trials.idx"), index.finish()).unwrap();
    computed() - started
}

/// Returns small files that need much comparing: a hundred patterns of a hundred names that differ from a trial only in
/// the last one, and a few ways to get many trials.
fn costly_patterns() -> Vec<(&'static str, String)> {
    let named =
        |value: &dyn Fn(usize) -> String| (0..99).map(|index| format!("a{index}: {}, ", value(index))).collect();
    let (values, parameters): (String, String) = (named(&|_| "1".to_owned()), named(&|_| "{value: 1}".to_owned()));
    let hundred = |what: &str| format!("{what}{}", ", *p".repeat(99));
    let patterns = format!("spotsweep: {{exclude: [{}]}}", hundred(&format!("&p {{{values}z: 1}}")));
    let space = |cap: &str, z: &str| format!("{cap}\n{patterns}\nparameters: {{{parameters}z: {z}}}\n");
    let listed = |trials: usize| {
        format!("trials: [&t {{{values}z: 0}}, &u {{{values}z: 1}}{}]\n{patterns}\n", ", *t".repeat(trials))
    };
    let few = |points: u64| {
        format!("method: grid\nparameters: {{a: {{min: 1, max: {points}}}, b: {{values: [1, 2], when: {{a: 1}}}}}}\n")
    };
    vec![
        ("patterns on a grid", space("method: grid", "{min: 0, max: 4000}")),
        ("patterns on too great a grid", space("method: grid", "{min: 0, max: 20000}")),
        ("patterns on draws", space("method: random\nrun_cap: 2500", "{min: 0, max: 1}")),
        ("patterns on too many draws", space("method: random\nrun_cap: 100000", "{min: 0, max: 1}")),
        ("patterns on a list", listed(400)),
        ("a condition on as many points as may be", few(3_000_000)),
        ("a condition on too many points", few(12_000_000)),
    ]
}

/// The files have a megabyte, and each is a hard case for parsers.
#[test]
fn hostile_files_are_answered_in_time() {
    let wide = |start: &str, part: &str, end: &str| {
        let parts = ((1 << 20) - start.len() - end.len()) / part.len();
        format!("{start}{}{end}", part.repeat(parts))
    };
    let keys = |prefix: &str| -> String {
        let mut text = String::from(prefix);
        for index in 0.. {
            if text.len() > 1 << 20 {
                break;
            }
            writeln!(text, "  k{index}: {{value: {index}}}").unwrap();
        }
        text
    };
    let values = |start: &str, end: &str| -> String {
        let listed: Vec<String> = (0..130_000).map(|number| number.to_string()).collect();
        format!("{start}{}{end}", listed.join(","))
    };
    let cases = [
        ("brackets", wide("", "[", "")),
        ("braces", wide("", "{", "")),
        ("open flow keys", wide("", "{a: ", "")),
        ("question marks", wide("", "? ", "")),
        ("dashes", wide("", "- ", "")),
        ("scalars", wide("[", "1,", "]")),
        ("trials", wide("", "- {}\n", "")),
        ("quotes", wide("", "\"", "")),
        ("one quoted text", wide("- a: \"", "x", "\"")),
        ("one plain text", wide("- a: ", "x ", "")),
        ("folded text", wide("- a: >\n", "    x\n", "")),
        ("tags", wide("", "!!str ", "")),
        ("anchors", wide("", "- &a x\n", "")),
        ("aliases", wide("- &a {}\n", "- *a\n", "")),
        ("long aliases", wide(&format!("- &a {{x: {}}}\n", "y".repeat(1000)), "- *a\n", "")),
        ("merges", wide("- &a {}\n- {<<: [", "*a,", "*a]}\n")),
        ("comments", wide("", "# x\n", "")),
        ("documents", wide("", "---\n", "")),
        ("directives", wide("", "%YAML 1.2\n", "")),
        ("carriage returns", wide("", "\r", "")),
        ("same key", wide("", "a: 1\n", "")),
        ("many parameters", keys("method: grid\nparameters:\n")),
        ("unknown keys", keys("spotsweep:\n")),
        ("misspelt distributions", wide("method: grid\nparameters:\n", "  a: {distribution: unifrm}\n", "")),
        ("many values", values("method: grid\nparameters: {a: {values: [", "]}}")),
        ("many exclusions", wide("method: grid\nparameters: {a: {min: 0, max: 999}}\nspotsweep:\n  exclude:\n", "  - {a: 1}\n", "")),
        ("long exclusion", values("method: grid\nparameters: {a: {min: 0, max: 129999}}\nspotsweep: {exclude: {a: [", "]}}")),
        ("outdented texts", wide("a:\n  b: [\n", "\"x\",\n", "]\n")),
        ("outdented words", wide("a:\n  b: [\n", " x,\n", "]\n")),
        ("outdented closings", wide("a:\n", "  b: [\n  \"x\"\n  ]\n", "")),
        ("great grid with conditions", "method: grid\nparameters: {a: {min: 0, max: 7000000}, b: {values: [1, 2], when: {a: 1}}}\n".to_owned()),
        ("costly draws", "method: random\nrun_cap: 100000\nspotsweep: {exclude: {a: 1}}\nparameters: {a: {min: 0, max: 1}, b: {min: 0.0, max: 1.0}}\n".to_owned()),
        ("impossible draws", "method: random\nrun_cap: 100000\nspotsweep: {exclude: {a: [0, 1]}}\nparameters: {a: {min: 0, max: 1}}\n".to_owned()),
    ];
    for (name, text) in cases.into_iter().chain(costly_patterns()) {
        let started = computed();
        let answer = parse("f", "v", text.as_bytes());
        let elapsed = computed() - started;
        println!(
            "{name}: {elapsed:?}, {}",
            answer
                .as_ref()
                .map_or_else(|rejected| rejected.problems[0].message.clone(), |f| f.trial_count().to_string())
        );
        assert!(elapsed < scaled(Duration::from_secs(2)), "{name}: {elapsed:?}");
    }
    if let Some(peak) = peak_kib() {
        assert!(peak < 1 << 20, "{peak} KiB");
    }
}
