//! Shared by tests and measurements: the product in real processes, and events for it.

pub mod ceilings;
pub mod course;
pub mod local;
pub mod tls;
