//! Leaves out files that look like secrets. Everybody who can read the bucket, and each training, could read them.

use std::io::{self, Read as _};
use std::path::Path;

use spotsweep_beneath::Folder;

use crate::content::Content;
use crate::error::ListError;
use crate::left_out::{Finding, LeftOut, Reason, Secret};
use crate::listing::Listing;
use crate::tokens;
use crate::walk::Found;

/// How much of a file is searched, in bytes.
const SEARCHED_BYTES: u64 = 1 << 20;
/// A file with a zero in its first bytes is no text, as for git.
const TEXT_BYTES: u64 = 8_000;

/// The endings of source files. Without such a file the training probably fails.
const SOURCES: [&str; 34] = [
    "bash", "c", "cc", "cfg", "conf", "cpp", "cu", "cuh", "go", "h", "hpp", "ini", "ipynb", "java", "jl", "js", "json",
    "jsonc", "lua", "pl", "py", "pyi", "pyx", "r", "rb", "rs", "sh", "sql", "toml", "ts", "txt", "yaml", "yml", "zsh",
];
/// The names of source files without such an ending.
const SOURCE_NAMES: [&str; 3] = ["dockerfile", "makefile", "justfile"];

/// Returns the listing of what is packed. A secret is only sent if `include` matches the file itself: a person who
/// includes a folder may not know that there is a secret in it.
pub(crate) fn leave_out(found: Vec<Found>, left_out: Vec<LeftOut>, folder: &Folder) -> Result<Listing, ListError> {
    let mut listing = Listing { left_out, ..Listing::default() };
    for Found { item, is_named, .. } in found {
        let secret = match item.content {
            Content::Link { .. } => None,
            Content::File { .. } => secret(folder, &item.path)?,
        };
        let Some(secret) = secret else {
            listing.files.push(item);
            continue;
        };
        let path = item.path.clone();
        if is_named {
            listing.findings.push(Finding { path, secret, is_sent: true });
            listing.files.push(item);
        } else if secret.line.is_some() && is_source(&path) {
            listing.findings.push(Finding { path, secret, is_sent: false });
        } else {
            listing.left_out.push(LeftOut { path, reason: Reason::Secret(secret) });
        }
    }
    Ok(listing)
}

fn secret(folder: &Folder, path: &str) -> Result<Option<Secret>, ListError> {
    if let Some(what) = by_name(path) {
        return Ok(Some(Secret { what, line: None }));
    }
    let text = text(folder, path).map_err(|source| ListError::Read { path: path.to_owned(), source })?;
    Ok(by_content(path, &text))
}

/// Returns the start of a text file, and nothing of another one.
fn text(folder: &Folder, path: &str) -> io::Result<Vec<u8>> {
    let mut file = folder.open(Path::new(path))?;
    let mut text = Vec::new();
    file.by_ref().take(TEXT_BYTES).read_to_end(&mut text)?;
    if text.contains(&0) {
        return Ok(Vec::new());
    }
    file.take(SEARCHED_BYTES - TEXT_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns what a file is whose name says that it has a secret.
pub(crate) fn by_name(path: &str) -> Option<&'static str> {
    let path = path.to_ascii_lowercase();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let kind = name.strip_prefix(".env.");
    let is_example = kind.is_some_and(|kind| matches!(kind, "example" | "template" | "sample"));
    match name {
        ".env" => Some("a file of environment variables"),
        _ if kind.is_some() && !is_example => Some("a file of environment variables"),
        "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ecdsa_sk" | "id_ed25519" | "id_ed25519_sk" => Some("an SSH key"),
        ".netrc" | "_netrc" | ".git-credentials" | ".pgpass" => Some("a file of passwords"),
        "kaggle.json" => Some("a key of Kaggle"),
        "credentials" if folder == ".aws" || folder.ends_with("/.aws") => Some("a file of AWS access keys"),
        _ if name.ends_with(".p12") || name.ends_with(".pfx") => Some("a key store"),
        _ => None,
    }
}

/// Returns the first secret in a text.
pub(crate) fn by_content(path: &str, text: &[u8]) -> Option<Secret> {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_account = name.ends_with(".json") && has(text, b"\"service_account\"");
    let mut rest = text;
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let what = match name {
            ".npmrc" if has(line, b"_authToken") || has(line, b"_password") || has(line, b"_auth=") => {
                Some("a password of npm")
            }
            ".pypirc" if line.trim_ascii_start().starts_with(b"password") => Some("a password of a package index"),
            _ if is_account && has(line, b"\"private_key\"") => Some("the key of a service account"),
            _ if tokens::has_private_key(rest) => Some("a private key"),
            _ => tokens::in_line(line),
        };
        rest = rest.get(line.len() + 1..).unwrap_or_default();
        if let Some(what) = what {
            return Some(Secret { what, line: Some(at as u64 + 1) });
        }
    }
    None
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.map_or(SOURCE_NAMES.contains(&name.as_str()), |ending| SOURCES.contains(&ending))
}
