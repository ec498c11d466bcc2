//! The end of an attempt after the command has ended: upload, seal, unmount and report, as far as the machine decides.

use std::io;
use std::time::Duration;

use spotsweep_attempt::{Answer, Event, Stop, UPLOAD, of_command};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{Outputs, Seal};
use spotsweep_protocol::runner_log;
use spotsweep_seal::{AtEnd, Sealer};
use tokio::time::{Instant, sleep};

use crate::attempt::Attempt;
use crate::claim::{CallError, End, Handover, Latest};
use crate::descendants;
use crate::log::{mask, say};
use crate::reports;
use crate::trained::Trained;
use crate::upload::UploadError;
use crate::workspace::Workspace;

impl Attempt<'_> {
    /// Uploads the command's outputs.
    pub(crate) async fn collect(&mut self, has_succeeded: bool) -> Event {
        let Some(trained) = &mut self.trained else { return Event::Failed { is_left: false } };
        self.not_uploaded = Some(UploadError::NoTime.into());
        let Trained { place, recorded, uploading, .. } = trained;
        let collecting = async {
            let mut uploader = uploading.last_round().await?;
            if has_succeeded {
                uploader.add_checkpoints(place).await?;
            }
            let unread = recorded.unread.clone();
            // If there is no time for all of this, the next attempt continues the log.
            Ok::<_, UploadError>(Outputs { unread, ..uploader.finish(recorded.log.clone(), &place.own).await? })
        };
        match reports::during(&self.claims, &self.events, collecting).await {
            Ok(outputs) => (trained.outputs, self.not_uploaded) = (outputs, None),
            Err(error) => self.not_uploaded = Some(error.into()),
        }
        Event::Collected { is_whole: self.not_uploaded.is_none() }
    }

    /// Seals the workspace. At this time the command and all that it has started are gone.
    pub(crate) async fn seal(&mut self, reading_until: Instant, is_left: bool) -> Event {
        let (Some(trained), Some(workspace)) = (&mut self.trained, &self.workspace) else { return Event::Sealed };
        // The contents of its storage folder are on the workspace, and the last attempt uploads them.
        trained.uploading.abort().await;
        if is_left && let Err(error) = trained.place.own.keep_log(&trained.recorded.log) {
            say(&format!("the log is not kept for the next attempt: {error}"));
        }
        if let Some((sealer, at_end)) = trained.sealer.take() {
            trained.sealed = Some(seal(workspace, sealer, at_end, reading_until).await);
        }
        Event::Sealed
    }

    /// Unmounts the workspace, even if the seal failed. The seal is valid only if no process is left that could write.
    pub(crate) async fn unmount(&mut self) -> Event {
        if let Some(trained) = &mut self.trained {
            trained.uploading.abort().await;
        } else if !descendants::kill().await {
            say("something that the setup started cannot be killed");
        }
        let Some(workspace) = &self.workspace else { return Event::Unmounted };
        let sealed = match &mut self.trained {
            Some(Trained { sealer: Some(unsealed), .. }) => Some(close(workspace, unsealed).await),
            Some(trained) => trained.sealed.take(),
            None => None,
        };
        match unmount(workspace, sealed).await {
            Ok(seal) => self.left.seal = seal,
            Err(error) => say(&format!("the workspace was not closed in order: {}", chain(&error))),
        }
        self.workspace = None;
        Event::Unmounted
    }

    /// Reports the release.
    pub(crate) async fn release(&mut self, stop: Option<&Stop>) -> Event {
        if let Some(error) = self.not_uploaded.take() {
            say(&format!("what the command leaves is not uploaded: {}", chain(&error)));
        }
        let latest = self.trained.as_ref().map(|trained| trained.recorded.latest()).unwrap_or_default();
        let stalled_seconds = stop.and_then(Stop::stalled_seconds);
        let left = Handover { stalled_seconds, ..std::mem::take(&mut self.left) };
        answered("release", self.claims.release(latest, left).await)
    }

    /// Reports the end, after a pause of `after`.
    pub(crate) async fn end(&mut self, code: u8, after: Duration, stop: Option<&Stop>) -> Event {
        sleep(after).await;
        let Some(trained) = &self.trained else { return self.end_untrained(code).await };
        let outputs = trained.outputs.clone();
        // The command's exit code, unless the trial ends with another one.
        let own = match trained.ended.code {
            _not_uploaded if code == UPLOAD && self.not_uploaded.is_some() => 0,
            own if of_command(own) == code => own,
            _ended => code.into(),
        };
        let stopped = stop.and_then(Stop::reason).map(|reason| reason.to_string());
        let error = stopped.or_else(|| (own != 0).then(|| trained.recorded.error()).flatten());
        let error = error.or_else(|| self.not_uploaded.as_ref().map(|failure| chain(failure)));
        let error = error.map(|error| mask().hide(&error));
        if after.is_zero() {
            say(&runner_log::ended(own, trained.seconds, outputs.files, outputs.bytes));
        }
        if after.is_zero() && own != 0 && i32::from(code) != own {
            say(&format!("exit code {own} is that of an interrupted attempt: the job ends with {code}"));
        }
        let stalled_seconds = stop.and_then(Stop::stalled_seconds);
        let end = End { exit_code: code.into(), outputs, seconds: trained.seconds, error, stalled_seconds };
        let answer = self.claims.end(trained.recorded.latest(), end).await;
        self.ended(answer)
    }

    /// Reports the end of a trial that could not be prepared.
    async fn end_untrained(&mut self, code: u8) -> Event {
        let error = self.failure.as_ref().map(|failure| mask().hide(&chain(failure)));
        let end =
            End { exit_code: code.into(), outputs: Outputs::default(), seconds: 0.0, error, stalled_seconds: None };
        let answer = self.claims.end(Latest::default(), end).await;
        self.ended(answer)
    }

    fn ended(&mut self, answer: Result<Answer, CallError>) -> Event {
        if let Ok(Answer::Waiting { reason, .. }) = &answer
            && *reason != self.waits_for
        {
            say(&format!("the attempt waits: {reason}"));
            self.waits_for.clone_from(reason);
        }
        answered("end", answer)
    }
}

/// Logs the answer to a release or an end.
fn answered(what: &str, answer: Result<Answer, CallError>) -> Event {
    Event::Answered(match answer {
        Ok(answer) => {
            match &answer {
                Answer::Stop(why) if what == "release" => say(why),
                Answer::Refused(reason) if what == "release" => say(&format!("the release was not taken: {reason}")),
                Answer::Accepted
                | Answer::Stop(_)
                | Answer::Refused(_)
                | Answer::Unavailable(_)
                | Answer::Waiting { .. } => {}
            }
            Some(answer)
        }
        Err(error) => {
            say(&format!("the {what} could not be reported: {}", chain(&error)));
            None
        }
    })
}

async fn seal(workspace: &Workspace, mut sealer: Sealer, at_end: AtEnd, until: Instant) -> io::Result<Sealer> {
    workspace.sync().await?;
    workspace.formats().hurry(until.into_std());
    let disk = workspace.disk();
    let sealing = tokio::task::spawn_blocking(move || {
        sealer.finish(&disk, &at_end, &|| Instant::now() < until)?;
        Ok::<_, io::Error>(sealer)
    });
    sealing.await?
}

/// Closes a workspace without its last seal: the trial has ended.
async fn close(workspace: &Workspace, (sealer, at_end): &mut (Sealer, AtEnd)) -> io::Result<Sealer> {
    workspace.sync().await?;
    sealer.close(&workspace.disk(), at_end)?;
    Ok(sealer.clone())
}

/// Unmounts, and returns the seal if it is valid.
async fn unmount(workspace: &Workspace, sealed: Option<io::Result<Sealer>>) -> io::Result<Option<Seal>> {
    let synced = workspace.sync().await;
    if workspace.unmount().await? {
        synced?;
        return Ok(sealed.transpose()?.and_then(|sealer| sealer.summary()));
    }
    say("a process outside this attempt uses the workspace: it is taken out of sight, and the seal is not final");
    let disk = workspace.disk();
    let reopened = sealed.transpose().and_then(|sealer| sealer.map_or(Ok(()), |mut sealer| sealer.reopen(&disk)));
    workspace.detach()?;
    reopened.map(|()| None)
}
