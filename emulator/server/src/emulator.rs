//! A running emulator: the World that `driver` keeps, and its HTTP interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::config::{Config, Volumes};
use crate::driver::groups::Groups;
use crate::driver::jobs::Jobs;
use crate::driver::process::{self, Host};
use crate::driver::volumes::{self, Disk, Loops, VolumeKeeper};
use crate::driver::{Core, keep_time};
use crate::http;
use crate::http::record::Recorder;
use spotsweep_world::World;

/// The reason why an emulator does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no free port on 127.0.0.1.
    #[error("the emulator cannot listen on 127.0.0.1")]
    Listen(#[source] io::Error),
    /// The folder for jobs cannot be made.
    #[error("the emulator cannot make its folder {}", path.display())]
    WorkDir {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// Volumes cannot be block devices on this machine.
    #[error("the emulator cannot keep volumes as block devices: {0}")]
    BlockDevices(String),
    /// Jobs cannot be containers on this machine.
    #[error(
        "this machine lets no process make a mount namespace, so trials would share /dltraining, /storage and their home: {0}. \
         Run as root; or allow user namespaces (sysctl user.max_user_namespaces=10000 user.max_mnt_namespaces=10000; on \
         Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0, on Debian before 11 kernel.unprivileged_userns_clone=1); \
         in Docker: `docker run --privileged`"
    )]
    Containers(String),
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
    /// The jobs end first, so that no process uses a volume.
    jobs: Worker,
    volumes: Worker,
    background: Vec<JoinHandle<()>>,
}

impl Emulator {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If there is no port, no folder for the jobs or the record, or no way to make block devices.
    pub async fn serve(mut config: Config) -> Result<Emulator, ServeError> {
        let made = tokio::fs::create_dir_all(&config.work_dir).await.and_then(|()| config.work_dir.canonicalize());
        // Jobs run in other folders, so paths in their environment have to be absolute.
        let work_dir = made.map_err(|source| ServeError::WorkDir { path: config.work_dir.clone(), source })?;
        config.work_dir.clone_from(&work_dir);
        if let Some(container) = &config.container {
            process::check(container, &work_dir).await.map_err(ServeError::Containers)?;
        }
        let loops = match config.volumes {
            Volumes::Directories => None,
            Volumes::BlockDevices => {
                let checked = volumes::check_block_devices(&work_dir, config.container.is_some()).await;
                checked.map_err(ServeError::BlockDevices)?;
                Some(Loops::default())
            }
        };
        let disk = Disk::new(work_dir, loops.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ServeError::Listen)?;
        let address = listener.local_addr().map_err(ServeError::Listen)?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let (volume_orders, volume_inbox) = mpsc::unbounded_channel();
        let groups = Groups::default();
        let core = Arc::new(Core::new(&config, groups.clone(), orders, volume_orders));
        let host = Host::new(config, &endpoint(address), disk.clone(), groups.clone());
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

    /// Returns the endpoint `http://127.0.0.1:PORT` of Batch, EC2, ECS and CloudWatch Logs. The IMDS of an instance is
    /// under `/imds/<instance>`.
    pub fn endpoint(&self) -> String {
        endpoint(self.address)
    }

    /// Sends later events to the rules of the default event bus at this AWS endpoint, and from there to their Lambda
    /// functions. Earlier events are not kept.
    pub fn deliver_to(&self, aws_endpoint: &str) {
        self.core.delivery().deliver_to(aws_endpoint);
    }

    /// Sends one more event, and waits until it is delivered or given up.
    pub async fn deliver(&self, event: Value) {
        self.core.delivery().deliver(&event).await;
    }

    /// Returns the same document as `GET /_emulator/state`.
    pub fn snapshot(&self) -> Value {
        self.core.snapshot()
    }

    /// Waits until all events so far are delivered or given up.
    pub async fn drained(&self) {
        self.core.delivery().drained().await;
    }

    /// Runs `act` on the World at the present time: reclaims, zone capacities, faults.
    pub fn with_world<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        self.core.with(act)
    }

    /// Returns the path of a volume's bytes: a folder, or the image of a block device.
    pub fn volume_path(&self, volume: &str) -> PathBuf {
        self.disk.volume(volume)
    }

    /// Kills every job's process group, waits for their end, removes all devices, and stops the server.
    pub async fn shutdown(mut self) {
        self.jobs.end().await;
        self.volumes.end().await;
        for one in self.background.drain(..) {
            one.abort();
            // The task was aborted on purpose, so its result is dropped.
            let _ = one.await;
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.jobs.abort();
        self.volumes.abort();
        self.core.groups().kill_all();
        if let Some(loops) = &self.loops {
            loops.detach_all_now();
        }
        self.core.delivery().stop();
        for one in &self.background {
            one.abort();
        }
    }
}

/// A background task that can be asked to end.
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
