//! Time and memory: what a large sweep and a hostile file may cost.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "measures the clock and this process")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use spotsweep::sweep::{MAX_TRIALS, parse};

/// The most memory this process has had, in KiB; `None` where the system does not tell.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Unoptimised code is some twenty times slower than what is deployed.
fn scaled(limit: Duration) -> Duration {
    if cfg!(debug_assertions) { limit * 30 } else { limit }
}

#[test]
fn ten_thousand_trials_expand_in_a_blink() {
    let mut text = String::from("method: random\nrun_cap: 10000\nparameters:\n");
    for index in 0..6 {
        writeln!(text, "  lr{index}: {{distribution: log_uniform_values, min: 1e-5, max: 0.1}}").unwrap();
    }
    text.push_str("  units: {values: [16, 32, 64]}\n  depth: {min: 1, max: 8}\n");
    let started = Instant::now();
    let file = parse("f", "v", text.as_bytes()).unwrap();
    let lines: usize = file.trials().map(|trial| serde_json::to_string(&trial).unwrap().len()).sum();
    let elapsed = started.elapsed();
    println!("10 000 trials, {lines} bytes, in {elapsed:?}");
    assert!(elapsed < scaled(Duration::from_millis(100)), "{elapsed:?}");
}

/// Files of a megabyte that aim at what a parser does badly.
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
        ("great grid with conditions", "method: grid\nparameters: {a: {min: 0, max: 7000000}, b: {values: [1, 2], when: {a: 1}}}\n".to_owned()),
        ("costly draws", "method: random\nrun_cap: 100000\nspotsweep: {exclude: {a: 1}}\nparameters: {a: {min: 0, max: 1}, b: {min: 0.0, max: 1.0}}\n".to_owned()),
        ("impossible draws", "method: random\nrun_cap: 1000000\nspotsweep: {exclude: {a: [0, 1]}}\nparameters: {a: {min: 0, max: 1}}\n".to_owned()),
    ];
    for (name, text) in cases {
        let started = Instant::now();
        let answer = parse("f", "v", text.as_bytes());
        let elapsed = started.elapsed();
        println!(
            "{name}: {elapsed:?}, {}",
            answer.as_ref().map_or_else(|p| p[0].message.clone(), |f| f.trial_count().to_string())
        );
        assert!(elapsed < scaled(Duration::from_secs(2)), "{name}: {elapsed:?}");
    }
    if let Some(peak) = peak_kib() {
        assert!(peak < 1 << 20, "{peak} KiB");
    }
}

/// Pieces that sweep files are made of, and some that they are not.
#[rustfmt::skip]
const PIECES: [&str; 81] = [
    "method: ", "grid", "random", "bayes", "parameters:", "run_cap: ", "metric: ", "spotsweep:", "trials:",
    "values: ", "value: ", "min: ", "max: ", "q: ", "mu: ", "sigma: ", "a: ", "b: ", "distribution: ", "uniform",
    "q_uniform", "normal", "log_normal", "beta", "q_beta", "int_uniform", "log_uniform_values", "categorical",
    "probabilities: ", "when: ", "exclude: ", "first: ", "order: shuffled", "seed: ", "command: ", "${args}",
    "${envvar:", "program: ", "lr", "units", "\n", "\n  ", "\n    ", "\n- ", "- ", ": ", ", ", "[", "]", "{", "}",
    "\"", "'", "|", ">", "&a ", "*a", "<<: ", "!!str ", "!x ", "? ", "# ", "---\n", "...\n", "%YAML", "1", "0", "-1",
    "0.1", "1e-4", "1e308", ".inf", "true", "~", "9223372036854775807", "\t", "\r\n", "é", "\u{feff}", "\0", "이",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(PIECES.as_slice()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn whatever_comes_in_is_answered(bytes: &[u8]) {
    let started = Instant::now();
    match parse("f.yaml", "v", bytes) {
        Ok(file) => {
            let count = file.trial_count();
            assert!((1..=MAX_TRIALS).contains(&count));
            let looked = 300.min(count);
            assert_eq!(file.trials().take(300).count() as u64, looked);
            let again = parse("f.yaml", "v", bytes).unwrap();
            assert!(file.trials().take(20).eq(again.trials().take(20)));
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(!problem.message.is_empty() && !problem.help.is_empty());
                assert!(!problem.to_string().is_empty());
            }
        }
    }
    assert!(started.elapsed() < scaled(Duration::from_secs(2)), "{:?}", started.elapsed());
}

/// `PROPTEST_CASES=1000000` makes the tests below a long fuzz run.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mixture_of_pieces_is_answered(pieces in prop::collection::vec(piece(), 0..60)) {
        whatever_comes_in_is_answered(pieces.concat().as_bytes());
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        whatever_comes_in_is_answered(&bytes);
    }

    /// A valid file with a few bytes changed gets further into the checks than noise does.
    #[test]
    fn any_damage_is_answered(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), piece()), 0..6)) {
        let mut text = include_str!("sweeps/good/conditional.yaml").to_owned()
            + "  q: {distribution: q_uniform, min: 0.5, max: 3, q: 0.5}\nspotsweep: {first: {optimizer: sgd}, exclude: {momentum: 0.8}}\n";
        for (from, length, piece) in changes {
            let boundaries: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
            if boundaries.is_empty() {
                break;
            }
            let start = *from.get(&boundaries);
            let end = boundaries.iter().copied().find(|index| *index >= start + length.index(12)).unwrap_or(text.len());
            text.replace_range(start..end.max(start), &piece);
        }
        whatever_comes_in_is_answered(text.as_bytes());
    }
}
