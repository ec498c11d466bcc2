//! Data sets on an instance's disk. A set is fetched once for each instance, checked, and read by all trainings on it.
//!
//! All runners of an instance mount the same folder. Below it each set has a folder of its own, which is named by
//! [`DataSet::id`](spotsweep_protocol::claim::DataSet::id):
//!
//! | name | what it is |
//! |---|---|
//! | `lock` | the set's lock (flock(2)). It is never removed, so all runners always lock the same file |
//! | `part/` | the set while it is fetched |
//! | `progress` | how far that is, for the runners that wait |
//! | `tree/` | the whole set |
//! | `complete` | says that `tree` is complete, and since which boot of the instance |
//! | `used` | its modification time is the set's last use |
//!
//! The file `lock` of the cache's folder is the lock of the disk's room.

pub mod next;

mod archive;
mod attempt;
mod blocking;
mod cache;
mod disk;
mod error;
mod fetch;
mod folder;
mod listing;
mod meter;
mod pace;
mod part;
mod settings;
mod site;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod unpack;

pub use cache::{Cache, Held, Progress};
pub use error::DataError;
pub use settings::Settings;
pub use source::{Answer, Body, Check, GetError, Objects, Wanted};
