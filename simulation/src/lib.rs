//! The library's `handle` over memory, on a virtual clock: a store that commits like DynamoDB, a cloud made of the
//! emulator's World and a map of objects, simulated runners, and whatever AWS may do to them. One seed, one run.

pub mod calls;
pub mod cloud;
pub mod decision_log;
pub mod harness;
pub mod injected_bug;
pub mod invocation;
pub mod limits;
pub mod memory;
pub mod nouns;
pub mod permissions;
pub mod run;
pub mod scenario;
pub mod shrink;
mod standing;
mod table;
