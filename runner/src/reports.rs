//! Metric reports while the command runs. They never harm the training: a failed one is logged
//! and made up for by the next; only a refused one means something.

use std::time::Duration;

use spotsweep::claim::Seal;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::claim::{Answer, Claims};
use crate::exit::{chain, say};
use crate::metrics::Figures;

/// What changes while the command runs.
pub(crate) struct News {
    pub(crate) figures: watch::Receiver<Figures>,
    /// Absent without a workspace.
    pub(crate) seal: Option<watch::Receiver<Option<Seal>>>,
}

impl News {
    /// Waits for something new; false where there will be nothing any more.
    async fn changed(&mut self) -> bool {
        match &mut self.seal {
            Some(seal) => tokio::select! {
                changed = self.figures.changed() => changed.is_ok(),
                changed = seal.changed() => changed.is_ok(),
            },
            None => self.figures.changed().await.is_ok(),
        }
    }

    fn take(&mut self) -> (Figures, Option<Seal>) {
        let seal = self.seal.as_mut().and_then(|seal| seal.borrow_and_update().clone());
        (self.figures.borrow_and_update().clone(), seal)
    }
}

/// Reports changed figures and seals, at most once per `every`; tells `fence` of a refusal and ends.
pub(crate) async fn report(claims: &Claims, mut news: News, every: Duration, fence: oneshot::Sender<String>) {
    while news.changed().await {
        let (figures, seal) = news.take();
        match claims.report(figures.metrics(), seal).await {
            Ok(Answer::Accepted) => {}
            Ok(Answer::Refused(reason)) => {
                let _ = fence.send(reason);
                return;
            }
            Err(error) => {
                say(&format!("metrics not reported, training goes on: {}", chain(&error)));
                news.figures.mark_changed();
            }
        }
        sleep(every).await;
    }
}
