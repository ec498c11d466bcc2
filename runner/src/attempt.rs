//! One attempt at a trial, from the claim to its end or its release.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use spotsweep_attempt::{Cause, Conclusion, conclusion};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{Outputs, Rollback};
use spotsweep_protocol::runner_log;
use spotsweep_seal::AtEnd;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::child::{Child, Ended};
use crate::claim::{Claims, End, Handover, Latest};
use crate::clients::Clients;
use crate::config::Config;
use crate::descendants;
use crate::exit::{Failure, of_command};
use crate::leave::{close, release};
use crate::log::say;
use crate::notices::Notices;
use crate::prepare::{Ready, prepare};
use crate::reading::Logs;
use crate::record::Recording;
use crate::reports::{self, News};
use crate::sealing::{Sealing, now_ns};
use crate::signals::Signals;
use crate::stalling::Stalling;
use crate::stop::{Stop, closing, interruption};
use crate::trained::Trained;
use crate::upload::{UploadError, Uploader};
use crate::workspace::Workspace;

/// How long unmounting may take where nothing presses.
const UNHURRIED: Duration = Duration::from_secs(60);

/// How long after its announced end an instance may still be there: EC2 promises no time (EC2 user guide, "Spot
/// Instance interruption notices").
const STILL_THERE: Duration = Duration::from_secs(300);

/// What is at hand for the whole attempt.
struct Attempt<'a> {
    config: &'a Config,
    claims: Arc<Claims>,
    signals: Signals,
    notices: Notices,
    /// While it is mounted.
    workspace: Option<Workspace>,
}

/// Runs the trial; returns the job's exit code: the command's own, unless the runner itself has
/// a reason to fail.
pub(crate) async fn run(config: &Config, command: &[String]) -> Result<u8, Failure> {
    let signals = Signals::catch().map_err(|source| Failure::System("catch signals", source))?;
    descendants::adopt().map_err(|source| Failure::System("adopt orphans", source))?;
    let clients = Clients::connect().await?;
    let claims = Claims::new(clients.lambda.clone(), config);
    let claims = Arc::new(claims.map_err(|source| Failure::System("draw a secret", source))?);
    let notices = Notices::watch(clients.imds.clone(), Arc::clone(&claims), config.notice_every).await;
    let mut attempt = Attempt { config, claims, signals, notices, workspace: None };
    if attempt.notices.known().is_some() {
        return Err(attempt.wait_for_the_end().await);
    }
    let ready = match attempt.prepare(&clients, command).await {
        Ok(ready) => ready,
        Err((failure, deadline)) => {
            let failure = attempt.give_up(failure, deadline).await;
            return Err(if attempt.notices.known().is_some() { attempt.wait_for_the_end().await } else { failure });
        }
    };
    match attempt.train(ready).await {
        Ok(trained) => attempt.conclude(trained).await,
        Err(failure) => Err(attempt.give_up(failure, Instant::now() + UNHURRIED).await),
    }
}

impl Attempt<'_> {
    /// Everything before the command, unless the attempt is interrupted; with a failure comes the
    /// time by which everything must be over.
    async fn prepare(&mut self, clients: &Clients, command: &[String]) -> Result<Ready, (Failure, Instant)> {
        let Self { config, claims, signals, notices, workspace } = self;
        tokio::select! {
            prepared = prepare(config, command, clients, claims, workspace) => {
                prepared.map_err(|failure| (failure, Instant::now() + UNHURRIED))
            }
            stop = interruption(signals, Some(notices), config) => Err((stop.cause.into(), stop.deadline)),
        }
    }

    /// Waits until the instance is taken, or the container is stopped. Nothing is claimed, so the workspace goes to
    /// another instance meanwhile. An exit instead would have Batch start the next attempt at once, and where the ECS
    /// agent does not drain (fact 9) on this same instance, until no attempt is left.
    async fn wait_for_the_end(&mut self) -> Failure {
        let announced = self.notices.known().map(|notice| notice.at);
        let until_then = announced.map(|at| at.duration_since(jiff::Timestamp::now()));
        let until_then = until_then.and_then(|left| Duration::try_from(left).ok()).unwrap_or_default();
        say("the instance is about to be taken: nothing starts here, the attempt ends with the instance");
        let reason = tokio::select! {
            signal = self.signals.next() => format!("stopped by signal {}", signal.as_raw()),
            () = sleep(until_then + STILL_THERE) => "EC2 has not taken the instance at the announced time".to_owned(),
        };
        Failure::Interrupted(reason)
    }

    /// Nothing was trained, so what is on the workspace stays sealed as it is.
    async fn give_up(&mut self, failure: Failure, deadline: Instant) -> Failure {
        if let Some(workspace) = self.workspace.take() {
            close(workspace, None, deadline).await;
        }
        if let Failure::Interrupted(_) = failure {
            release(&self.claims, Latest::default(), Handover::default(), deadline).await;
        }
        failure
    }

    /// Runs the command to its end, while its output, metrics, checkpoints and outputs are looked after.
    async fn train(&mut self, ready: Ready) -> Result<Trained, Failure> {
        let Self { config, claims, signals, notices, workspace } = self;
        let Ready {
            command,
            variables,
            launcher,
            place,
            uploader,
            metrics,
            goes_on_with_run,
            rungs,
            stalls,
            mut sealer,
        } = ready;
        if let Some(sealer) = &mut sealer {
            sealer.begin(&place.disk()).map_err(|source| Failure::System("write to the workspace", source))?;
        }
        let (started, started_at) = (Instant::now(), SystemTime::now());
        let logs = Logs::at_start(place.log_folders(), metrics.named.clone(), place.own.clone(), started_at).await?;
        let (child, stdout, stderr) = Child::start(&command, variables, &launcher, place.code.as_deref())?;
        let recording = Recording::start((stdout, stderr), &place, &metrics, config.user.clone(), logs, rungs)?;
        let (figures, rungs) = recording.published();
        let uploading = uploader.run(config.upload_every);
        let sealing = sealer.map(|sealer| Sealing::start(sealer, &place.disk(), config.seal_every));

        let (answer, answered) = oneshot::channel();
        let (stalled, last_sign) = watch::channel(None);
        let news = News { figures, rungs, seal: sealing.as_ref().map(|sealing| sealing.newest.clone()), last_sign };
        let heard = Arc::clone(&recording.heard);
        let stalling = Stalling::new((config, claims), stalls, &place, heard, (news.clone(), stalled));
        let reporting = async {
            reports::report(claims, news, config.report_every, answer).await;
            std::future::pending().await
        };
        let checkpoints = workspace.is_some().then(|| (place.disk(), place.checkpoints.clone()));
        let notices = workspace.is_some().then_some(notices);
        let stop = async {
            tokio::select! {
                stop = interruption(signals, notices, config) => stop,
                Ok(cause) = answered => Stop::answered(cause, config),
                stop = stalling.end() => stop,
            }
        };
        let next_seal = sealing.as_ref().map(Sealing::next_round);
        let stop = async {
            let stop = stop.await;
            if let (Some(limit), Some(next)) = (stop.sealing_first, next_seal) {
                // What takes longer goes on while the command ends.
                let _ = timeout(limit, next.now()).await;
            }
            stop
        };
        let ended = tokio::select! {
            ended = child.supervise(stop, checkpoints.as_ref()) => ended?,
            never = reporting => never,
        };
        let at_end = AtEnd::new(ended.open.clone(), now_ns(), ended.may_be_cut_off());
        let seconds = started.elapsed().as_secs_f64();
        let recorded = recording.finish(ended.stop.as_ref().map(|stop| stop.deadline)).await;
        let sealer = match sealing {
            Some(sealing) => {
                let mut sealer = sealing.stop().await.map_err(|source| Failure::System("seal", source))?;
                sealer.make_room(&place.disk());
                Some((sealer, at_end))
            }
            None => None,
        };
        Ok(Trained { ended, started: started_at, seconds, recorded, place, goes_on_with_run, sealer, uploading })
    }

    /// Ends the attempt as its command has ended.
    async fn conclude(&mut self, trained: Trained) -> Result<u8, Failure> {
        let workspace = self.workspace.take();
        let stop = trained.ended.stop.clone();
        let deadline = stop.as_ref().map_or_else(|| Instant::now() + UNHURRIED, |stop| stop.deadline);
        let cause = stop.map(|stop| stop.cause);
        match (conclusion(trained.ended.code, trained.place.is_finished(), cause.as_ref()), cause) {
            (Conclusion::Refuse, Some(cause)) => {
                // The folder in S3 is the newer attempt's now: nothing more goes there. It waits for
                // the workspace though, with what this one has saved.
                abort(trained.uploading.0).await;
                if let Some(workspace) = workspace {
                    close(workspace, trained.sealer, deadline).await;
                }
                Err(cause.into())
            }
            (Conclusion::Leave, Some(cause)) => {
                self.leave_to_the_next(trained, workspace, deadline, cause.into()).await
            }
            (Conclusion::End(code), cause) => {
                if let Some(Cause::StoppedEarly(why)) = cause {
                    say(&why);
                }
                let ended = Ended { code: code.into(), ..trained.ended };
                self.collect(Trained { ended, ..trained }, workspace).await
            }
            (Conclusion::Succeed, _) => {
                let ended = Ended { stop: None, ..trained.ended };
                self.collect(Trained { ended, ..trained }, workspace).await
            }
            (Conclusion::ByItself | Conclusion::Refuse | Conclusion::Leave, _) => {
                self.conclude_by_itself(trained, workspace).await
            }
        }
    }

    /// The command has ended by itself: that ends the trial, unless it has failed on the checkpoint that it was given.
    async fn conclude_by_itself(&self, mut trained: Trained, workspace: Option<Workspace>) -> Result<u8, Failure> {
        if trained.is_without_its_run() {
            let marked = trained.place.own.go_on_with_no_run();
            marked.map_err(|source| Failure::System("write to the workspace", source))?;
            let reason = "MLflow does not go on with the run of an earlier attempt: the next attempt makes a new one";
            let failure = Failure::Interrupted(reason.to_owned());
            return self.leave_to_the_next(trained, workspace, Instant::now() + UNHURRIED, failure).await;
        }
        let rolled_back = match &workspace {
            Some(_) if trained.ended.code != 0 => trained.roll_back(),
            Some(_) | None => Ok(None),
        };
        let rollback = rolled_back.unwrap_or_else(|error| {
            say(&format!("the newest checkpoint could not be put aside: {error}"));
            None
        });
        match (workspace, rollback) {
            (Some(workspace), Some(rollback)) => {
                let failure = Failure::Interrupted(rollback.to_string());
                let is_stopped = self.leave(trained, workspace, Some(rollback), Instant::now() + UNHURRIED).await;
                if is_stopped { Ok(0) } else { Err(failure) }
            }
            (workspace, _) => self.collect(trained, workspace).await,
        }
    }

    /// Leaves the trial to the next attempt: ends with `failure`, unless the trial is stopped early instead.
    async fn leave_to_the_next(
        &self,
        trained: Trained,
        workspace: Option<Workspace>,
        deadline: Instant,
        failure: Failure,
    ) -> Result<u8, Failure> {
        let is_stopped = match workspace {
            Some(workspace) => self.leave(trained, workspace, None, deadline).await,
            None => self.leave_nothing(trained, deadline).await,
        };
        if is_stopped { Ok(0) } else { Err(failure) }
    }

    /// Leaves the trial, with its workspace, to the next attempt. Whether the trial is stopped early instead.
    async fn leave(
        &self,
        trained: Trained,
        workspace: Workspace,
        rollback: Option<Rollback>,
        deadline: Instant,
    ) -> bool {
        // What it has put into its storage folder is on the workspace: the last attempt uploads it.
        abort(trained.uploading.0).await;
        if let Err(error) = trained.place.own.keep_log(&trained.recorded.log) {
            say(&format!("the log is not kept for the next attempt: {error}"));
        }
        let stalled_seconds = trained.ended.stalled_seconds();
        let seal = close(workspace, trained.sealer, deadline).await;
        let left = Handover { seal, rollback, stalled_seconds };
        release(&self.claims, trained.recorded.latest(), left, deadline).await
    }

    /// Without a workspace the next attempt starts from nothing. What there is goes to S3, for a person to look at.
    async fn leave_nothing(&self, trained: Trained, deadline: Instant) -> bool {
        let Trained { ended, recorded, place, uploading: (uploading, stop_uploading), .. } = trained;
        let (latest, log) = (recorded.latest(), recorded.log);
        // Fails only where the background upload is gone, which the next lines report.
        let _ = stop_uploading.send(());
        let collecting = async {
            let uploader = uploading.await.map_err(UploadError::Broken)?;
            uploader.finish(log, &place.own).await
        };
        match timeout_at(deadline, collecting).await {
            Ok(Ok(_collected)) => {}
            Ok(Err(error)) => say(&format!("what the command leaves is not uploaded: {}", chain(&error))),
            Err(_elapsed) => say("no time left to upload what the command leaves"),
        }
        let left = Handover { stalled_seconds: ended.stalled_seconds(), ..Handover::default() };
        release(&self.claims, latest, left, deadline).await
    }

    /// Uploads what the command leaves, and tells the end.
    async fn collect(&self, trained: Trained, workspace: Option<Workspace>) -> Result<u8, Failure> {
        let Trained { ended, seconds, recorded, place, sealer, uploading: (uploading, stop_uploading), .. } = trained;
        // Fails only where the background upload is gone, which the line after tells.
        let _ = stop_uploading.send(());
        let stopped = ended.stop.as_ref().and_then(Stop::reason).map(|reason| reason.to_string());
        let error = stopped.or_else(|| (ended.code != 0).then(|| recorded.error()).flatten());
        let deadline = ended.stop.as_ref().filter(|stop| stop.is_pressing()).map(|stop| stop.deadline);
        let latest = recorded.latest();
        let (log, unread) = (recorded.log, recorded.unread);
        let has_succeeded = ended.code == 0 && ended.stop.is_none();
        let collecting = async {
            let mut uploader = uploading.await?;
            if has_succeeded {
                uploader.add_checkpoints(&place).await?;
            }
            Ok(Outputs { unread, ..uploader.finish(log, &place.own).await? })
        };
        let collected = match deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                timeout_at(deadline - closing(left), collecting).await.unwrap_or(Err(UploadError::NoTime))
            }
            None => reports::during(&self.claims, collecting).await,
        };
        if let Some(workspace) = workspace {
            // A retry may go on from what a failed command leaves.
            let sealer = sealer.filter(|_| ended.code != 0);
            close(workspace, sealer, deadline.unwrap_or_else(|| Instant::now() + UNHURRIED)).await;
        }
        conclude(&self.claims, &ended, latest, collected, seconds, error).await
    }
}

/// Ends a background upload, and waits until it has let go of its files.
async fn abort(uploading: JoinHandle<Uploader>) {
    uploading.abort();
    let _ = uploading.await;
}

/// Tells the control plane how it went, and decides the job's exit code.
async fn conclude(
    claims: &Claims,
    ended: &Ended,
    latest: Latest,
    collected: Result<Outputs, UploadError>,
    seconds: f64,
    error: Option<String>,
) -> Result<u8, Failure> {
    let (outputs, failure) = match collected {
        Ok(outputs) => (outputs, None),
        Err(error) => (Outputs::default(), Some(Failure::from(error))),
    };
    let code = match &failure {
        // The command's own failure says more than what it did to the outputs.
        Some(failure) if ended.code == 0 => failure.code(),
        Some(_) | None => of_command(ended.code),
    };
    let error = error.or_else(|| failure.as_ref().map(|failure| chain(failure)));
    say(&runner_log::ended(ended.code, seconds, outputs.files, outputs.bytes));
    if ended.code != 0 && i32::from(code) != ended.code {
        say(&format!("exit code {} is that of an interrupted attempt: the job ends with {code}", ended.code));
    }
    let end = End { exit_code: code.into(), outputs, seconds, error, stalled_seconds: ended.stalled_seconds() };
    match claims.end(latest, end).await {
        Ok(None) => {}
        Ok(Some(failure)) => return Err(failure),
        // Batch's own event carries the exit code all the same.
        Err(error) => say(&format!("the end could not be reported: {}", chain(&error))),
    }
    match failure {
        Some(failure) if ended.code == 0 => Err(failure),
        Some(failure) => {
            say(&chain(&failure));
            Ok(code)
        }
        None => Ok(code),
    }
}
