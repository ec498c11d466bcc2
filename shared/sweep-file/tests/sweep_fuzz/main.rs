//! Parses any bytes and gets trials or problems, in bounded time and memory.
//!
//! The test runs a few rounds of one seed. To run it longer: `FUZZ_SECONDS=600 FUZZ_SEED=7 cargo test --release
//! --workspace --test sweep_fuzz -- --nocapture`. A failure prints the smallest file that still fails.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "measures the clock and this process, reads the files to be damaged")]

mod files;
mod grammar;
#[path = "../sweep_measure/mod.rs"]
mod sweep_measure;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use spotsweep_sweep_file::{MAX_TRIALS, Problem, SearchSpace, SweepFile, parse};

use sweep_measure::{computed, peak_kib, scaled};

/// The largest file made here, and the most time for one.
const MAX_BYTES: usize = 1 << 20;
const MAX_TIME: Duration = Duration::from_secs(2);

/// A file that a failing test prints as text.
struct Dropped(Vec<u8>);

impl std::fmt::Debug for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Returns the kinds of files, with the number of cases in a round. The numbers give each kind about the same time.
fn kinds() -> [(&'static str, u32, BoxedStrategy<Vec<u8>>); 5] {
    [
        ("noise", 300, files::noise()),
        ("pieces", 300, files::pieces()),
        ("damaged", 300, files::damaged()),
        ("repeated", 4, files::repeated()),
        ("made by grammar", 300, grammar::file()),
    ]
}

/// The results for the files of one kind.
#[derive(Default)]
struct Tally {
    cases: u64,
    valid: u64,
    trials: u64,
    slowest: Duration,
    slowest_bytes: usize,
}

impl Tally {
    fn try_one(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= MAX_BYTES);
        let started = computed();
        let expanded = match parse("f.yaml", "v", bytes) {
            Ok(file) => Some(check_trials(&file)),
            Err(rejected) => {
                check_problems(&rejected.problems);
                assert!(rejected.warnings.len() <= 21);
                None
            }
        };
        let elapsed = computed() - started;
        assert!(elapsed < scaled(MAX_TIME), "{elapsed:?} for {} bytes", bytes.len());
        self.cases += 1;
        self.valid += u64::from(expanded.is_some());
        self.trials += expanded.unwrap_or(0);
        if elapsed > self.slowest {
            (self.slowest, self.slowest_bytes) = (elapsed, bytes.len());
        }
    }
}

/// Checks that the file has as many trials as it states, in the same order each time. Of a large sweep it checks the
/// first ones.
fn check_trials(file: &SweepFile) -> u64 {
    let count = file.trial_count();
    assert!((1..=MAX_TRIALS).contains(&count));
    let trials: Vec<_> = file.trials().take(1_000).collect();
    assert_eq!(trials.len() as u64, count.min(1_000));
    assert!(file.trials().zip(&trials).take(20).all(|(again, trial)| again == *trial));
    for trial in &trials {
        assert!(serde_json::to_string(trial).unwrap().len() <= 64 << 10);
    }
    if let Some(search) = file.search() {
        check_space(&search.space);
    }
    trials.len() as u64
}

/// Checks that all points become parameters, and that a stored space is read back unchanged.
fn check_space(space: &SearchSpace) {
    let kept: SearchSpace = serde_json::from_str(&serde_json::to_string(space).unwrap()).unwrap();
    assert_eq!(&kept, space);
    let size = space.space().dimensions.len();
    for position in [0.0, 0.3, 0.5, 1.0, 7.0] {
        let Some(parameters) = space.parameters(&vec![Some(position); size]) else { continue };
        assert!(serde_json::to_string(&parameters).unwrap().len() <= 64 << 10);
        let again = space.parameters(&space.point(&parameters)).map(|again| again.len());
        assert_eq!(again, Some(parameters.len()), "{parameters:?}");
    }
}

fn check_problems(problems: &[Problem]) {
    assert!((1..=101).contains(&problems.len()));
    for problem in problems {
        assert!(!problem.message.is_empty() && !problem.help.is_empty());
        assert!(problem.line > 0 && problem.column > 0 && problem.width > 0, "{problem:?}");
        assert!(problem.text.chars().count() <= 162, "{problem:?}");
        assert!(!problem.to_string().is_empty());
    }
}

#[test]
fn whatever_is_dropped_is_answered() {
    let setting = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let limit = setting("FUZZ_SECONDS").map(Duration::from_secs);
    let first = setting("FUZZ_SEED").unwrap_or(1);
    let kinds = kinds();
    let mut tallies: [RefCell<Tally>; 5] = Default::default();
    let started = Instant::now();
    for seed in first.. {
        for ((_, cases, files), tally) in kinds.iter().zip(&tallies) {
            let rng_seed = RngSeed::Fixed(seed);
            let config = ProptestConfig { cases: *cases, failure_persistence: None, rng_seed, ..Default::default() };
            let tried = TestRunner::new(config).run(&files.clone().prop_map(Dropped), |Dropped(bytes)| {
                tally.borrow_mut().try_one(&bytes);
                Ok(())
            });
            tried.unwrap_or_else(|failure| panic!("FUZZ_SEED={seed}: {failure}"));
        }
        if limit.is_none_or(|limit| started.elapsed() >= limit) && seed - first >= 3 {
            break;
        }
    }
    for ((kind, ..), tally) in kinds.iter().zip(&mut tallies) {
        let Tally { cases, valid, trials, slowest, slowest_bytes } = tally.get_mut();
        println!(
            "{kind}: {cases} files, {valid} valid with {trials} trials looked at, slowest {slowest:?} ({slowest_bytes} bytes)"
        );
    }
    let cases: u64 = tallies.iter_mut().map(|tally| tally.get_mut().cases).sum();
    println!("{cases} files in {:?}, seeds from {first}, peak memory {:?} KiB", started.elapsed(), peak_kib());
    // Fuzzing that fails the first check in every case would not test the later checks.
    let [_, _, damaged, _, made] = &mut tallies;
    for (tally, share) in [(damaged.get_mut(), 20), (made.get_mut(), 5)] {
        assert!(tally.valid * share > tally.cases, "{} of {}", tally.valid, tally.cases);
        assert!(tally.valid < tally.cases);
    }
    assert!(peak_kib().is_none_or(|peak| peak < 1 << 20));
}
