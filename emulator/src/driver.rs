//! Drives a [`World`] by the wall clock: HTTP in front, child processes and event delivery behind.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use crate::Config;
use crate::delivery::Delivery;
use crate::http;
use crate::world::{Effect, World};

mod jobs;
mod process;

use jobs::Jobs;
use process::{Groups, Host};

/// Why an emulator does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No port on 127.0.0.1.
    #[error("the emulator cannot listen on 127.0.0.1")]
    Listen(#[source] io::Error),
    /// The folder for jobs cannot be made.
    #[error("the emulator cannot make its folder {}", path.display())]
    WorkDir {
        /// Which folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A running emulator. Dropping it kills every job; [`Emulator::shutdown`] also waits for the end.
pub struct Emulator {
    core: Arc<Core>,
    address: SocketAddr,
    groups: Groups,
    closing: watch::Sender<bool>,
    jobs: Option<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
}

impl Emulator {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port, or no folder for the jobs.
    pub async fn serve(config: Config) -> Result<Emulator, ServeError> {
        let work_dir = config.work_dir.clone();
        tokio::fs::create_dir_all(&work_dir).await.map_err(|source| ServeError::WorkDir { path: work_dir, source })?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ServeError::Listen)?;
        let address = listener.local_addr().map_err(ServeError::Listen)?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let core = Arc::new(Core {
            world: Mutex::new(World::new(config.settings())),
            wake: Notify::new(),
            orders,
            delivery: Delivery::start(&config),
            requests: AtomicU64::new(0),
        });
        let (closing, closed) = watch::channel(false);
        let groups = Groups::default();
        let host = Host::new(config, &endpoint(address), groups.clone());
        let jobs = Jobs::new(core.clone(), host);
        let router = http::router(core.clone());
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the emulator's server ended");
            }
        });
        Ok(Emulator {
            address,
            groups,
            closing,
            jobs: Some(tokio::spawn(jobs.run(inbox, closed))),
            background: vec![server, tokio::spawn(keep_time(core.clone()))],
            core,
        })
    }

    /// `http://127.0.0.1:PORT`: Batch and EC2; IMDS of an instance is under `/imds/<instance>`.
    pub fn endpoint(&self) -> String {
        endpoint(self.address)
    }

    /// From now on events go to the rules of the default event bus at this AWS endpoint, and from
    /// there to their Lambda functions. Events from before are not kept.
    pub fn deliver_to(&self, aws_endpoint: &str) {
        self.core.delivery.deliver_to(aws_endpoint);
    }

    /// Hands in one more event and waits until it is delivered (or given up).
    pub async fn deliver(&self, event: Value) {
        self.core.delivery.deliver(event).await;
    }

    /// Same as `GET /_emulator/state`.
    pub fn snapshot(&self) -> Value {
        self.core.snapshot()
    }

    /// Waits until all events emitted so far are delivered (or given up).
    pub async fn drained(&self) {
        self.core.delivery.drained().await;
    }

    /// Does something with the World at the present moment: reclaims, zone capacities, faults.
    pub fn with_world<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        self.core.with(act)
    }

    /// Kills every job's process group, waits for their end, and stops the server.
    pub async fn shutdown(mut self) {
        self.closing.send_replace(true);
        if let Some(jobs) = self.jobs.take()
            && let Err(error) = jobs.await
        {
            tracing::error!(%error, "the emulator's jobs did not end well");
        }
        for one in self.background.drain(..) {
            one.abort();
            // Aborted on purpose: there is no other outcome to look at.
            let _ = one.await;
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(jobs) = &self.jobs {
            jobs.abort();
        }
        self.groups.kill_all();
        self.core.delivery.stop();
        for one in &self.background {
            one.abort();
        }
    }
}

fn endpoint(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// What the parts of an emulator share.
pub(crate) struct Core {
    world: Mutex<World>,
    wake: Notify,
    orders: mpsc::UnboundedSender<Effect>,
    delivery: Delivery,
    requests: AtomicU64,
}

impl Core {
    /// Runs `act` on the World as it is now, and passes on what the World wants done.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        let result = self.step(act);
        self.wake.notify_one();
        result
    }

    fn step<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        let mut world = self.lock();
        let now = Timestamp::now();
        world.advance(now);
        let result = act(&mut world, now);
        // Under the lock, so that effects leave in the order in which they arose.
        for effect in world.take_effects() {
            match effect {
                Effect::Emit(event) => self.delivery.hand_in(event),
                order @ (Effect::Start(_) | Effect::Stop { .. } | Effect::Kill(_)) => {
                    // Refused only after shutdown: then nothing is to be started or stopped.
                    let _ = self.orders.send(order);
                }
            }
        }
        result
    }

    /// The World stays usable whatever became of an earlier caller.
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn snapshot(&self) -> Value {
        let mut snapshot = self.with(|world, _now| world.snapshot());
        snapshot["events"] = json!(self.delivery.counts());
        snapshot
    }

    pub(crate) fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-a000-{number:012x}")
    }
}

/// Advances the World whenever something is due.
async fn keep_time(core: Arc<Core>) {
    loop {
        let due = core.lock().next_due();
        let woken = core.wake.notified();
        match due {
            None => woken.await,
            Some(due) => {
                let wait = due.duration_since(Timestamp::now());
                let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = woken => {}
                }
            }
        }
        core.step(|_world, _now| ());
    }
}
