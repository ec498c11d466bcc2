//! The library's `handle` over memory, on a virtual clock. The store commits like DynamoDB; the cloud is the emulator's
//! World and a map of objects. Runners and AWS's faults are simulated. One seed gives one run.

pub mod calls;
pub mod cloud;
pub mod container;
pub mod decision_log;
pub mod harness;
pub mod injected_bug;
pub mod invocation;
pub mod kernel;
pub mod limits;
pub mod memory;
pub mod nouns;
pub mod permissions;
pub mod run;
mod run_jobs;
pub mod scenario;
pub mod shrink;
mod standing;
mod table;
