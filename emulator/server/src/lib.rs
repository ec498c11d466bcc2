//! AWS Batch, EC2 instances, EBS and IMDS on one machine, for the local stack.
//!
//! [`spotsweep_world::World`] is the state machine, without clock or network. [`Emulator`] drives it by the wall clock:
//! it speaks AWS's wire formats over HTTP, runs jobs as child processes, and delivers events to the rules and Lambda
//! functions of an AWS endpoint.

mod config;
pub mod container;
mod delivery;
mod driver;
mod emulator;
mod http;
mod processes;

pub use config::{Config, Injection, Volumes};
pub use emulator::{Emulator, ServeError};
pub use processes::Process;
