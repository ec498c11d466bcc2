//! Why an attempt or a trial has ended.

use std::fmt;

use serde::{Deserialize, Serialize};

use spotsweep_protocol::stop::StopReason;

/// Why an attempt or a trial has ended. Of two reasons the larger one counts, because spotsweep's reason is more
/// precise than Batch's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reason {
    /// Batch's reason.
    Batch(String),
    /// The reason for which spotsweep stopped it.
    Stopped(StopReason),
}

impl Reason {
    /// Returns the text of Batch's reason; empty for a stop.
    pub fn of_batch(&self) -> &str {
        match self {
            Self::Batch(text) => text,
            Self::Stopped(_) => "",
        }
    }

    /// Returns why spotsweep stopped it, if it did.
    pub fn stopped(&self) -> Option<&StopReason> {
        match self {
            Self::Batch(_) => None,
            Self::Stopped(reason) => Some(reason),
        }
    }
}

impl From<String> for Reason {
    /// Reads a reason from Batch, which can be one that spotsweep gave to TerminateJob.
    fn from(text: String) -> Self {
        StopReason::of_batch(&text).map_or(Self::Batch(text), Self::Stopped)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<StopReason> for Reason {
    fn from(reason: StopReason) -> Self {
        Self::Stopped(reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(text) => to.write_str(text),
            Self::Stopped(reason) => reason.fmt(to),
        }
    }
}
