//! Runs a program with a time limit, without variables that lead it to files of the training.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::descendants;
use crate::process_group::Group;

/// The limit for each stream. A program that writes more gets a closed pipe.
const MOST_BYTES: u64 = 64 * 1024;

/// How a program has ended, and the beginning of its output.
pub(super) struct Said {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs `command`. Returns `None` if it has not ended within `limit` and was killed.
pub(super) async fn run(mut command: Command, limit: Duration) -> io::Result<Option<Said>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let (stdout, stderr) = (beginning(child.stdout.take()), beginning(child.stderr.take()));
    let ended = async { tokio::try_join!(child.wait(), stdout, stderr) };
    if let Ok(ended) = timeout(limit, ended).await {
        let (status, stdout, stderr) = ended?;
        return Ok(Some(Said { status, stdout, stderr }));
    }
    drop((group, child));
    // Kills processes that have left the group.
    descendants::kill().await;
    Ok(None)
}

async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(MOST_BYTES).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Variables of the runner that a program gets with another value (`Some`) or not at all (`None`).
pub(super) type Changed = Vec<(OsString, Option<OsString>)>;

/// Changes the variables of a program.
pub(super) fn change(command: &mut Command, variables: &Changed) {
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// The variables that lead a program into one of these `folders`, which earlier attempts may have written: a home, a
/// library, a folder of programs. `PATH` keeps its other folders; all other such variables are removed.
pub(super) fn led_elsewhere(variables: impl Iterator<Item = (OsString, OsString)>, folders: &[&Path]) -> Changed {
    let names_one = |value: &OsStr| {
        let holds = |folder: &[u8]| value.as_bytes().windows(folder.len()).any(|part| part == folder);
        folders.iter().any(|folder| holds(folder.as_os_str().as_bytes()))
    };
    let changed = |(name, value): (OsString, OsString)| {
        if !names_one(&value) {
            return None;
        }
        let others = std::env::split_paths(&value).filter(|path| !names_one(path.as_os_str()));
        let rest = (name == "PATH").then(|| std::env::join_paths(others).ok()).flatten();
        Some((name, rest))
    };
    variables.filter_map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_leads_to_what_an_attempt_has_left() {
        let variables = [
            ("PATH", "/usr/bin:/dltraining/bin:/bin:/storage/7/bin"),
            ("HOME", "/dltraining"),
            ("LD_PRELOAD", "/usr/lib/a.so:/dltraining/b.so"),
            ("GIT_SSH_COMMAND", "ssh -i /run/key"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into())).into_iter();
        let changed = led_elsewhere(variables, &["/dltraining".as_ref(), "/storage".as_ref()]);
        let expected = [("PATH", Some("/usr/bin:/bin")), ("HOME", None), ("LD_PRELOAD", None)];
        assert_eq!(changed, expected.map(|(name, value)| (name.into(), value.map(OsString::from))));
    }
}
