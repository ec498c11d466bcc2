//! Costs, diagnoses, warnings and pages from a sweep's records. All functions are pure: they get what was read as
//! arguments, and write nothing.

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
