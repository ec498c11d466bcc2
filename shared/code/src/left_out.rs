//! What is not packed, and why.

use std::fmt::{self, Display, Formatter};

/// A file or folder that is not packed. Its [`Display`] says why, and how it can be sent anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The path in the folder, with control characters and bytes that are not UTF-8 escaped. It is `.` for the folder
    /// itself.
    pub path: String,
    /// Why.
    pub reason: Reason,
}

/// Why something is not packed. Its [`Display`] is the end of a sentence that begins with the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The person's `exclude`.
    Excluded {
        /// The pattern.
        pattern: String,
    },
    /// An ignore file.
    Ignored {
        /// The path of the ignore file: relative, if it is in the folder.
        file: String,
        /// The pattern.
        pattern: String,
    },
    /// A file or folder that a tool makes again.
    Made {
        /// What it is.
        what: &'static str,
    },
    /// A link out of the folder.
    LinkOut {
        /// Its target, escaped.
        target: String,
    },
    /// A socket, a pipe or a device.
    Special,
    /// Something that looks like a secret.
    Secret(Secret),
    /// A file that is too large for code.
    Large {
        /// Its length in bytes.
        bytes: u64,
    },
    /// Many files of one kind of data. They are below the path, which is a folder.
    DataSet {
        /// The ending of their names.
        ending: String,
        /// How many.
        files: u64,
    },
}

/// Something that looks like a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    /// What it looks like.
    pub what: &'static str,
    /// The line in the file, from 1. `None` if the file's name says it.
    pub line: Option<u64>,
}

/// A secret that the caller has to show. Its [`Display`] says what happens to the file, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path in the folder.
    pub path: String,
    /// What is in it.
    pub secret: Secret,
    /// Whether the file is packed, because `include` matches it. Otherwise it is a source file that is left out.
    pub is_sent: bool,
}

impl LeftOut {
    /// Whether a person may miss the file: neither `exclude` nor an ignore file names it, and no tool makes it again.
    pub fn is_unexpected(&self) -> bool {
        !matches!(self.reason, Reason::Excluded { .. } | Reason::Ignored { .. } | Reason::Made { .. })
    }

    fn remedy(&self) -> String {
        match &self.reason {
            Reason::Excluded { .. } => "to send it, remove that pattern".to_owned(),
            Reason::LinkOut { .. } => {
                "to send it, copy the file into the folder, or link to it by a relative path".to_owned()
            }
            Reason::Special => "it cannot be sent".to_owned(),
            Reason::DataSet { ending, .. } if self.path == "." => {
                format!("put it into S3; to send it anyway, add `/**/*.{}` to `include`", pattern(ending))
            }
            Reason::DataSet { ending, .. } => {
                let pattern = format!("/{}/**/*.{}", pattern(&self.path), pattern(ending));
                format!("put it into S3; to send it anyway, add `{pattern}` to `include`")
            }
            Reason::Large { .. } => {
                format!("put data into S3; to send it anyway, add `/{}` to `include`", pattern(&self.path))
            }
            Reason::Ignored { .. } | Reason::Made { .. } | Reason::Secret(_) => {
                format!("to send it anyway, add `/{}` to `include`", pattern(&self.path))
            }
        }
    }
}

impl Display for LeftOut {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "`{}` is left out: it {}; {}", self.path, self.reason, self.remedy())
    }
}

impl Display for Reason {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Excluded { pattern } => write!(to, "matches `{pattern}` of `exclude`"),
            Self::Ignored { file, pattern } => write!(to, "matches `{pattern}` of {file}"),
            Self::Made { what } => write!(to, "is {what}"),
            Self::LinkOut { target } => write!(to, "is a link out of the folder, to `{target}`"),
            Self::Special => write!(to, "is a socket, a pipe or a device"),
            Self::Secret(secret) => write!(to, "{secret}"),
            Self::Large { bytes } => write!(to, "has {} MiB, more than code has", bytes >> 20),
            Self::DataSet { ending, files } => write!(to, "has {files} .{ending} files, which looks like a data set"),
        }
    }
}

impl Display for Secret {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(to, "has {} in line {line}", self.what),
            None => write!(to, "is {}", self.what),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { path, secret, is_sent } = self;
        if *is_sent {
            write!(to, "`{path}` {secret}, and is sent because `include` matches it")
        } else {
            let pattern = pattern(path);
            write!(
                to,
                "`{path}` {secret}, so it is not sent, and the training may fail without it; read the secret from \
                 somewhere else, or add `/{pattern}` to `include` if it is only an example"
            )
        }
    }
}

/// Returns a path as the part of a pattern that matches only this path.
pub fn pattern(path: &str) -> String {
    let escaped = |char| {
        if matches!(char, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ' ') {
            format!("\\{char}")
        } else {
            String::from(char)
        }
    };
    path.chars().map(escaped).collect()
}
