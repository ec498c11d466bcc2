//! What a sweep's trials gave and cost, from its records to its pages.

pub mod answer;
pub mod cost;
pub mod csv_cell;
pub mod diagnosis;
pub mod inputs;
pub mod leaderboard;
pub mod parameters;
pub mod peer;
pub mod ranking;
pub mod report;
mod score;
pub mod sets;
pub mod warnings;
