//! All decisions of spotsweep, and no ambient effects.
//!
//! One event in, one pass through:
//!
//! ```text
//! JSON → event::parse → Event → store.load(subject) → View
//!      → decide(&view, &event, settings, now) → Decision { change, commands }
//!      → store.commit (only if the record's version is unchanged)
//!      → executor.execute(command) → outcome Event → decide …
//! ```
//!
//! - [`decide`] is pure: no clock, no randomness, no network; ids derive from what they name.
//! - Intent is persisted before anything is done: a record's stage implies its one pending
//!   command, and `reconcile` repeats it for records past their due time.
//! - [`store::Store`], [`metrics::Telemetry`] and [`handle::Executor`] are the only traits; `aws` holds the only users of
//!   the SDKs (feature `aws`).

pub mod announcement;
pub mod answer;
pub mod cause;
pub mod claim;
pub mod command;
pub mod cost;
pub mod decide;
pub mod diagnosis;
pub mod event;
pub mod gathered;
pub mod handle;
pub mod ids;
pub mod leaderboard;
pub mod lifecycle;
mod log;
pub mod metrics;
pub mod report;
pub mod settings;
pub mod spent;
pub mod store;
mod stored;
pub mod sweep;
pub mod trial;
pub mod trials;
pub mod upload;
pub mod workspace;

#[cfg(feature = "aws")]
pub mod aws;
