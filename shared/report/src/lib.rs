//! What a sweep's trials gave and cost, from its records to its pages. Everything is pure: what is read comes in as
//! values, and nothing is written.

pub mod answer;
pub mod cost;
pub mod csv_cell;
pub mod diagnosis;
pub mod inputs;
pub mod leaderboard;
pub mod page;
pub mod parameters;
pub mod warnings;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
