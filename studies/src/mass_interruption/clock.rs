//! The World's clock, on which futures sleep.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_simulation::cloud::Cloud;

/// A function or a runner that goes on when it is polled.
pub(super) type Going = Pin<Box<dyn Future<Output = ()>>>;

/// The time until which the future that is being polled wants to sleep.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<Option<Timestamp>>);

impl Asked {
    pub(super) fn take(&self) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Clock<'a> {
    pub(super) cloud: &'a Cloud,
    pub(super) asked: &'a Asked,
}

impl Clock<'_> {
    pub(super) fn now(&self) -> Timestamp {
        self.cloud.world().now()
    }

    pub(super) async fn sleep(&self, time: Duration) {
        let until = self.now() + time;
        poll_fn(|_| {
            if self.now() >= until {
                return Poll::Ready(());
            }
            *self.asked.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
            Poll::Pending
        })
        .await;
    }
}
