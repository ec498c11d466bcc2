//! What a runner decides about its attempt. The runner looks at the kernel and carries the decisions out; the simulation
//! does both on its virtual clock.

mod conclusion;
mod hold;
mod process;
mod stop_targets;
mod stopping;
mod work;

pub use conclusion::{Cause, Conclusion, TIMED_OUT, conclusion};
pub use hold::{Held, Hold};
pub use process::{Id, Process, below, python_launcher};
pub use stopping::{Decision, Look, Stopping, Then};
pub use work::Work;
