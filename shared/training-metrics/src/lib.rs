//! Finds metrics in lines of output and in the files of libraries.
//!
//! Scripts are not changed for spotsweep, so the same metric may be in several places: in a progress bar, in a line for
//! people, in a file of TensorBoard. Each value has its [`Source`], and the most reliable source of a name counts.
//!
//! The comments call the metric that the sweep file names the named metric.

mod csv_log;
mod data_set;
mod definitions;
mod document;
mod event_file;
mod figures;
mod history;
mod json_line;
mod log_file;
mod logged;
mod mention;
mod names;
mod number;
mod object;
mod part;
mod rows;
mod said;
mod same_rows;
mod sorted;
mod step;
mod table;
mod text;
mod traceback;
mod trainer_state;
mod wandb_run;
mod worded;

pub use definitions::Definitions;
pub use figures::Figures;
pub use log_file::{LogFile, Shared};
pub use logged::{Logged, Value};
pub use mention::{MENTION_BYTES, may_have_metrics, mentions};
pub use part::{Found, Read};
pub use spotsweep_protocol::metric::Source;
pub use text::Lines;
