//! What the attempts of a sweep prepare.

use std::collections::BTreeSet;

use spotsweep_protocol::claim::{DataSet, Preparation};

use super::Plan;

impl Plan {
    /// Returns the SHA-256 of the packed folder that the trials run, if they run one.
    pub fn packed_code(&self) -> Option<String> {
        self.preparation.as_ref().and_then(Preparation::packed)
    }

    /// Returns the data sets that the trainings read.
    pub fn data(&self) -> &[DataSet] {
        self.preparation.as_ref().map(Preparation::data).unwrap_or_default()
    }

    /// Returns what names the secrets that an attempt reads.
    pub fn secrets(&self) -> BTreeSet<String> {
        self.preparation.as_ref().map(Preparation::all_secrets).unwrap_or_default()
    }
}
