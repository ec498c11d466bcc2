//! The library's `handle` over memory: a store that commits like DynamoDB, and a cloud made of
//! the emulator's World and a map of objects. Both can stop an invocation dead at any call.

pub mod cloud;
pub mod crash;
pub mod harness;
pub mod local;
pub mod memory;
pub mod simulation;
