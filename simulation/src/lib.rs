//! The library's `handle` over memory, on a virtual clock: a store that commits like DynamoDB, a cloud made of the
//! emulator's World and a map of objects, simulated runners, and whatever AWS may do to them. One seed, one run.

pub mod cloud;
pub mod crash;
pub mod harness;
pub mod memory;
pub mod run;
