//! Runs the product in real processes, for the end-to-end tests. [`Binaries`] builds it, [`Demo`] runs `spotsweep
//! demo`, and [`Stack`] is the local stack. [`Sandbox`] runs one function and kills it at a chosen AWS call,
//! [`Observed`] runs any program and counts its AWS calls, and [`Table`] is a DynamoDB in memory that counts units.
//!
//! Binaries and the Python environment are made when they are first used, in the target folder and profile of the
//! running test. Helpers panic when a test could not go on.

mod account;
mod aws;
mod binaries;
mod demo;
mod observed;
mod proxy;
mod runtime_api;
mod sandbox;
mod stack;
mod table;
mod upload;
mod usage;

pub use account::{Account, DEFINITION, Dropped, QUEUE};
pub use aws::{PATIENCE, call_json, config, eventually, get_json, s3};
pub use binaries::Binaries;
pub use demo::Demo;
pub use observed::Observed;
pub use proxy::{Call, service_time};
pub use runtime_api::{Moment as RuntimeMoment, RuntimeApi};
pub use sandbox::{Invocation, Kill, Moment, Outcome, Sandbox, Warm};
pub use stack::Stack;
pub use table::{Table, Units};
pub use upload::drop_file;
pub use usage::Usage;
