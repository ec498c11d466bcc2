//! The decisions of a runner about its attempt. The runner observes the kernel and carries the decisions out; the
//! simulation does both on its virtual clock. [`Machine`] has the order of an attempt's actions. The other modules
//! decide the details of single actions.

mod action;
mod answer;
mod claiming;
mod conclusion;
mod exit;
mod hold;
mod machine;
mod patience;
mod process;
pub mod stall;
mod stop;
mod stop_targets;
mod stopping;
mod work;

pub use action::{Action, Event, Exit};
pub use answer::Answer;
pub use claiming::{Claimed, Claiming, Denied, access, mounted};
pub use conclusion::{Cause, TIMED_OUT};
pub use exit::{INTERRUPTED, REFUSED, UPLOAD, of_command};
pub use hold::{Held, Hold};
pub use machine::Machine;
pub use patience::{Patience, waiting_pause};
pub use process::{Id, Process, below, python_launcher};
pub use stop::{Stop, Terms};
pub use stopping::{Decision, Look, Stopping, Then};
pub use work::Work;
