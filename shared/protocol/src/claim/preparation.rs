//! What an attempt prepares before the training command: its code, what it installs, and its environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::data_set::DataSet;
use crate::redact::{Secrets, shown};

/// The prefix under which packed folders are put.
pub const PACKED_PREFIX: &str = "code/";

/// Environment variables by name.
pub type Environment = BTreeMap<String, String>;

/// What names a secret, by the variable that gets its value: the path of a parameter in SSM Parameter Store, or the text of
/// a [`ManagedSecret`](super::ManagedSecret).
pub type SecretPaths = BTreeMap<String, String>;

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
        env: BTreeMap<String, Variable>,
        /// Size of `/dev/shm` in MiB; the container's own if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared_memory_mib: Option<u32>,
        /// The data sets that the training reads.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        data: Vec<DataSet>,
    },
}

/// Where the value of a variable comes from. A runner that knows no secrets cannot read the second form, and trains
/// nothing without it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Variable {
    /// The value itself.
    Text(String),
    /// The runner reads it for each attempt.
    Secret {
        /// The parameter's path in SSM Parameter Store, or the text of a [`ManagedSecret`](super::ManagedSecret).
        secret: String,
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
    /// A git repository that a secret opens. Runners of earlier versions do not know this form.
    Private {
        /// The repository.
        private: Git,
        /// The secret with a token or a private key, named as those of variables are.
        token: String,
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

/// Returns the path in SSM Parameter Store of a deployment's own secret. The bucket's name is the deployment's own.
pub fn secret_parameter(bucket: &str, name: &str) -> String {
    format!("/spotsweep/{bucket}/{name}")
}

/// Returns the name of a secret, if the path is that of a deployment's own one.
pub fn secret_name<'a>(bucket: &str, parameter: &'a str) -> Option<&'a str> {
    parameter.strip_prefix(secret_parameter(bucket, "").as_str())
}

impl Preparation {
    /// Returns what is prepared; `None` if that is nothing.
    pub fn new(
        code: Option<Code>,
        setup: Vec<String>,
        (env, secrets): (Environment, SecretPaths),
        shared_memory_mib: Option<u32>,
    ) -> Option<Self> {
        let texts = env.into_iter().map(|(variable, text)| (variable, Variable::Text(text)));
        let secrets = secrets.into_iter().map(|(variable, secret)| (variable, Variable::Secret { secret }));
        let env: BTreeMap<_, _> = texts.chain(secrets).collect();
        let has_more = !setup.is_empty() || !env.is_empty() || shared_memory_mib.is_some();
        match code {
            Some(Code::Git(git)) if !has_more => Some(Self::Git(git)),
            None if !has_more => None,
            code => Some(Self::All { code, setup, env, shared_memory_mib, data: Vec::new() }),
        }
    }

    /// Returns the preparation with these data sets.
    pub fn with_data(this: Option<Self>, data: Vec<DataSet>) -> Option<Self> {
        if data.is_empty() {
            return this;
        }
        let code = this.as_ref().and_then(Self::code);
        Some(match this {
            Some(Self::All { setup, env, shared_memory_mib, .. }) => {
                Self::All { code, setup, env, shared_memory_mib, data }
            }
            Some(Self::Git(_)) | None => {
                Self::All { code, setup: Vec::new(), env: BTreeMap::new(), shared_memory_mib: None, data }
            }
        })
    }

    /// Returns the data sets that the training reads.
    pub fn data(&self) -> &[DataSet] {
        match self {
            Self::Git(_) => &[],
            Self::All { data, .. } => data,
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
            Some(Code::Git(_) | Code::Private { .. }) | None => None,
        }
    }

    /// Returns the commands that run before the training command.
    pub fn setup(&self) -> &[String] {
        match self {
            Self::Git(_) => &[],
            Self::All { setup, .. } => setup,
        }
    }

    /// Returns the variables that the command and the setup get, without those whose values are secrets.
    pub fn env(&self) -> Environment {
        let text = |(name, value): (&String, &Variable)| match value {
            Variable::Text(text) => Some((name.clone(), text.clone())),
            Variable::Secret { .. } => None,
        };
        self.variables().filter_map(text).collect()
    }

    /// Returns the secrets that the command and the setup get.
    pub fn secrets(&self) -> SecretPaths {
        let secret = |(name, value): (&String, &Variable)| match value {
            Variable::Text(_) => None,
            Variable::Secret { secret } => Some((name.clone(), secret.clone())),
        };
        self.variables().filter_map(secret).collect()
    }

    /// Returns what names the secret that opens the repository of the code, if it needs one.
    pub fn code_token(&self) -> Option<String> {
        match self.code() {
            Some(Code::Private { token, .. }) => Some(token),
            Some(Code::Git(_) | Code::Packed { .. }) | None => None,
        }
    }

    /// Returns what names the secrets that an attempt reads, each once: those of variables, and that of the code.
    pub fn all_secrets(&self) -> BTreeSet<String> {
        self.secrets().into_values().chain(self.code_token()).collect()
    }

    /// Returns the credentials in the URL of the code.
    pub fn credentials(&self) -> Secrets {
        match self.code() {
            Some(Code::Git(Git { git, .. }) | Code::Private { private: Git { git, .. }, .. }) => Secrets::of(&git),
            Some(Code::Packed { .. }) | None => Secrets::default(),
        }
    }

    fn variables(&self) -> impl Iterator<Item = (&String, &Variable)> {
        let variables = match self {
            Self::Git(_) => None,
            Self::All { env, .. } => Some(env),
        };
        variables.into_iter().flatten()
    }
}

impl fmt::Debug for Preparation {
    /// Leaves out the variables' values, because records and replies are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, setup) = (self.code(), self.setup());
        let names: Vec<&String> = self.variables().map(|(name, _)| name).collect();
        let data = self.data();
        write!(formatter, "Preparation {{ code: {code:?}, setup: {setup:?}, env: {names:?}, data: {data:?} }}")
    }
}

impl fmt::Debug for Code {
    /// Leaves out the credentials of a URL.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(Git { git, reference }) | Self::Private { private: Git { git, reference }, .. } => {
                write!(formatter, "{:?} at {reference:?}", shown(git))
            }
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
        let none = || (Environment::new(), SecretPaths::new());
        let plain = Preparation::new(Some(Code::Git(git.clone())), Vec::new(), none(), None).unwrap();
        assert_eq!(json!(plain), json!({"git": "https://u:secret@h/x.git"}));
        let env = Environment::from([("TOKEN".to_owned(), "secret".to_owned())]);
        let secrets = SecretPaths::from([("KEY".to_owned(), "/own/KEY".to_owned())]);
        let packed = Code::Packed { sha256: "ab".to_owned() };
        let private = Code::Private { private: git.clone(), token: "/own/GIT".to_owned() };
        for code in [None, Some(Code::Git(git)), Some(packed), Some(private)] {
            let variables = (env.clone(), secrets.clone());
            let whole = Preparation::new(code.clone(), vec!["make".to_owned()], variables, Some(64)).unwrap();
            assert_eq!((whole.env(), whole.secrets(), whole.code()), (env.clone(), secrets.clone(), code));
            let written = json!(whole);
            assert_eq!(written.get("git"), None, "they must not leave out the rest: {written}");
            assert_eq!(serde_json::from_value::<Preparation>(written).unwrap(), whole);
            assert!(!format!("{whole:?}").contains("secret"), "{whole:?}");
        }
        assert_eq!(Preparation::new(None, Vec::new(), none(), None), None);
    }

    /// An earlier runner reads values as texts, and code in two forms.
    #[test]
    fn earlier_runners_cannot_read_secrets() {
        let secrets = SecretPaths::from([("KEY".to_owned(), "/own/KEY".to_owned())]);
        let whole = Preparation::new(None, Vec::new(), (Environment::new(), secrets), None).unwrap();
        assert_eq!(json!(whole), json!({"env": {"KEY": {"secret": "/own/KEY"}}}));
        let git = Git { git: "https://h/x.git".to_owned(), reference: None };
        let code = json!(Code::Private { private: git, token: "/own/GIT".to_owned() });
        assert!(["git", "sha256"].iter().all(|known| code.get(known).is_none()), "{code}");
    }
}
