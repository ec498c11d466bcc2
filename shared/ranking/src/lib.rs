//! Which of a sweep's trials is better. `status`, `watch`, the leaderboard, the report, `pull` and the summary all use
//! this definition of "best".
//!
//! Only a trial that succeeded with a finite value of the metric has a rank and can be the best. A trial whose newest
//! value is NaN or infinite has diverged, whatever its earlier values were.
//!
//! Where a sweep repeats its parameter sets, the sets have the ranks, by their means ([`sets`]). A trial has the rank
//! of its set, and the best trial is the best one of the best set.
//!
//! [`suggestion`] chooses the parameters that a trial gets from a search, by the results of the others.

mod best;
pub mod peer;
mod score;
pub mod sets;
pub mod suggestion;

pub use best::{Best, Ranked, best, leader, ranked, ranking, reached_target, reaches_target, value_so_far};
pub use score::{Score, ranked_value, score};
