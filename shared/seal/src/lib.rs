//! The seal: the runner's proof that the checkpoints on a volume are complete.
//!
//! The runner seals a workspace with it, and the simulation seals volumes in memory. So nothing here reads a clock, and
//! files are reached only through [`Disk`](disk::Disk).

mod aside;
mod at_end;
mod checkpoint_watch;
mod collected;
mod content;
mod copies;
mod database;
pub mod disk;
mod failed;
mod files;
mod groups;
mod judge;
mod keep;
mod kept;
mod logs;
mod names;
mod pointers;
mod record;
mod reserve;
mod resting;
mod restored;
mod resume;
mod rollback;
mod room;
mod saves;
mod sealer;
mod shape;
#[cfg(test)]
mod tests;
mod times;
mod together;

pub use at_end::AtEnd;
pub use checkpoint_watch::CheckpointWatch;
pub use collected::{Collected, collected, newest_name};
pub use failed::BadEnd;
pub use restored::{Restoration, restoration, restored};
pub use sealer::{QUIET, Sealer};

/// The folder of checkpoints on a workspace.
pub const CHECKPOINTS: &str = "checkpoints";

/// The runner's own folder on a workspace.
pub const OWN: &str = ".spotsweep";

/// The folder in `OWN` for the files that the training leaves in its storage folder (`$SPOTSWEEP_OUTPUT`).
pub const STORAGE: &str = "storage";

/// Writes a line to the job's log.
pub type Say = fn(&str);
