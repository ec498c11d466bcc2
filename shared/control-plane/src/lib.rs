//! The decisions of the control plane, without effects of their own.
//!
//! An event passes through these steps:
//!
//! ```text
//! JSON → event::parse → Event → Input → store.load(subject) → View
//!      → decide(nouns, &view, &input, settings, now) → Decision { change, commands, next }
//!      → store.commit (only if the record's version is unchanged)
//!      → executor.execute(command) → Outcome → Input → decide …
//! ```
//!
//! - [`decide`] is pure: it uses no clock, randomness or network, and ids derive from what they name.
//! - An intention is stored before it is executed: a record's stage implies its one pending command, and `reconcile`
//!   repeats that for records past their due time.
//! - [`execute`] executes commands by the calls in [`calls`]. The crate `spotsweep-aws` implements these calls,
//!   [`store::Store`] and [`metrics::Telemetry`] with the SDKs, and the crate `spotsweep-simulation` in memory.

pub mod calls;
pub mod command;
pub mod decide;
pub mod event;
pub mod execute;
pub mod handle;
pub mod input;
mod log;
pub mod metrics;
pub mod outcome;
pub mod settings;
pub mod store;
pub mod throttle;
