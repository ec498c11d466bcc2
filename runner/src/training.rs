//! Runs the command from its start to its end, and handles its output, metrics, checkpoints and outputs meanwhile.

use std::sync::Arc;
use std::time::SystemTime;

use spotsweep_attempt::Event;
use spotsweep_protocol::claim::{Outputs, Rollback};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::attempt::Attempt;
use crate::child::Child;
use crate::exit::Failure;
use crate::log::say;
use crate::prepare::Ready;
use crate::reading::Logs;
use crate::record::Recording;
use crate::reports::{self, News};
use crate::sealing::{Sealing, now_ns};
use crate::stalling::Stalling;
use crate::stop;
use crate::trained::{Trained, Uploading};

impl Attempt<'_> {
    /// Runs the command to its end. The state machine's times count from when the attempt `began`.
    pub(crate) async fn train(&mut self, began: Instant) -> Event {
        let Some(ready) = self.ready.take() else { return Event::Failed { is_left: false } };
        match self.run(ready, began).await {
            Ok(trained) => {
                let (code, is_finished) = (trained.ended.code, trained.place.is_finished());
                let is_by_itself = trained.ended.is_by_itself;
                self.trained = Some(trained);
                Event::CommandEnded { code, is_finished, is_by_itself }
            }
            Err(failure) => self.fails(failure),
        }
    }

    async fn run(&mut self, ready: Ready, began: Instant) -> Result<Trained, Failure> {
        let (config, claims, workspace) = (self.config, &self.claims, &self.workspace);
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
            data: _in_use,
        } = ready;
        if let Some(sealer) = &mut sealer {
            sealer.begin(&place.disk()).map_err(|source| Failure::System("write to the workspace", source))?;
        }
        let (started, started_at) = (Instant::now(), SystemTime::now());
        let logs = Logs::at_start(place.log_folders(), metrics.named.clone(), place.own.clone(), started_at).await?;
        let (child, stdout, stderr) = Child::start(&command, variables, &launcher, place.code.as_deref())?;
        let recording = Recording::start((stdout, stderr), &place, &metrics, config.user.clone(), logs, rungs)?;
        let (figures, rungs) = recording.published();
        let uploading = Uploading::start(uploader, config.upload_every);
        let sealing = sealer.map(|sealer| Sealing::start(sealer, &place.disk(), config.seal_every));

        let (stalled, last_sign) = watch::channel(None);
        let news = News { figures, rungs, seal: sealing.as_ref().map(|sealing| sealing.newest.clone()), last_sign };
        let output_bytes = Arc::clone(&recording.output_bytes);
        let stalling = Stalling::new(claims, stalls, &place, output_bytes, (news.clone(), stalled));
        let looking = async {
            // A training that has to stop may be silent.
            tokio::select! {
                // Sending fails only if the attempt is over.
                stalled = stalling.end() => drop(self.events.send(stalled)),
                _ = stop::asked(self.orders.clone()) => {}
            }
            std::future::pending().await
        };
        let reporting = async {
            reports::report(claims, news, config.report_every, &self.events).await;
            std::future::pending().await
        };
        let checkpoints = workspace.is_some().then(|| (place.disk(), place.checkpoints.clone()));
        let next_seal = sealing.as_ref().map(Sealing::next_round);
        let stop = async {
            let stop = stop::asked(self.orders.clone()).await;
            stop::announce(&stop, config);
            if let (Some(limit), Some(next)) = (stop.sealing_first, next_seal) {
                // A seal that takes longer continues while the command ends.
                let _ = timeout(limit, next.now()).await;
            }
            stop
        };
        let ended = tokio::select! {
            ended = child.supervise(stop, self.orders.clone(), checkpoints.as_ref()) => ended?,
            never = reporting => never,
            never = looking => never,
        };
        let at_end = ended.at_end(now_ns());
        let seconds = started.elapsed().as_secs_f64();
        let deadline = self.orders.borrow().as_ref().map(|order| began + order.stop.deadline);
        let recorded = recording.finish(deadline).await;
        let sealer = match sealing {
            Some(sealing) => {
                let mut sealer = sealing.stop().await.map_err(|source| Failure::System("seal", source))?;
                sealer.make_room(&place.disk());
                Some((sealer, at_end))
            }
            None => None,
        };
        let (started, sealed, outputs) = (started_at, None, Outputs::default());
        Ok(Trained { ended, started, seconds, recorded, place, goes_on_with_run, sealer, sealed, uploading, outputs })
    }

    /// The command has failed by itself. That ends the trial, unless the cause is the checkpoint it was given, or the
    /// run that MLflow should go on with.
    pub(crate) fn judge(&mut self) -> Event {
        let Some(trained) = &mut self.trained else { return Event::Failed { is_left: false } };
        if trained.is_without_its_run() {
            if let Err(source) = trained.place.own.go_on_with_no_run() {
                return self.fails(Failure::System("write to the workspace", source));
            }
            let reason = "MLflow does not go on with the run of an earlier attempt: the next attempt makes a new one";
            return self.goes_back(reason.to_owned(), None);
        }
        let rolled_back = if self.workspace.is_some() { trained.roll_back() } else { Ok(None) };
        match rolled_back {
            Ok(Some(rollback)) => self.goes_back(rollback.to_string(), Some(rollback)),
            Ok(None) => Event::Judged { goes_back: false },
            Err(error) => {
                say(&format!("the newest checkpoint could not be put aside: {error}"));
                Event::Judged { goes_back: false }
            }
        }
    }

    fn goes_back(&mut self, reason: String, rollback: Option<Rollback>) -> Event {
        self.failure = Some(Failure::Interrupted(reason));
        self.left.rollback = rollback;
        Event::Judged { goes_back: true }
    }
}
