//! The library's `handle` over memory, on a virtual clock: a store that commits like DynamoDB, a cloud made of the
//! emulator's World and a map of objects, simulated runners, and whatever AWS may do to them. One seed, one run.

pub mod calls;
pub mod cloud;
pub mod harness;
pub mod heard;
pub mod invocation;
pub mod memory;
pub mod permissions;
pub mod replay;
pub mod run;
pub mod sabotage;
pub mod scenario;
pub mod shrink;
pub mod storm;
