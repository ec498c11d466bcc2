//! Measures one `batch-job-state` with Batch's events, one after another: parse, decide, commit.
//!
//! The events are those of [`spotsweep_tests::course`]: each trial's RUNNABLE, STARTING, RUNNING and SUCCEEDED, and the
//! array job's own.

mod binary;
mod memory;

use crate::row::Row;
use crate::setup::Setup;

/// The function's own share of handling an event, without the table's answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own {
    pub(crate) seconds: f64,
    pub(crate) log_bytes: f64,
}

/// Measures it in one run with a table in memory.
pub(crate) async fn own(setup: &Setup) -> Own {
    binary::own(setup).await
}

pub(crate) async fn rows(setup: &Setup) -> Vec<Row> {
    let mut rows = memory::rows(setup).await;
    rows.extend(binary::rows(setup).await);
    rows
}
