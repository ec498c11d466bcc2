//! Drives a [`World`] by the wall clock: HTTP in front, child processes and event delivery behind.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use crate::config::{Config, Volumes};
use crate::delivery::{Delivery, LogGroups};
use crate::http;
use crate::http::record::Recorder;
use crate::world::ebs::VolumeOrder;
use crate::world::{Effect, World};

mod groups;
mod jobs;
mod process;
mod tree;
mod volumes;

use groups::Groups;
use jobs::Jobs;
use process::Host;
use volumes::{Disk, Loops, VolumeKeeper};

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
    /// VolumeKeeper cannot be block devices here.
    #[error("the emulator cannot keep volumes as block devices: {0}")]
    BlockDevices(String),
    /// The folder that `SPOTSWEEP_RECORD` names cannot be written.
    #[error("the emulator cannot record requests in the folder that SPOTSWEEP_RECORD names; unset it, or name another")]
    Record(#[source] io::Error),
}

/// A running emulator. Dropping it kills every job; [`Emulator::shutdown`] also waits for the end.
pub struct Emulator {
    core: Arc<Core>,
    address: SocketAddr,
    disk: Disk,
    loops: Option<Loops>,
    /// The jobs end first, so that nothing holds a volume.
    jobs: Worker,
    volumes: Worker,
    background: Vec<JoinHandle<()>>,
}

impl Emulator {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port, no folder for the jobs or the record, or no way to make block devices.
    pub async fn serve(mut config: Config) -> Result<Emulator, ServeError> {
        // Jobs run elsewhere: what they are told of it must hold there, too.
        if let Ok(work_dir) = std::path::absolute(&config.work_dir) {
            config.work_dir = work_dir;
        }
        let work_dir = config.work_dir.clone();
        let made = tokio::fs::create_dir_all(&work_dir).await;
        made.map_err(|source| ServeError::WorkDir { path: work_dir.clone(), source })?;
        let loops = match config.volumes {
            Volumes::Directories => None,
            Volumes::BlockDevices => {
                volumes::check_block_devices(&work_dir).await.map_err(ServeError::BlockDevices)?;
                Some(Loops::default())
            }
        };
        let logs = work_dir.join(process::LOGS);
        let disk = Disk::new(work_dir, loops.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ServeError::Listen)?;
        let address = listener.local_addr().map_err(ServeError::Listen)?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let (volume_orders, volume_inbox) = mpsc::unbounded_channel();
        let groups = Groups::default();
        let core = Arc::new(Core {
            world: Mutex::new(World::new(config.settings()).with_bytes_outside().with_ecs_events()),
            wake: Notify::new(),
            orders,
            volume_orders,
            groups: groups.clone(),
            delivery: Delivery::start(&config),
            requests: AtomicU64::new(0),
            logs,
        });
        let unshare = loops.as_ref().and_then(|_| volumes::find_tool("unshare"));
        let host = Host::new(config, &endpoint(address), disk.clone(), unshare, groups.clone());
        let jobs = Jobs::new(core.clone(), host);
        let volumes = VolumeKeeper::new(core.clone(), groups, disk.clone());
        let router = http::router(core.clone(), Recorder::from_env().map_err(ServeError::Record)?);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the emulator's server ended");
            }
        });
        Ok(Emulator {
            address,
            disk,
            loops,
            jobs: Worker::start(|closed| jobs.run(inbox, closed)),
            volumes: Worker::start(|closed| volumes.run(volume_inbox, closed)),
            background: vec![server, tokio::spawn(keep_time(core.clone()))],
            core,
        })
    }

    /// `http://127.0.0.1:PORT`: Batch, EC2, ECS and CloudWatch Logs; IMDS of an instance is under `/imds/<instance>`.
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
        self.core.delivery.deliver(&event).await;
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

    /// Where a volume's bytes lie: a folder, or the image of a block device.
    pub fn volume_path(&self, volume: &str) -> PathBuf {
        self.disk.volume(volume)
    }

    /// Where a snapshot's bytes lie: a folder, or the image of a block device.
    pub fn snapshot_path(&self, snapshot: &str) -> PathBuf {
        self.disk.snapshot(snapshot)
    }

    /// Kills every job's process group, waits for their end, takes all devices away, and stops the
    /// server.
    pub async fn shutdown(mut self) {
        self.jobs.end().await;
        self.volumes.end().await;
        for one in self.background.drain(..) {
            one.abort();
            // Aborted on purpose: there is no other outcome to look at.
            let _ = one.await;
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.jobs.abort();
        self.volumes.abort();
        self.core.groups.kill_all();
        if let Some(loops) = &self.loops {
            loops.detach_all_now();
        }
        self.core.delivery.stop();
        for one in &self.background {
            one.abort();
        }
    }
}

/// A background activity that can be asked to end.
struct Worker {
    closing: watch::Sender<bool>,
    running: Option<JoinHandle<()>>,
}

impl Worker {
    fn start<F: Future<Output = ()> + Send + 'static>(run: impl FnOnce(watch::Receiver<bool>) -> F) -> Self {
        let (closing, closed) = watch::channel(false);
        Worker { closing, running: Some(tokio::spawn(run(closed))) }
    }

    async fn end(&mut self) {
        self.closing.send_replace(true);
        if let Some(running) = self.running.take()
            && let Err(error) = running.await
        {
            tracing::error!(%error, "the emulator did not end well");
        }
    }

    fn abort(&self) {
        if let Some(running) = &self.running {
            running.abort();
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
    volume_orders: mpsc::UnboundedSender<VolumeOrder>,
    groups: Groups,
    delivery: Delivery,
    requests: AtomicU64,
    logs: PathBuf,
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
                Effect::Emit(event) => self.delivery.hand_in(&event),
                order @ (Effect::Start(_) | Effect::Stop { .. } | Effect::Kill(_)) => {
                    // Refused only after shutdown: then nothing is to be started or stopped.
                    let _ = self.orders.send(order);
                }
            }
        }
        for order in world.take_volume_orders() {
            volumes::halt_writers(&order, &self.groups);
            // As above.
            let _ = self.volume_orders.send(order);
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

    /// The folder of what containers print, by log stream.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }

    /// What rules have recorded.
    pub(crate) fn log_groups(&self) -> &LogGroups {
        self.delivery.log_groups()
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
