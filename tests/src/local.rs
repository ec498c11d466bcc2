//! The product as it runs, in real processes, for the end-to-end tests: [`Binaries`] builds it, [`Demo`] is
//! `spotsweep demo`, [`Stack`] is the local stack, [`Sandbox`] runs one function and kills it at a chosen AWS call.
//!
//! What is missing (binaries, the Python environment) is made on first use, in the target folder
//! and profile of the running test. Helpers panic where a test could not go on.

mod account;
mod aws;
mod binaries;
mod demo;
mod sandbox;
mod stack;

pub use account::{Account, Dropped};
pub use aws::{call_json, config, eventually, get_json, s3};
pub use binaries::Binaries;
pub use demo::Demo;
pub use sandbox::{Invocation, Kill, Moment, Outcome, Sandbox};
pub use stack::Stack;
