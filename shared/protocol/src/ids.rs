//! Names that are derived, never random: the same upload always gives the same sweep id, and the same sweep the same
//! job names.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::words::hexadecimal;

/// The largest array job that Batch accepts (fact 18). A bigger sweep becomes several parts.
pub const PART_TRIALS: u32 = 10_000;

/// The prefix of every job name, so that one EventBridge rule selects this product's jobs.
pub const JOB_NAME_PREFIX: &str = "spotsweep-";

/// The characters of the file name that are part of a sweep id.
const STEM_LENGTH: usize = 40;

/// The id of a sweep, which is one version of one dropped file: `<file name>-<12 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SweepId(String);

impl SweepId {
    /// Derives the id of one version of one object. `version` is S3's version id, or another value that differs between
    /// puts.
    pub fn derive(bucket: &str, key: &str, version: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [bucket, key, version] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        let hash = hexadecimal(&digest.finalize()[..6]);
        Self(format!("{}-{hash}", stem(key)))
    }

    /// Parses an id from a job name, a request or the command line.
    pub fn parse(text: &str) -> Option<Self> {
        let (stem, hash) = text.rsplit_once('-')?;
        let stem_fits = (1..=STEM_LENGTH).contains(&stem.len())
            && stem.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        let hash_fits = hash.len() == 12 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (stem_fits && hash_fits).then(|| Self(text.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the prefix of all results of this sweep: `results/<sweep>/`.
    pub fn results_prefix(&self) -> String {
        format!("results/{}/", self.0)
    }

    /// Returns the prefix of one trial's outputs: `results/<sweep>/trials/<index>/`.
    pub fn trial_prefix(&self, index: u32) -> String {
        format!("results/{}/trials/{index}/", self.0)
    }
}

impl fmt::Display for SweepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Parses the name of a trial, `<sweep>/<index>`.
pub fn trial_named(text: &str) -> Option<(SweepId, u32)> {
    let (sweep, index) = text.split_once('/')?;
    let is_plain = index == "0" || index.starts_with(|first: char| ('1'..='9').contains(&first));
    Some((SweepId::parse(sweep)?, index.parse().ok().filter(|index| is_plain && *index < MOST_TRIALS)?))
}

/// Returns the file name without folders and `.yaml`, in the characters that Batch allows in a job name.
fn stem(key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or(key);
    let name = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name);
    let kept: String = name
        .chars()
        .map(|letter| letter.to_ascii_lowercase())
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' })
        .take(STEM_LENGTH)
        .collect();
    let kept = kept.trim_matches('-');
    if kept.is_empty() { "sweep".to_owned() } else { kept.to_owned() }
}

/// The most trials of a sweep. A name with a larger number is not of this product.
const MOST_TRIALS: u32 = 100_000;
/// The most submissions of one trial. Each has ten attempts, and a sweep file sets at most 255.
const MOST_ROUNDS: u32 = 256;

/// The name of a submission: `spotsweep-<sweep>-<part>`, or `spotsweep-<sweep>-<index>r<round>` for one trial that goes
/// on past Batch's ten attempts.
///
/// SubmitJob has no client token (fact 1), so a submission is found again by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobName {
    /// The sweep.
    pub sweep: SweepId,
    /// The part of the sweep that it runs.
    pub run: Run,
}

/// The trials that one submission runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// The trials `part * PART_TRIALS ..` of a part, from 0.
    Part(u32),
    /// One trial again.
    Again {
        /// The trial's index.
        index: u32,
        /// The number of this submission of the trial, from 1 for the first one after the array job.
        round: u32,
    },
}

impl JobName {
    /// Parses a job name; `None` if it is not one of this product's.
    pub fn parse(text: &str) -> Option<Self> {
        let (sweep, run) = text.strip_prefix(JOB_NAME_PREFIX)?.rsplit_once('-')?;
        // `+1` and `01` are numbers too, but this product never writes them.
        let is_plain = |text: &str| text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
        let number = |text: &str, numbers: Range<u32>| {
            text.parse().ok().filter(|number| is_plain(text) && numbers.contains(number))
        };
        let run = match run.split_once('r') {
            None => Run::Part(number(run, 0..MOST_TRIALS.div_ceil(PART_TRIALS))?),
            Some((index, round)) => {
                Run::Again { index: number(index, 0..MOST_TRIALS)?, round: number(round, 1..MOST_ROUNDS)? }
            }
        };
        Some(Self { sweep: SweepId::parse(sweep)?, run })
    }

    /// Returns the index of its first trial.
    pub fn first_index(&self) -> u32 {
        match self.run {
            Run::Part(part) => part.saturating_mul(PART_TRIALS),
            Run::Again { index, .. } => index,
        }
    }

    /// Returns the number of the submission of its trials, from 0.
    pub fn round(&self) -> u32 {
        match self.run {
            Run::Part(_) => 0,
            Run::Again { round, .. } => round,
        }
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{JOB_NAME_PREFIX}{}-", self.sweep)?;
        match self.run {
            Run::Part(part) => write!(formatter, "{part}"),
            Run::Again { index, round } => write!(formatter, "{index}r{round}"),
        }
    }
}

/// A Batch job: `<parent>` or, for a child of an array job, `<parent>:<array index>` (fact 3).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct JobId {
    /// The id that SubmitJob returned.
    pub parent: String,
    /// The index in the array; absent for a plain job and for the parent itself.
    pub child: Option<u32>,
}

impl From<String> for JobId {
    fn from(text: String) -> Self {
        match text.rsplit_once(':').map(|(parent, child)| (parent, child.parse())) {
            Some((parent, Ok(child))) => Self { parent: parent.to_owned(), child: Some(child) },
            _ => Self { parent: text, child: None },
        }
    }
}

impl From<JobId> for String {
    fn from(job: JobId) -> Self {
        job.to_string()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.child {
            Some(child) => write!(formatter, "{}:{child}", self.parent),
            None => formatter.write_str(&self.parent),
        }
    }
}

/// A job to describe, with the sweep and the trial that it belongs to, in case Batch no longer has the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedJob {
    /// The sweep.
    pub sweep: SweepId,
    /// The trial; absent for an array job as a whole.
    pub index: Option<u32>,
    /// The job.
    pub job: JobId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_readable_and_distinct() {
        let first = SweepId::derive("bucket", "sweeps/ResNet 50.v2.yaml", "v1");
        assert_eq!(first, SweepId::derive("bucket", "sweeps/ResNet 50.v2.yaml", "v1"));
        assert_ne!(first, SweepId::derive("bucket", "sweeps/ResNet 50.v2.yaml", "v2"));
        assert_ne!(SweepId::derive("ab", "c", ""), SweepId::derive("a", "bc", ""));
        assert!(first.as_str().starts_with("resnet-50-v2-"), "{first}");
        assert!(SweepId::derive("b", "sweeps/---.yaml", "v").as_str().starts_with("sweep-"));
        let longest = SweepId::derive("b", &format!("sweeps/{}.yaml", "é".repeat(500)), "v");
        for id in [first, longest] {
            assert_eq!(SweepId::parse(id.as_str()).as_ref(), Some(&id));
            for run in [Run::Part(9), Run::Again { index: 99_999, round: 9 }] {
                let name = JobName { sweep: id.clone(), run };
                assert_eq!(JobName::parse(&name.to_string()), Some(name.clone()));
                assert!(name.to_string().len() <= 128, "Batch's limit (fact 19)");
            }
        }
    }

    #[test]
    fn foreign_names_are_not_ours() {
        for foreign in [
            "train",
            "spotsweep-",
            "spotsweep-x-0",
            "spotsweep-a-0123456789ab-x",
            "spotsweep-A-0123456789ab-0",
            "spotsweep-a-0123456789ab-3r0",
            "spotsweep-a-0123456789ab-10",
            "spotsweep-a-0123456789ab-4294967295",
            "spotsweep-a-0123456789ab-100000r1",
            "spotsweep-a-0123456789ab-1r429496730",
            "spotsweep-a-0123456789ab-+1",
            "spotsweep-a-0123456789ab-01",
        ] {
            assert_eq!(JobName::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn job_ids_round_trip() {
        for text in ["77b6ed8a-6d2b", "77b6ed8a-6d2b:13"] {
            assert_eq!(JobId::from(text.to_owned()).to_string(), text);
        }
        assert_eq!(JobId::from("a:13".to_owned()).child, Some(13));
    }
}
