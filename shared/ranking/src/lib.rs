//! Which trial is better: the one meaning of "best" for `status`, `watch`, the leaderboard, the report, `pull` and the
//! summary.
//!
//! Only a trial that succeeded with a finite value of the metric has a rank and can be the best. A trial whose newest
//! value is NaN or infinite has diverged, whatever it had before.
//!
//! Where a sweep repeats its parameter sets, the sets have the ranks, by their means ([`sets`]). A trial has
//! the rank of its set, and the best trial is the best one of the best set.
//!
//! [`suggestion`] says which parameters a trial gets from a search, by what the others have.

mod best;
pub mod peer;
mod score;
pub mod sets;
pub mod suggestion;

pub use best::{Best, Ranked, best, leader, ranked, ranking, reached_target, reaches_target, value_so_far};
pub use score::{Score, ranked_value, score};
