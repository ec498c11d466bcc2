//! The commands that an attempt runs before the training: `setup` of the sweep file.
//!
//! They run as the training's user, in the folder of the code, with the training's environment. The training has not
//! begun, so their time is no training time, and their silence is no stall.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::descendants;
use crate::error_line::error_in;
use crate::exit::Failure;
use crate::launch::Launcher;
use crate::log::{mask, say};
use crate::output::own_stream;
use crate::process_group::Group;

/// How much of the output's end is searched for the reason of a failure.
const TAIL_BYTES: usize = 16 * 1024;
const READ_BYTES: usize = 16 * 1024;
/// How much of a command is shown in messages.
const SHOWN_CHARS: usize = 100;
/// How long the rest of a command's output is read after its end.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Runs the commands one after the other, until one fails.
pub(crate) async fn run(
    commands: &[String],
    variables: &[(String, String)],
    launcher: &Launcher,
    folder: Option<&Path>,
) -> Result<(), Failure> {
    for command in commands {
        say(&format!("setup: {}", shown(command)));
        let (code, output) = one(command, variables, launcher, folder).await?;
        if code != 0 {
            let reason = error_in(&output).unwrap_or_else(|| "it has printed nothing".to_owned());
            return Err(Failure::Setup { command: shown(command), code, reason });
        }
    }
    Ok(())
}

/// Runs one command to its end. Returns its exit code and the end of its output.
async fn one(
    command: &str,
    variables: &[(String, String)],
    launcher: &Launcher,
    folder: Option<&Path>,
) -> Result<(i32, Vec<u8>), Failure> {
    let failed = |source| Failure::System("run the setup", source);
    let words = ["sh", "-c", command].map(str::to_owned);
    let mut started = Command::from(launcher.command(&words).map_err(failed)?);
    started.current_dir(folder.unwrap_or(Path::new("."))).envs(variables.iter().cloned());
    started.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = started.spawn().map_err(failed)?;
    let group = Group::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let onward = (own_stream(std::io::stdout())?, own_stream(std::io::stderr())?);
    let mut tails = (Vec::new(), Vec::new());
    let status = {
        let passing =
            async { tokio::join!(pass(stdout, onward.0, &mut tails.0), pass(stderr, onward.1, &mut tails.1)) };
        tokio::pin!(passing);
        tokio::select! {
            _ = &mut passing => child.wait().await.map_err(failed)?,
            status = child.wait() => {
                // A process that outlives the command may hold its output open.
                let _ = timeout(DRAIN_LIMIT, passing).await;
                status.map_err(failed)?
            }
        }
    };
    // What the command has left running must not change files under the training.
    drop(group);
    if !descendants::kill().await {
        say("something that the setup started cannot be killed");
    }
    let (mut output, errors) = tails;
    output.extend(errors);
    Ok((code_of(status), output))
}

/// Passes a stream on without the secrets in it, and keeps its end.
async fn pass(from: Option<impl AsyncRead + Unpin>, mut onward: impl AsyncWrite + Unpin, tail: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let (mut buffer, mut mask) = (vec![0; READ_BYTES], mask().stream());
    loop {
        let count = from.read(&mut buffer).await.unwrap_or(0);
        let shown = if count > 0 { mask.push(&buffer[..count]) } else { mask.finish() };
        tail.extend_from_slice(&shown);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        let _ = onward.write_all(&shown).await;
        let _ = onward.flush().await;
        if count == 0 {
            return;
        }
    }
}

/// The exit code; 128 + signal if a signal ended the command, as in shells.
fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// A command on one line, cut.
fn shown(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
