//! A virtual clock: futures sleep on it, and time passes only when all of them wait.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;

type Going = Pin<Box<dyn Future<Output = ()>>>;

/// The value while no future has asked to sleep.
const NOT_ASKED: i64 = i64::MIN;

#[derive(Debug)]
pub(super) struct Clock {
    now_micros: AtomicI64,
    /// The time until which the future that is being polled wants to sleep.
    asked_micros: AtomicI64,
}

/// The waiting futures by the time at which they go on, in the order in which they asked.
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
    /// Adds a future that begins at the clock's time.
    pub(super) fn begin(&self, clock: &Clock, future: impl Future<Output = ()> + 'static) {
        self.put(clock.now_micros.load(Ordering::Relaxed), Box::pin(future));
    }

    /// Polls the futures in order. When the clock moves, `moved` is called before the next poll. After each poll
    /// `polled` is called, which may add futures. Returns when no future waits any more, or when `is_over` returns
    /// true.
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
                // A future at a fault point of a call goes on after the others of this moment.
                self.put(asked.max(clock.now_micros.load(Ordering::Relaxed)), going);
            }
            polled();
        }
    }

    /// Drops all waiting futures.
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
