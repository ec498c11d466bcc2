//! The metric of simulated trainings at the rungs.

use spotsweep_protocol::rungs::{Reached, Rung};

/// The metric; larger is better. Curves of different trials cross, and a repeated epoch has another value in another
/// attempt.
pub(super) fn value(trial: u32, epoch: u64, attempt: u32) -> f64 {
    let mixed = |salt: u64| {
        let number = (u64::from(trial) << 8 | salt).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (number >> 40) as f64 / (1_u64 << 24) as f64
    };
    let (ceiling, speed) = (0.5 + mixed(1) / 2.0, 0.2 + mixed(2));
    ceiling * (1.0 - (-speed * epoch as f64).exp()) + f64::from(attempt) * 1e-3
}

/// The rungs of `steps` that a trial has reached after `epochs` epochs.
pub(super) fn reached(steps: &[u64], (trial, attempt): (u32, u32), epochs: u64) -> Vec<Reached> {
    let rung = |step: u64| {
        let value = value(trial, step, attempt);
        Reached { step, rung: Rung { value, best: value, mean: value / 2.0 } }
    };
    steps.iter().take_while(|step| **step <= epochs).map(|step| rung(*step)).collect()
}
