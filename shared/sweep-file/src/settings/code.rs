//! `code:` under `spotsweep:`: the training code, from a folder or from git.

use schemars::JsonSchema;
use spotsweep_protocol::claim;
use spotsweep_protocol::redact::credentials;

use super::keys_of;
use super::outputs::patterns;
use crate::fields::{Fields, secret, text};
use crate::problem::Report;
use crate::scalar::Scalar;
use crate::secret_source::SecretSource;
use crate::tree::{Kind, Node};

/// Keys of `code`.
pub(super) const KEYS: [&str; 7] = ["git", "ref", "token", "folder", "include", "exclude", "sha256"];

/// The problem of a URL that takes neither token nor key, and what to do.
const NO_TOKEN: (&str, &str) = (
    "`token` has no effect with this URL",
    "write an `https://` URL for a token, or one of ssh (`git@host:path`) for a private key",
);

/// Characters of a SHA-256 in hexadecimal.
const HASH_CHARS: usize = 64;

/// Training code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// A git repository.
    Git {
        /// URL of the repository.
        git: String,
        /// Branch, tag or commit; the default branch if absent.
        reference: Option<String>,
        /// What names the secret with a token or a private key that opens the repository ([`SecretSource::of`]).
        token: Option<String>,
    },
    /// A folder next to the sweep file, which is not packed yet.
    Folder(Folder),
    /// A folder that was packed and sent to the bucket.
    Packed {
        /// The SHA-256 of the folder's archive, in hexadecimal.
        sha256: String,
    },
}

impl Code {
    /// Returns the code with this SHA-256; `None` if that is none: 64 lower-case hexadecimal characters.
    pub fn packed(sha256: &str) -> Option<Self> {
        let is_hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let is_hash = sha256.len() == HASH_CHARS && sha256.chars().all(is_hexadecimal);
        is_hash.then(|| Self::Packed { sha256: sha256.to_owned() })
    }

    /// Returns the folder that is not packed yet, if it is one.
    pub fn folder(&self) -> Option<&Folder> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Git { .. } | Self::Packed { .. } => None,
        }
    }

    /// Returns what names the secret that opens the repository.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::Git { token, .. } => token.as_deref(),
            Self::Folder(_) | Self::Packed { .. } => None,
        }
    }

    /// Returns the code that trials can fetch; `None` for a folder that is not packed yet. The deployment has
    /// this bucket.
    pub fn fetched(&self, bucket: &str) -> Option<claim::Code> {
        match self {
            Self::Git { git, reference, token } => {
                let git = claim::Git { git: git.clone(), reference: reference.clone() };
                Some(match token {
                    Some(token) => {
                        claim::Code::Private { private: git, token: SecretSource::of(token).planned(bucket) }
                    }
                    None => claim::Code::Git(git),
                })
            }
            Self::Packed { sha256 } => Some(claim::Code::Packed { sha256: sha256.clone() }),
            Self::Folder(_) => None,
        }
    }
}

/// A folder of the person who submits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Path, from the sweep file's folder.
    pub folder: String,
    /// Patterns of files that are sent although they would be left out.
    pub include: Vec<String>,
    /// Patterns of files that are left out.
    pub exclude: Vec<String>,
}

/// The written forms.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum CodeSchema {
    /// Path of a folder, from the sweep file's folder: `.` is the file's own.
    Folder(String),
    Fields(CodeFields),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) struct CodeFields {
    /// URL of a git repository.
    git: Option<String>,
    /// Branch, tag or commit; the default branch if absent.
    r#ref: Option<String>,
    /// The secret with a token or a private key for the repository: a name, path or ARN, as in `secrets`.
    token: Option<String>,
    /// Path of a folder, from the sweep file's folder.
    folder: Option<String>,
    /// Patterns as in `.gitignore` of files that are sent although they would be left out.
    include: Option<Vec<String>>,
    /// Patterns as in `.gitignore` of files that are left out.
    exclude: Option<Vec<String>>,
    /// The hash of a folder that was sent before.
    sha256: Option<String>,
}

/// Reads the folder or the repository.
pub(super) fn read(node: &Node, report: &mut Report<'_>) -> Option<Code> {
    if let Kind::Scalar(Scalar::Text { text, .. }) = &node.kind {
        return folder_of(node, text, report)
            .map(|folder| Code::Folder(Folder { folder, include: Vec::new(), exclude: Vec::new() }));
    }
    let fields = Fields::known(node, "`code`", keys_of("code"), report)?;
    let sources: Vec<&str> = ["git", "folder", "sha256"].into_iter().filter(|key| fields.has(key)).collect();
    if let [source] = sources[..] {
        check_belonging(fields, source, report);
    }
    match sources[..] {
        ["git"] => git(fields, report),
        ["folder"] => {
            let node = fields.get("folder")?;
            let folder = text(node, "folder", report).and_then(|path| folder_of(node, path, report));
            let mut of = |key| fields.get(key).map(|node| patterns(node, key, report)).unwrap_or_default();
            let (include, exclude) = (of("include"), of("exclude"));
            Some(Code::Folder(Folder { folder: folder?, include, exclude }))
        }
        ["sha256"] => hash(fields, report),
        [] => {
            let help = "write `code: .` for this file's folder, or add the repository, for example \
                        `git: https://github.com/me/train.git`";
            report.add(fields.place(), "`code` has neither `folder` nor `git`", help);
            None
        }
        _ => {
            let message = format!("`code` has {}", sources.join(" and "));
            report.add(fields.place(), message, "keep one of them: the code comes from one place");
            None
        }
    }
}

/// Reports keys that have no meaning for this source.
fn check_belonging(fields: Fields<'_>, source: &str, report: &mut Report<'_>) {
    for (key, of) in [("ref", "git"), ("token", "git"), ("include", "folder"), ("exclude", "folder")] {
        if let Some(entry) = fields.entry(key).filter(|_| of != source) {
            let message = format!("`{key}` has no effect with `{source}`");
            report.add(entry.key_place, message, format!("delete it: it belongs to `{of}`"));
        }
    }
}

fn folder_of(node: &Node, path: &str, report: &mut Report<'_>) -> Option<String> {
    let is_repository = path.contains("://") || path.starts_with("git@") || path.ends_with(".git");
    if is_repository {
        let help = format!("write `code: {{git: \"{path}\"}}`");
        report.add(node.place, "`code` is the path of a folder, and this is the URL of a repository", help);
        return None;
    }
    if path.trim().is_empty() || path.contains(char::is_control) {
        report.add(node.place, "`code` is no path of a folder", "write `.` for this file's folder");
        return None;
    }
    Some(path.to_owned())
}

fn hash(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Code> {
    let sha256 = fields.text("sha256", report)?;
    let code = Code::packed(sha256);
    if let (None, Some(node)) = (&code, fields.get("sha256")) {
        let help = "write the 64 characters that `spotsweep code ls` shows";
        report.add(node.place, format!("`sha256` is not the hash of a folder: {sha256}"), help);
    }
    code
}

fn git(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Code> {
    let reference = fields.text("ref", report).map(str::to_owned);
    // git would take a value with a leading dash for an option.
    for key in ["git", "ref"] {
        if let Some(node) = fields.get(key)
            && matches!(&node.kind, Kind::Scalar(Scalar::Text { text, .. }) if text.starts_with('-'))
        {
            report.add(
                node.place,
                format!("`{key}` starts with a dash"),
                "write a repository URL, or a branch, tag or commit",
            );
        }
    }
    let git = fields.text("git", report)?;
    if let (true, Some(node)) = (git.contains(char::is_control), fields.get("git")) {
        report.add(node.place, "`git` has a line break or another control character", "write the URL on one line");
    }
    if let (true, Some(node)) = (has_credentials(git), fields.get("git")) {
        let message = "`git` has a password or a token in it: the bucket and the table would keep it";
        let help =
            "store it with `spotsweep secret set GIT_TOKEN`, delete it from the URL and write `token: GIT_TOKEN`";
        report.add(node.place, message, help);
    }
    let token = fields.get("token").and_then(|node| secret(node, "token", report));
    if let (Some((message, help)), Some(entry)) = (token_problem(git), fields.entry("token")) {
        report.add(entry.key_place, message, help);
    }
    Some(Code::Git { git: git.to_owned(), reference, token })
}

/// Whether a URL has a password or a token. A user name alone is none to ssh, which needs one.
fn has_credentials(url: &str) -> bool {
    let is_user = |part: &str, rest: &str| url.starts_with("ssh://") && !part.contains(':') && rest.starts_with('@');
    credentials(url).into_iter().any(|at| !is_user(&url[at.clone()], &url[at.end..]))
}

/// Returns why a token or a private key cannot go to this URL, and what to do.
fn token_problem(url: &str) -> Option<(&'static str, &'static str)> {
    let host = |rest: &'_ str| rest.split(['/', ':', '?', '#']).next().map(str::to_owned);
    let Some((scheme, rest)) = url.split_once("://") else {
        // Git takes a colon before the first slash for the end of a host.
        let is_ssh = url.split('/').next().is_some_and(|host| host.contains(':'));
        return (!is_ssh).then_some(NO_TOKEN);
    };
    match scheme {
        "https" | "ssh" => None,
        // Nothing goes over the network.
        "http" if host(rest).is_some_and(|host| matches!(host.as_str(), "127.0.0.1" | "localhost")) => None,
        "http" => Some(("`git` is an `http://` URL, and would send the token in the clear", "write `https://`")),
        _ => Some(NO_TOKEN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_credentials_or_takes_a_token() {
        // The URL, whether it has credentials, and whether a token or a key can go to it.
        let cases = [
            ("https://github.com/me/x.git", false, true),
            ("https://ana:s3cr3t@git.example/x.git", true, true),
            ("https://s3cr3t@git.example/x.git", true, true),
            ("https://git.example/x.git?private_token=s3cr3t", true, true),
            ("git@git.example:me/x.git", false, true),
            ("git.example:me/x.git", false, true),
            ("ana:s3cr3t@git.example:x.git", true, true),
            ("ssh://git@git.example:22/x.git", false, true),
            ("ssh://git:s3cr3t@git.example/x.git", true, true),
            ("http://git.example/x.git", false, false),
            ("http://127.0.0.1.git.example/x.git", false, false),
            ("http://127.0.0.1:8080/x.git", false, true),
            ("http://localhost/x.git", false, true),
            ("git://git.example/x.git", false, false),
            ("file:///srv/a@b/x.git", false, false),
            ("/srv/a:b/x.git", false, false),
        ];
        for (url, with_credentials, takes_token) in cases {
            assert_eq!((has_credentials(url), token_problem(url).is_none()), (with_credentials, takes_token), "{url}");
        }
    }
}
