//! The orderly end of an attempt that leaves its trial to the next one.

use std::io;
use std::time::Duration;

use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Seal;
use spotsweep_seal::{AtEnd, Sealer};
use tokio::time::{Instant, timeout_at};

use crate::claim::{Answer, Claims, Handover, Latest};
use crate::log::say;
use crate::workspace::Workspace;

/// The word that the trial is free is worth this much time even when none is left: without it,
/// the next attempt waits until Batch tells that the instance is gone.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Writes everything out, seals it, unmounts. By then the command and all that it has started
/// are gone. What comes back is the seal, if it holds: no process may be left that could write.
pub(crate) async fn close(workspace: Workspace, sealer: Option<(Sealer, AtEnd)>, deadline: Instant) -> Option<Seal> {
    match timeout_at(deadline, close_orderly(workspace, sealer, deadline)).await {
        Ok(Ok(seal)) => seal,
        Ok(Err(error)) => {
            say(&format!("the workspace was not closed in order: {}", chain(&error)));
            None
        }
        Err(_elapsed) => {
            say("no time left to close the workspace in order");
            None
        }
    }
}

async fn close_orderly(
    workspace: Workspace,
    sealer: Option<(Sealer, AtEnd)>,
    deadline: Instant,
) -> io::Result<Option<Seal>> {
    let sealed = seal(&workspace, sealer, deadline).await;
    // Whatever became of the seal, the volume must be free.
    if workspace.unmount().await? {
        return Ok(sealed?.and_then(|sealer| sealer.summary()));
    }
    say("a process outside this attempt uses the workspace: it is taken out of sight, and the seal is not final");
    let disk = workspace.disk();
    let reopened = sealed.and_then(|sealer| sealer.map_or(Ok(()), |mut sealer| sealer.reopen(&disk)));
    workspace.detach()?;
    reopened.map(|()| None)
}

async fn seal(workspace: &Workspace, sealer: Option<(Sealer, AtEnd)>, deadline: Instant) -> io::Result<Option<Sealer>> {
    workspace.sync().await?;
    let Some((mut sealer, at_end)) = sealer else {
        return Ok(None);
    };
    // Half of what is left is for reading; the rest is for unmounting, and for what goes slowly.
    let now = Instant::now();
    let reading_ends = now + deadline.saturating_duration_since(now) / 2;
    workspace.formats().hurry(reading_ends.into_std());
    let disk = workspace.disk();
    let sealing = tokio::task::spawn_blocking(move || {
        sealer.finish(&disk, &at_end, &|| Instant::now() < reading_ends)?;
        Ok::<_, io::Error>(sealer)
    });
    sealing.await?.map(Some)
}

/// Gives the trial back. Whether the trial is stopped early, so that no further attempt is to start.
pub(crate) async fn release(claims: &Claims, latest: Latest, left: Handover, deadline: Instant) -> bool {
    let limit = deadline.max(Instant::now() + LAST_WORD);
    match timeout_at(limit, claims.release(latest, left)).await {
        Ok(Ok(Answer::Accepted)) => {}
        Ok(Ok(Answer::Stop(why))) => {
            say(&why);
            return true;
        }
        Ok(Ok(Answer::Refused(reason))) => say(&format!("the release was not taken: {reason}")),
        Ok(Err(error)) => say(&format!("the release could not be reported: {}", chain(&error))),
        Err(_elapsed) => say("the release could not be reported in time"),
    }
    false
}
