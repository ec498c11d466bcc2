//! Metric reports while the command runs. They never harm the training: a failed report is logged, and the next one
//! makes up for it. Only a refusal has an effect.

use std::time::Duration;

use spotsweep_attempt::{Answer, Event};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Seal;
use spotsweep_protocol::rungs::Reached;
use spotsweep_training_metrics::Figures;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::claim::{Claims, Latest};
use crate::log::say;

/// The values that change while the command runs.
#[derive(Clone)]
pub(crate) struct News {
    pub(crate) figures: watch::Receiver<Figures>,
    /// All rungs that the trial has reached.
    pub(crate) rungs: watch::Receiver<Vec<Reached>>,
    /// Absent without a workspace.
    pub(crate) seal: Option<watch::Receiver<Option<Seal>>>,
    /// The training's last sign of progress, while it is stalled. The look that finds a change reports it.
    pub(crate) last_sign: watch::Receiver<Option<Instant>>,
}

impl News {
    /// Waits at most `longest` for something new; false if nothing new can come any more.
    async fn changed_within(&mut self, longest: Duration) -> bool {
        timeout(longest, self.changed()).await.unwrap_or(true)
    }

    async fn changed(&mut self) -> bool {
        match &mut self.seal {
            Some(seal) => tokio::select! {
                changed = self.figures.changed() => changed.is_ok(),
                changed = seal.changed() => changed.is_ok(),
            },
            None => self.figures.changed().await.is_ok(),
        }
    }

    /// What the training has reported, the newest seal, and for how many seconds the training is stalled.
    pub(crate) fn take(&mut self) -> (Latest, Option<Seal>, Option<u64>) {
        let seal = self.seal.as_mut().and_then(|seal| seal.borrow_and_update().clone());
        let stalled_seconds = self.last_sign.borrow().map(|since| since.elapsed().as_secs());
        let rungs = self.rungs.borrow_and_update().clone();
        (Latest { metrics: self.figures.borrow_and_update().metrics(), rungs }, seal, stalled_seconds)
    }

    /// Waits until the trial reaches another rung: the control plane then compares it with others, and may stop it.
    async fn reached_rung(&mut self) {
        if self.rungs.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The longest pause, as a multiple of the shortest.
const LONGEST: u32 = 4;

/// The pause after a report: a twentieth of the attempt's time so far. So the figures of a short training change often,
/// and a long training does not cost more.
fn pause(every: Duration, elapsed: Duration) -> Duration {
    (elapsed / 20).clamp(every, every.saturating_mul(LONGEST))
}

/// Time between two reports of how far data sets are fetched.
const FETCH_EVERY: Duration = Duration::from_secs(15);

/// Reports repeatedly, without figures, while `work` runs instead of the command. Sends an event if another attempt has
/// claimed the trial meanwhile. Any other answer comes again with the attempt's last report.
pub(crate) async fn during<T>(
    claims: &Claims,
    events: &mpsc::UnboundedSender<Event>,
    work: impl Future<Output = T>,
) -> T {
    let reporting = async {
        let mut reported = Instant::now();
        loop {
            sleep(FETCH_EVERY.min(claims.report_within)).await;
            let answer = match claims.report_fetch().await {
                Some(answer) => answer,
                None if reported.elapsed() < claims.report_within => continue,
                None => claims.report(Latest::default(), None, None).await,
            };
            reported = Instant::now();
            match answer {
                // Sending fails only if the attempt is over.
                Ok(Answer::Refused(reason)) => drop(events.send(Event::Fenced(reason))),
                Ok(Answer::Accepted | Answer::Stop(_) | Answer::Unavailable(_) | Answer::Waiting { .. }) => {}
                Err(error) => say(&format!("not reported that the runner works: {}", chain(&error))),
            }
        }
    };
    tokio::select! {
        done = work => done,
        never = reporting => never,
    }
}

/// Reports changed figures and seals, at first once per `every` and later less often, but a rung at once. If nothing
/// changes, it reports that after the longest time allowed between two reports. Returns when the answer is that the
/// attempt has to stop.
pub(crate) async fn report(claims: &Claims, mut news: News, every: Duration, events: &mpsc::UnboundedSender<Event>) {
    let began = Instant::now();
    while news.changed_within(claims.report_within).await {
        let (latest, seal, stalled_seconds) = news.take();
        match claims.report(latest, seal, stalled_seconds).await {
            Ok(Answer::Accepted | Answer::Unavailable(_) | Answer::Waiting { .. }) => {}
            // Sending fails only if the attempt is over.
            Ok(Answer::Stop(why)) => {
                let _ = events.send(Event::StoppedEarly(why));
                return;
            }
            Ok(Answer::Refused(reason)) => {
                let _ = events.send(Event::Fenced(reason));
                return;
            }
            Err(error) => {
                say(&format!("metrics not reported, training goes on: {}", chain(&error)));
                news.figures.mark_changed();
            }
        }
        tokio::select! {
            () = sleep(pause(every, began.elapsed()).min(claims.report_within)) => {}
            () = news.reached_rung() => news.figures.mark_changed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_grow_rarer_within_bounds() {
        let pauses =
            [0, 300, 600, 1200, 36_000].map(|elapsed| pause(Duration::from_secs(15), Duration::from_secs(elapsed)));
        assert_eq!(pauses.map(|pause| pause.as_secs()), [15, 15, 30, 60, 60]);
    }
}
