//! Tests of the World alone, on a virtual clock.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, missing_docs)]

mod api;
mod attachments;
mod capacity;
mod fis;
mod jobs;
mod lab;
mod limits;
mod losses;
mod random;
mod reclaim;
mod snapshots;
mod volumes;
