//! Time that passes only when everybody waits: futures that sleep on a virtual clock.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;

type Going = Pin<Box<dyn Future<Output = ()>>>;

/// Nobody has asked to sleep.
const NOT_ASKED: i64 = i64::MIN;

/// The clock, and who has yet to begin.
#[derive(Debug)]
pub(super) struct Clock {
    now_micros: AtomicI64,
    /// Until when the future that is being polled wants to sleep.
    asked_micros: AtomicI64,
}

/// Futures by when they go on, in the order in which they asked.
#[derive(Default)]
pub(super) struct Stage {
    waiting: Mutex<BTreeMap<(i64, u64), Going>>,
    sequence: AtomicI64,
}

impl Clock {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { now_micros: now.as_microsecond().into(), asked_micros: NOT_ASKED.into() }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.now_micros.load(Ordering::Relaxed)).unwrap_or(Timestamp::MAX)
    }

    pub(super) async fn sleep(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let until = self.now_micros.load(Ordering::Relaxed).saturating_add(micros);
        poll_fn(|_| {
            if self.now_micros.load(Ordering::Relaxed) >= until {
                return Poll::Ready(());
            }
            self.asked_micros.store(until, Ordering::Relaxed);
            Poll::Pending
        })
        .await;
    }
}

impl Stage {
    /// Lets a future begin at the clock's time.
    pub(super) fn begin(&self, clock: &Clock, future: impl Future<Output = ()> + 'static) {
        self.put(clock.now_micros.load(Ordering::Relaxed), Box::pin(future));
    }

    /// Polls whatever is next; each time the clock moves, `moved` hears of it first. After each poll `polled` may let
    /// others begin. Ends when nobody waits any more, or `is_over`.
    pub(super) fn run(&self, clock: &Clock, moved: impl Fn(), polled: impl Fn(), is_over: impl Fn() -> bool) {
        while !is_over() {
            let Some(((at, _), mut going)) = self.lock().pop_first() else { return };
            if at > clock.now_micros.load(Ordering::Relaxed) {
                clock.now_micros.store(at, Ordering::Relaxed);
                moved();
            }
            let outcome = going.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let asked = clock.asked_micros.swap(NOT_ASKED, Ordering::Relaxed);
            if outcome.is_pending() {
                // One that stands at a fault point of a call goes on after the others of this moment.
                self.put(asked.max(clock.now_micros.load(Ordering::Relaxed)), going);
            }
            polled();
        }
    }

    /// Lets all go: whoever waits never goes on.
    pub(super) fn clear(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        drop(waiting);
    }

    fn put(&self, at: i64, going: Going) {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed).unsigned_abs();
        self.lock().insert((at, sequence), going);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(i64, u64), Going>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
