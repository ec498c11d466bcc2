//! Names that are derived, never drawn: the same upload gives the same sweep id, the same sweep
//! the same job names, wherever and however often they are computed.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Largest array job that Batch takes (fact 18); a bigger sweep becomes several parts.
pub const PART_TRIALS: u32 = 10_000;

/// Prefix of every job name, so that one EventBridge rule selects this product's jobs.
pub const JOB_NAME_PREFIX: &str = "spotsweep-";

/// Characters of the file name that go into a sweep id.
const STEM_LENGTH: usize = 40;

/// A sweep: one version of one dropped file. `<file name>-<12 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SweepId(String);

impl SweepId {
    /// The id of one version of one object. `version` is S3's version id, or another value that
    /// differs from one put to the next.
    pub fn derive(bucket: &str, key: &str, version: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [bucket, key, version] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        let hash: String = digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{}-{hash}", stem(key)))
    }

    /// Reads an id back from a job name, a request or the command line.
    pub fn parse(text: &str) -> Option<Self> {
        let (stem, hash) = text.rsplit_once('-')?;
        let stem_fits = (1..=STEM_LENGTH).contains(&stem.len())
            && stem.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        let hash_fits = hash.len() == 12 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (stem_fits && hash_fits).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where everything of this sweep is collected: `results/<sweep>/`.
    pub fn results_prefix(&self) -> String {
        format!("results/{}/", self.0)
    }

    /// Where one trial's outputs are collected: `results/<sweep>/trials/<index>/`.
    pub fn trial_prefix(&self, index: u32) -> String {
        format!("results/{}/trials/{index}/", self.0)
    }
}

impl fmt::Display for SweepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Reads `<sweep>/<index>`, which names a trial.
pub fn trial_named(text: &str) -> Option<(SweepId, u32)> {
    let (sweep, index) = text.split_once('/')?;
    let is_plain = index == "0" || index.starts_with(|first: char| ('1'..='9').contains(&first));
    Some((SweepId::parse(sweep)?, index.parse().ok().filter(|index| is_plain && *index < MOST_TRIALS)?))
}

/// The file name without folders and `.yaml`, in the characters that Batch allows in a job name.
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

/// Most trials of a sweep: a name with a larger number is not of this product.
const MOST_TRIALS: u32 = 100_000;
/// Most submissions of one trial: each has ten attempts, and a sweep file sets at most 255.
const MOST_ROUNDS: u32 = 256;

/// The name under which something is submitted: `spotsweep-<sweep>-<part>`, or `spotsweep-<sweep>-<index>r<round>` for
/// one trial that goes on past Batch's ten attempts.
///
/// SubmitJob has no client token (fact 1): the name is how a submission is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobName {
    /// The sweep.
    pub sweep: SweepId,
    /// What of it.
    pub run: Run,
}

/// What one submission runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// A part, from 0: trials `part * PART_TRIALS ..`.
    Part(u32),
    /// One trial, again.
    Again {
        /// Its index.
        index: u32,
        /// From 1: which submission of this trial beyond the first.
        round: u32,
    },
}

impl JobName {
    /// Reads a job name; `None` where it is not one of this product's.
    pub fn parse(text: &str) -> Option<Self> {
        let (sweep, run) = text.strip_prefix(JOB_NAME_PREFIX)?.rsplit_once('-')?;
        // `+1` and `01` are numbers too, but none that this product writes.
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

    /// The index of its first trial.
    pub fn first_index(&self) -> u32 {
        match self.run {
            Run::Part(part) => part.saturating_mul(PART_TRIALS),
            Run::Again { index, .. } => index,
        }
    }

    /// Which submission of its trials it is, from 0.
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
    /// The id that SubmitJob answered.
    pub parent: String,
    /// The place in the array; absent for a plain job and for the parent itself.
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

/// A job to describe, and whose it is: needed where Batch does not know it any more.
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
