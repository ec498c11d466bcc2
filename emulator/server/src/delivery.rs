//! Delivers events from the World to the targets of the event bus, as EventBridge does, by the deployed rules.
//!
//! The steps are ListRules, TestEventPattern, ListTargetsByRule and Invoke, at the given AWS endpoint. PutEvents cannot
//! carry `aws.*` events, there as on AWS. A target that is a log group is stored here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use crate::{Config, Injection};

mod bus;
mod log_groups;
mod plan;

use bus::{Bus, Target};
pub(crate) use log_groups::{Line, LogGroups};
use plan::Plan;

/// The deliveries at a time. EventBridge keeps no order either.
const CONCURRENT: usize = 8;
/// The tries of a step before an event is given up.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Counts for people and tests.
#[derive(Debug, Default)]
struct Counters {
    emitted: AtomicU64,
    invoked: AtomicU64,
    lost: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The counts of events so far.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(crate) struct Counts {
    emitted: u64,
    /// Successful Lambda invocations. An event may have none or several.
    invoked: u64,
    /// Events that were lost on purpose.
    lost: u64,
    /// Events that were given up after several tries.
    failed: u64,
    /// Events that are not delivered yet.
    outstanding: usize,
}

/// An event to deliver. An array job has one for each child at the same time, and a text takes a fraction of the memory
/// of its `Value`.
struct Parcel {
    id: String,
    source: String,
    text: String,
}

impl Parcel {
    fn new(event: &Value) -> Self {
        let member = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        Parcel { id: member("id"), source: member("source"), text: event.to_string() }
    }
}

/// Delivers events in the background, so that the World does not wait.
pub(crate) struct Delivery {
    observer: Option<mpsc::UnboundedSender<Value>>,
    queue: mpsc::UnboundedSender<Parcel>,
    carrier: Arc<Carrier>,
    dispatcher: JoinHandle<()>,
}

/// The state that the deliveries share.
struct Carrier {
    region: String,
    bus: Mutex<Option<Arc<Bus>>>,
    plan: Mutex<Plan>,
    permits: Semaphore,
    counters: Counters,
    log_groups: LogGroups,
    outstanding: watch::Sender<usize>,
}

impl Delivery {
    pub(crate) fn start(config: &Config) -> Self {
        let (queue, inbox) = mpsc::unbounded_channel();
        let injection: Injection = config.injection;
        let carrier = Arc::new(Carrier {
            region: config.region.clone(),
            bus: Mutex::new(None),
            plan: Mutex::new(Plan::new(injection)),
            permits: Semaphore::new(CONCURRENT),
            counters: Counters::default(),
            log_groups: LogGroups::default(),
            outstanding: watch::Sender::new(0),
        });
        let dispatcher = tokio::spawn(dispatch(carrier.clone(), inbox));
        Delivery { observer: config.observer.clone(), queue, carrier, dispatcher }
    }

    pub(crate) fn deliver_to(&self, aws_endpoint: &str) {
        let bus = Arc::new(Bus::new(aws_endpoint, &self.carrier.region));
        *self.carrier.bus.lock().unwrap_or_else(PoisonError::into_inner) = Some(bus);
    }

    /// Takes an event, and delivers it in the background.
    pub(crate) fn hand_in(&self, event: &Value) {
        self.observe(event);
        self.carrier.outstanding.send_modify(|count| *count += 1);
        if self.queue.send(Parcel::new(event)).is_err() {
            self.carrier.done();
        }
    }

    /// Takes an event, and waits for its deliveries.
    pub(crate) async fn deliver(&self, event: &Value) {
        self.observe(event);
        self.carrier.outstanding.send_modify(|count| *count += 1);
        self.carrier.clone().carry(Parcel::new(event)).await;
    }

    fn observe(&self, event: &Value) {
        Counters::add(&self.carrier.counters.emitted);
        if let Some(observer) = &self.observer {
            // The observer may have been dropped, which is no error.
            let _ = observer.send(event.clone());
        }
    }

    pub(crate) async fn drained(&self) {
        // An error means that the counter was dropped, so nothing is outstanding.
        let _ = self.carrier.outstanding.subscribe().wait_for(|count| *count == 0).await;
    }

    pub(crate) fn counts(&self) -> Counts {
        let counters = &self.carrier.counters;
        Counts {
            emitted: counters.emitted.load(Ordering::Relaxed),
            invoked: counters.invoked.load(Ordering::Relaxed),
            lost: counters.lost.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
            outstanding: *self.carrier.outstanding.borrow(),
        }
    }

    /// Returns the events that rules have recorded.
    pub(crate) fn log_groups(&self) -> &LogGroups {
        &self.carrier.log_groups
    }

    pub(crate) fn stop(&self) {
        self.dispatcher.abort();
    }
}

async fn dispatch(carrier: Arc<Carrier>, mut inbox: mpsc::UnboundedReceiver<Parcel>) {
    // The set is dropped with this function, so that no delivery outlives the emulator.
    let mut running = tokio::task::JoinSet::new();
    while let Some(parcel) = inbox.recv().await {
        running.spawn(carrier.clone().carry(parcel));
        while running.try_join_next().is_some() {}
    }
}

impl Carrier {
    fn done(&self) {
        self.outstanding.send_modify(|count| *count -= 1);
    }

    /// Makes all deliveries of one event, with the injected faults.
    async fn carry(self: Arc<Self>, parcel: Parcel) {
        let bus = self.bus.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(bus) = bus {
            let delays = self.plan.lock().unwrap_or_else(PoisonError::into_inner).delays(&parcel.source);
            if delays.is_empty() {
                Counters::add(&self.counters.lost);
            }
            let mut waited = Duration::ZERO;
            for delay in delays {
                tokio::time::sleep(delay.saturating_sub(waited)).await;
                waited = waited.max(delay);
                // The semaphore is never closed.
                let _permit = self.permits.acquire().await;
                // The future is boxed, because it is large and thousands may wait for their permit.
                Box::pin(self.through(&bus, &parcel)).await;
            }
        }
        self.done();
    }

    /// Makes one delivery: to each target of each rule that matches.
    async fn through(&self, bus: &Bus, Parcel { id, source, text }: &Parcel) {
        let Some(targets) = self.insist(id, || bus.targets_for(source, text)).await else {
            return;
        };
        for target in targets {
            match target {
                Target::LogGroup(group) => self.log_groups.put(&group, text),
                Target::Function(function) => {
                    if self.insist(id, || bus.invoke(&function, text)).await.is_some() {
                        Counters::add(&self.counters.invoked);
                    }
                }
            }
        }
    }

    /// Tries a step a bounded number of times. A step that never works is logged and counted.
    async fn insist<T, F>(&self, id: &str, step: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, bus::BusError>>,
    {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            match step().await {
                Ok(value) => return Some(value),
                Err(error) if attempt == TRIES => {
                    tracing::error!(error = &error as &dyn std::error::Error, id, "an event is given up");
                }
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, attempt, "a delivery is tried again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
        }
        Counters::add(&self.counters.failed);
        None
    }
}
