//! The drop zone: which keys are sweep files, and where their answers are written.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use spotsweep_protocol::ids::SweepId;
use spotsweep_sweep_file::Problem;

/// The prefix under which sweep files are dropped.
pub const DROP_PREFIX: &str = "sweeps/";
/// The key of user-defined object metadata with the number of trials, which replaces the file's `run_cap`
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>: `x-amz-meta-…`).
pub const RUN_CAP_METADATA: &str = "spotsweep-run-cap";
/// The key of the metadata with the SHA-256 of the packed folder that the file's `code` names.
pub const CODE_METADATA: &str = "spotsweep-code";
/// The key of the metadata with variables that go before those of the file: a JSON object, in ASCII.
pub const ENV_METADATA: &str = "spotsweep-env";
/// The end of the key of an accepted sweep file's answer.
pub const PLAN: &str = ".plan.json";
const REJECTED: &str = ".rejected.json";
/// S3's limit: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
const MAX_KEY_BYTES: usize = 1024;

/// One version of one dropped object, as S3's event describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Bucket name.
    pub bucket: String,
    /// Object key, as it is in the event.
    pub key: String,
    /// S3's version id; absent where the bucket is not versioned or the event was made by hand.
    pub version_id: Option<String>,
    /// The text that distinguishes this put from all others: the version id, or else ETag and sequencer.
    pub fingerprint: String,
    /// Size in bytes as S3's event gives it; absent in events made by hand.
    pub size: Option<u64>,
    /// When S3 saw the put.
    pub uploaded_at: Timestamp,
}

/// The metadata of a dropped object, which the file's own text does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The number of trials.
    pub run_cap: Option<String>,
    /// The SHA-256 of the packed folder.
    pub code: Option<String>,
    /// The variables.
    pub env: Option<String>,
}

impl Given {
    /// Reads an object's metadata.
    pub fn of(metadata: &BTreeMap<String, String>) -> Self {
        let of = |key: &str| metadata.get(key).cloned();
        Self { run_cap: of(RUN_CAP_METADATA), code: of(CODE_METADATA), env: of(ENV_METADATA) }
    }

    /// Returns the metadata to put.
    pub fn into_metadata(self) -> HashMap<String, String> {
        let Self { run_cap, code, env } = self;
        let all = [(RUN_CAP_METADATA, run_cap), (CODE_METADATA, code), (ENV_METADATA, env)];
        all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

impl Upload {
    /// Returns the id of the upload's sweep.
    pub fn sweep(&self) -> SweepId {
        SweepId::derive(&self.bucket, &self.key, &self.fingerprint)
    }

    /// Whether the key is that of a sweep file: it starts with `sweeps/` and ends with `.yaml` or `.yml`, in lower case
    /// as in the EventBridge rule.
    pub fn is_sweep_file(&self) -> bool {
        let key = &self.key;
        key.starts_with(DROP_PREFIX) && (key.ends_with(".yaml") || key.ends_with(".yml"))
    }

    /// Whether this object gets an answer. It does if it is under `sweeps/` and is itself neither an answer nor a
    /// folder. It also does if it is named like a sweep file and is at the top of the bucket.
    pub fn is_answered(&self) -> bool {
        let key = self.key.to_ascii_lowercase();
        let is_own = key.ends_with(PLAN) || key.ends_with(REJECTED) || key.ends_with('/');
        let is_misplaced = !key.contains('/') && (key.ends_with(".yaml") || key.ends_with(".yml"));
        !is_own && (self.key.starts_with(DROP_PREFIX) || is_misplaced)
    }

    /// Returns why the key is rejected; `None` for a valid one. Sources contradict each other on how EventBridge
    /// encodes S3 keys (fact 16). So only characters that no encoding changes are valid, and `..` is not.
    pub fn key_problem(&self) -> Option<String> {
        let key = &self.key;
        let bytes = key.len();
        if bytes + REJECTED.len() > MAX_KEY_BYTES {
            return Some(format!(
                "the key has {bytes} bytes, and with {REJECTED} it would have more than S3's {MAX_KEY_BYTES}"
            ));
        }
        if !key.starts_with(DROP_PREFIX) {
            return Some(format!("{key:?} is not in {DROP_PREFIX}, and only files there are read"));
        }
        if !self.is_sweep_file() {
            return Some("file name must end in .yaml or .yml".to_owned());
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_.-".contains(letter);
        if let Some(letter) = key.chars().find(|letter| !is_plain(*letter)) {
            return Some(format!("the key {key:?} has {letter:?}, and only A-Z a-z 0-9 / _ . - are taken"));
        }
        let part = ["..", "//"].into_iter().find(|part| key.contains(part))?;
        Some(format!("the key {key:?} has {part:?}"))
    }

    /// Returns a problem that concerns the file as a whole and no single line.
    pub fn problem(&self, message: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem {
            file: self.key.clone(),
            line: 0,
            column: 0,
            text: String::new(),
            width: 0,
            message: message.into(),
            help: help.into(),
        }
    }

    /// Returns the key of an accepted file's answer: `<key>.plan.json`.
    pub fn plan_key(&self) -> String {
        format!("{}{PLAN}", self.key)
    }

    /// Returns the key of a rejected file's answer: `<key>.rejected.json`. If that is too long for a key, the sweep's
    /// id replaces the end of the file's key.
    pub fn rejected_key(&self) -> String {
        if self.key.len() + REJECTED.len() <= MAX_KEY_BYTES {
            return format!("{}{REJECTED}", self.key);
        }
        let own = self.sweep();
        let room = MAX_KEY_BYTES - REJECTED.len() - own.as_str().len() - 1;
        format!("{}-{own}{REJECTED}", &self.key[..self.key.floor_char_boundary(room)])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn upload(key: &str) -> Upload {
        Upload {
            bucket: "b".into(),
            key: key.into(),
            version_id: None,
            fingerprint: "f".into(),
            size: None,
            uploaded_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn answers_never_look_like_sweep_files() {
        for key in ["sweeps/a.yaml", "sweeps/team/a.yml", "sweeps/with space.yaml", "sweeps/../a.yaml"] {
            let dropped = upload(key);
            assert!(dropped.is_sweep_file());
            assert!(!upload(&dropped.plan_key()).is_sweep_file());
            assert!(!upload(&dropped.rejected_key()).is_sweep_file());
        }
    }

    /// Otherwise an answer to an answer would get an answer.
    #[test]
    fn answers_folders_and_results_are_not_answered() {
        for key in ["sweeps/a.yaml", "sweeps/notes.txt", "sweeps/team/train.py", "a.yaml", "A.YML"] {
            let dropped = upload(key);
            assert!(dropped.is_answered(), "{key}");
            assert!(!upload(&dropped.plan_key()).is_answered() && !upload(&dropped.rejected_key()).is_answered());
        }
        for key in ["sweeps/", "sweeps/team/", "results/a/trials/0/c.yaml", "data/a.yaml", "notes.txt"] {
            assert!(!upload(key).is_answered(), "{key}");
        }
    }

    #[test]
    fn every_key_has_an_answer_of_its_own() {
        let long = format!("sweeps/{}.yaml", "M".repeat(1_000));
        let longer = format!("sweeps/{}é.yaml", "M".repeat(1_000));
        let keys = ["sweeps/c d.yaml", "sweeps/c_d.yaml", "sweeps/é.yaml", "sweeps/😀.yaml", &long, &longer];
        let answers: BTreeSet<String> = keys.iter().map(|key| upload(key).rejected_key()).collect();
        assert_eq!(answers.len(), keys.len());
        assert!(answers.contains("sweeps/c d.yaml.rejected.json"), "{answers:?}");
        assert!(
            answers.iter().all(|answer| answer.len() <= MAX_KEY_BYTES && answer.ends_with(REJECTED)),
            "{answers:?}"
        );
    }

    #[test]
    fn a_key_that_is_not_taken_has_its_reason() {
        let long = format!("sweeps/{} .yaml", "M".repeat(1_000));
        let cases = [
            ("sweeps/a b.yaml", "' '"),
            ("sweeps/a+b.yaml", "'+'"),
            ("sweeps/a%20b.yaml", "'%'"),
            ("sweeps/é.yaml", "'é'"),
            ("sweeps/../b.yaml", "\"..\""),
            ("sweeps//b.yaml", "\"//\""),
            (&long, "1013 bytes"),
        ];
        for (key, part) in cases {
            let problem = upload(key).key_problem();
            assert!(problem.as_ref().is_some_and(|problem| problem.contains(part)), "{problem:?} lacks {part}");
        }
        assert_eq!(upload("sweeps/team_1/a-b.v2.yaml").key_problem(), None);
        for (key, part) in
            [("sweeps/a.txt", ".yaml or .yml"), ("sweeps/a.YAML", ".yaml or .yml"), ("a.yaml", "sweeps/")]
        {
            let dropped = upload(key);
            let problem = dropped.key_problem();
            assert!(dropped.is_answered() && problem.is_some_and(|problem| problem.contains(part)), "{key}");
        }
        assert!(!upload("results/a.yaml").is_sweep_file());
    }
}
