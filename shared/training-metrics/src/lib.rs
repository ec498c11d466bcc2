//! Metrics in what training scripts write: lines of their output, and the files of their libraries.
//!
//! Scripts are not changed for spotsweep, so the same metric may stand in several places: in a progress bar, in a line
//! for people, in a file of TensorBoard. Each value has its [`Source`], and the most reliable source of a name counts.

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
