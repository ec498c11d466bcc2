//! What tests and measurements share: the product as it runs, in real processes, and events for it.

pub mod ceilings;
pub mod course;
pub mod local;
pub mod tls;
