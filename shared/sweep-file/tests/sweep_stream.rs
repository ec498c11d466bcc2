//! Trials stream in constant memory. The test is alone in its process, because it measures the process's memory.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "measures the clock and this process")]

mod sweep_measure;

use std::time::Duration;

use spotsweep_sweep_file::{MAX_TRIALS, parse};

use sweep_measure::{computed, peak_kib, scaled};

#[test]
fn the_largest_sweep_streams_with_flat_memory() {
    let started = computed();
    let file = parse(
        "f",
        "v",
        b"method: grid\nparameters:\n  a: {min: 1, max: 1000}\n  b: {min: 1, max: 100}\n  c: {value: text}\n",
    )
    .unwrap();
    assert_eq!(file.trial_count(), MAX_TRIALS);
    let mut trials = file.trials();
    let bytes = |trials: &mut dyn Iterator<Item = serde_json::Map<String, serde_json::Value>>, number: usize| {
        trials.take(number).map(|trial| serde_json::to_string(&trial).unwrap().len()).sum::<usize>()
    };
    let first = bytes(&mut trials, 1_000);
    let before = peak_kib();
    let rest = bytes(&mut trials, usize::MAX);
    assert!(first > 0 && rest > 50 * first);
    if let (Some(before), Some(after)) = (before, peak_kib()) {
        assert!(after - before < 4 << 10, "{before} KiB before, {after} KiB after");
    }
    let elapsed = computed() - started;
    assert!(elapsed < scaled(Duration::from_secs(10)), "{elapsed:?}");
}
