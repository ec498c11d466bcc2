//! The event loop on the virtual clock, which is the World's. It yields what is due, in the order of time: effects of the
//! World first, then what a run has scheduled.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use spotsweep_world::{AttemptKey, Effect, Start};

use crate::harness::Harness;
use crate::injected_bug::InjectedBug;

/// The period of the schedule in infra/control-plane.yaml.
pub const RECONCILE: Duration = Duration::from_secs(300);

/// Lambda's retries of an asynchronous invocation (fact 34).
const RETRIES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(120)];

/// The schedule of a run. `S` is what the run itself schedules.
#[derive(Debug)]
pub struct Kernel<S> {
    queue: BTreeMap<(Timestamp, u64), Entry<S>>,
    sequence: u64,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
enum Entry<S> {
    Deliver(Delivery),
    Tick,
    Own(S),
}

/// An event on its way to its function.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The event.
    pub event: Value,
    /// The number of earlier tries.
    tries: usize,
}

/// What happens next.
#[derive(Debug)]
pub enum Moment<S> {
    /// An AWS service puts an event on the bus.
    Emitted(Value),
    /// A container starts.
    Started(Start),
    /// A container ends with its instance.
    Killed(AttemptKey),
    /// A container gets SIGTERM, and is killed after a grace.
    Stopped(AttemptKey, Duration),
    /// An event reaches its function.
    Deliver(Delivery),
    /// What the run has scheduled is due.
    Own(S),
}

impl<S> Default for Kernel<S> {
    fn default() -> Self {
        Self { queue: BTreeMap::new(), sequence: 0, effects: VecDeque::new() }
    }
}

impl<S> Kernel<S> {
    /// Schedules an entry. Entries of one time are due in the order in which they were scheduled.
    pub fn at(&mut self, time: Timestamp, entry: S) {
        self.put(time, Entry::Own(entry));
    }

    /// Delivers an event to its function.
    pub fn deliver(&mut self, time: Timestamp, event: Value) {
        self.put(time, Entry::Deliver(Delivery { event, tries: 0 }));
    }

    /// Repeats the delivery of an event whose invocation has failed, as Lambda does.
    ///
    /// # Errors
    /// Returns the event after the last retry. It is in the dead-letter queue then.
    pub fn retry(&mut self, now: Timestamp, failed: Delivery) -> Result<(), Value> {
        let Delivery { event, tries } = failed;
        let Some(wait) = RETRIES.get(tries) else { return Err(event) };
        self.put(now + *wait, Entry::Deliver(Delivery { event, tries: tries + 1 }));
        Ok(())
    }

    /// Starts the schedule that invokes `reconcile`.
    pub fn start_schedule(&mut self, now: Timestamp) {
        self.put(now + RECONCILE, Entry::Tick);
    }

    /// Returns the next thing that is due now; `None` if time has to pass first.
    pub fn due(&mut self, harness: &Harness) -> Option<Moment<S>> {
        loop {
            let mut world = harness.cloud.world();
            self.effects.extend(world.take_effects());
            let now = world.now();
            drop(world);
            if let Some(effect) = self.effects.pop_front() {
                return Some(Moment::of(effect));
            }
            let first = self.queue.first_entry().filter(|entry| entry.key().0 <= now)?;
            match first.remove() {
                Entry::Deliver(delivery) => return Some(Moment::Deliver(delivery)),
                Entry::Own(entry) => return Some(Moment::Own(entry)),
                Entry::Tick => {
                    if harness.cloud.injected_bug() != Some(InjectedBug::StopSchedule) {
                        self.deliver(now, harness.reconcile());
                    }
                    self.start_schedule(now);
                }
            }
        }
    }

    /// Returns the time at which something is due next; `None` if nothing is left.
    pub fn next_due(&self, harness: &Harness) -> Option<Timestamp> {
        let first = self.queue.keys().next().map(|(at, _)| *at);
        let world = harness.cloud.world();
        let next = world.next_due().into_iter().chain(first).min()?;
        Some(next.max(world.now()))
    }

    /// Takes the first delivery that is due before `until`.
    pub fn take_delivery(&mut self, until: Timestamp) -> Option<Delivery> {
        let is_delivery = |entry: &Entry<S>| matches!(entry, Entry::Deliver(_));
        let (place, _) = self.queue.range(..(until, 0)).find(|(_, entry)| is_delivery(entry))?;
        let place = *place;
        match self.queue.remove(&place)? {
            Entry::Deliver(delivery) => Some(delivery),
            Entry::Tick | Entry::Own(_) => None,
        }
    }

    /// Removes the entries of the run for which `is_cancelled` is true.
    pub fn cancel(&mut self, is_cancelled: impl Fn(&S) -> bool) {
        self.queue.retain(|_, entry| !matches!(entry, Entry::Own(own) if is_cancelled(own)));
    }

    /// Whether an entry of the run is scheduled for which `is_sought` is true.
    pub fn has(&self, is_sought: impl Fn(&S) -> bool) -> bool {
        self.queue.values().any(|entry| matches!(entry, Entry::Own(own) if is_sought(own)))
    }

    /// Whether nothing is scheduled but `reconcile`.
    pub fn is_idle(&self) -> bool {
        self.queue.values().all(|entry| matches!(entry, Entry::Tick))
    }

    fn put(&mut self, time: Timestamp, entry: Entry<S>) {
        self.sequence += 1;
        self.queue.insert((time, self.sequence), entry);
    }
}

impl<S> Moment<S> {
    fn of(effect: Effect) -> Self {
        match effect {
            Effect::Emit(event) => Self::Emitted(event),
            Effect::Start(start) => Self::Started(start),
            Effect::Kill(attempt) => Self::Killed(attempt),
            Effect::Stop { attempt, grace } => Self::Stopped(attempt, grace),
        }
    }
}
