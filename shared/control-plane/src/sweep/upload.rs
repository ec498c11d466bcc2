//! The drop zone: which keys count as sweep files, and where their answers lie.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use spotsweep_protocol::ids::SweepId;

/// Where sweep files are dropped.
pub const DROP_PREFIX: &str = "sweeps/";

/// One version of one dropped object, as S3's event tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Bucket name.
    pub bucket: String,
    /// Object key, as the event spells it.
    pub key: String,
    /// S3's version id; absent where the bucket is not versioned or the event was made by hand.
    pub version_id: Option<String>,
    /// What tells this put from any other: the version id, else ETag and sequencer.
    pub fingerprint: String,
    /// Size in bytes as S3's event gives it; absent in events made by hand.
    pub size: Option<u64>,
    /// When S3 saw the put.
    pub uploaded_at: Timestamp,
}

impl Upload {
    /// The sweep that this upload is.
    pub fn sweep(&self) -> SweepId {
        SweepId::derive(&self.bucket, &self.key, &self.fingerprint)
    }

    /// Whether the key is a sweep file's: under `sweeps/`, ending in `.yaml` or `.yml`,
    /// in lower case as in the EventBridge rule.
    pub fn is_sweep_file(&self) -> bool {
        let key = &self.key;
        key.starts_with(DROP_PREFIX) && (key.ends_with(".yaml") || key.ends_with(".yml"))
    }

    /// Whether the key can be trusted. Sources conflict on how EventBridge encodes S3 keys
    /// (fact 16), so only characters that no encoding touches are taken, and no `..`.
    pub fn key_is_plain(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
        self.key.bytes().all(plain) && !self.key.contains("..") && !self.key.contains("//") && self.key.len() <= 900
    }

    /// Where the answer to an accepted file lies: `<key>.plan.json`.
    pub fn plan_key(&self) -> String {
        format!("{}.plan.json", self.key)
    }

    /// Where the answer to a rejected file lies: `<key>.rejected.json`, with `_` for each
    /// character of the key that cannot be trusted.
    pub fn rejected_key(&self) -> String {
        let safe = |letter: char| if letter.is_ascii_alphanumeric() || "/_.-".contains(letter) { letter } else { '_' };
        let mut key: String = self.key.chars().take(900).map(safe).collect();
        while key.contains("..") {
            key = key.replace("..", "_");
        }
        format!("{key}.rejected.json")
    }
}

#[cfg(test)]
mod tests {
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
            assert!(upload(&dropped.rejected_key()).key_is_plain(), "{}", dropped.rejected_key());
        }
    }

    #[test]
    fn keys_that_encodings_disagree_on_are_not_plain() {
        for key in ["sweeps/a b.yaml", "sweeps/a+b.yaml", "sweeps/a%20b.yaml", "sweeps/../b.yaml", "sweeps/é.yaml"] {
            assert!(!upload(key).key_is_plain(), "{key}");
        }
        assert!(upload("sweeps/team_1/a-b.v2.yaml").key_is_plain());
        assert!(!upload("results/a.yaml").is_sweep_file());
    }
}
