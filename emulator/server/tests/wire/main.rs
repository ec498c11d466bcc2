//! Tests the emulator through AWS's own SDKs, with real processes as jobs.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod containers;
mod jobs;
mod own;
mod rig;
mod strict;
mod volumes;
