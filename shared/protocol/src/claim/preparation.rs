//! What an attempt prepares before the training command: its code, what it installs, and its environment.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::redact::{Secrets, shown};

/// The prefix under which packed folders are put.
pub const PACKED_PREFIX: &str = "code/";

/// Environment variables by name.
pub type Environment = BTreeMap<String, String>;

/// What an attempt prepares before the training command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Preparation {
    /// Only code from git, in the form that runners of earlier versions understand.
    Git(Git),
    /// Everything. A runner that does not know this form ends the attempt, and trains nothing without its settings.
    All {
        /// The training code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        /// Commands of a shell, in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        setup: Vec<String>,
        /// Variables that the command and the setup get.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: Environment,
        /// Size of `/dev/shm` in MiB; the container's own if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared_memory_mib: Option<u32>,
    },
}

/// Training code, pinned.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Code {
    /// A git repository.
    Git(Git),
    /// A folder that was packed: the object `code/<sha256>.tar.zst` of the deployment's bucket.
    Packed {
        /// SHA-256 of the archive, in hexadecimal.
        sha256: String,
    },
}

/// A git repository.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    /// URL of the repository.
    pub git: String,
    /// Branch, tag or commit; the default branch if absent. The first attempt pins it to a commit on the workspace, so
    /// that later attempts run the same code.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// Returns the key of a packed folder in the deployment's bucket.
pub fn packed_key(sha256: &str) -> String {
    format!("{PACKED_PREFIX}{sha256}.tar.zst")
}

impl Preparation {
    /// Returns what is prepared; `None` if that is nothing.
    pub fn new(
        code: Option<Code>,
        setup: Vec<String>,
        env: Environment,
        shared_memory_mib: Option<u32>,
    ) -> Option<Self> {
        let has_more = !setup.is_empty() || !env.is_empty() || shared_memory_mib.is_some();
        match code {
            Some(Code::Git(git)) if !has_more => Some(Self::Git(git)),
            None if !has_more => None,
            code => Some(Self::All { code, setup, env, shared_memory_mib }),
        }
    }

    /// Returns the size of `/dev/shm` in MiB; `None` for the container's own.
    pub fn shared_memory_mib(&self) -> Option<u32> {
        match self {
            Self::Git(_) => None,
            Self::All { shared_memory_mib, .. } => *shared_memory_mib,
        }
    }

    /// Returns the training code.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Git(git) => Some(Code::Git(git.clone())),
            Self::All { code, .. } => code.clone(),
        }
    }

    /// Returns the SHA-256 of the folder that the attempts unpack.
    pub fn packed(&self) -> Option<String> {
        match self.code() {
            Some(Code::Packed { sha256 }) => Some(sha256),
            Some(Code::Git(_)) | None => None,
        }
    }

    /// Returns the commands that run before the training command.
    pub fn setup(&self) -> &[String] {
        match self {
            Self::Git(_) => &[],
            Self::All { setup, .. } => setup,
        }
    }

    /// Returns the variables that the command and the setup get.
    pub fn env(&self) -> Environment {
        match self {
            Self::Git(_) => Environment::new(),
            Self::All { env, .. } => env.clone(),
        }
    }

    /// Returns the credentials in the URL of the code.
    pub fn secrets(&self) -> Secrets {
        match self.code() {
            Some(Code::Git(Git { git, .. })) => Secrets::of(&git),
            Some(Code::Packed { .. }) | None => Secrets::default(),
        }
    }
}

impl fmt::Debug for Preparation {
    /// Leaves out the variables' values, because records and replies are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, setup) = (self.code(), self.setup());
        let names: Vec<String> = self.env().into_keys().collect();
        write!(formatter, "Preparation {{ code: {code:?}, setup: {setup:?}, env: {names:?} }}")
    }
}

impl fmt::Debug for Code {
    /// Leaves out the credentials of a URL.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(Git { git, reference }) => write!(formatter, "{:?} at {reference:?}", shown(git)),
            Self::Packed { sha256 } => write!(formatter, "{sha256}"),
        }
    }
}

impl fmt::Debug for Git {
    /// Leaves out the credentials of a URL.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Code::Git(self.clone()).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn earlier_runners_understand_code_from_git_alone() {
        let git = Git { git: "https://u:secret@h/x.git".to_owned(), reference: None };
        let plain = Preparation::new(Some(Code::Git(git.clone())), Vec::new(), Environment::new(), None).unwrap();
        assert_eq!(json!(plain), json!({"git": "https://u:secret@h/x.git"}));
        let env = Environment::from([("TOKEN".to_owned(), "secret".to_owned())]);
        let packed = Code::Packed { sha256: "ab".to_owned() };
        for code in [None, Some(Code::Git(git)), Some(packed)] {
            let whole = Preparation::new(code, vec!["make".to_owned()], env.clone(), Some(64)).unwrap();
            let written = json!(whole);
            assert_eq!(written.get("git"), None, "they must not leave out the rest: {written}");
            assert_eq!(serde_json::from_value::<Preparation>(written).unwrap(), whole);
            assert!(!format!("{whole:?}").contains("secret"), "{whole:?}");
        }
        assert_eq!(Preparation::new(None, Vec::new(), Environment::new(), None), None);
    }
}
