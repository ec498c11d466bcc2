//! Runs the control plane over the World, on a virtual clock.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod bad_instances;
mod budget;
mod cloud;
mod data;
mod data_disks;
mod defects;
mod events;
mod fail_fast;
mod gpus;
mod images;
mod kept;
mod order;
mod packed;
mod permissions;
mod scenarios;
mod secrets;
mod seeds;
mod silence;
mod stalls;
mod submission;
mod workspaces;

use mimalloc::MiMalloc;

/// Half of a run is making and dropping JSON, so this allocator makes it faster, as in `simulate`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
