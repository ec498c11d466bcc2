//! Metric reports while the command runs. They never harm the training: a failed one is logged
//! and made up for by the next; only a refused one means something.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::claim::{Answer, Claims};
use crate::exit::{chain, say};
use crate::metrics::Figures;

/// Reports changed figures, at most once per `every`; tells `fence` of a refusal and ends.
pub(crate) async fn report(
    claims: &Claims,
    mut figures: watch::Receiver<Figures>,
    every: Duration,
    fence: oneshot::Sender<String>,
) {
    while figures.changed().await.is_ok() {
        let metrics = figures.borrow_and_update().metrics();
        match claims.report(metrics).await {
            Ok(Answer::Accepted) => {}
            Ok(Answer::Refused(reason)) => {
                let _ = fence.send(reason);
                return;
            }
            Err(error) => {
                say(&format!("metrics not reported, training goes on: {}", chain(&error)));
                figures.mark_changed();
            }
        }
        sleep(every).await;
    }
}
