//! The files with which `local up` tells `local down`, `local env` and other commands about the stack.
//!
//! The host of a stack holds a lock for as long as it lives, and writes its pid into the locked file. A pid counts only
//! while the lock is held, so a crash or a reboot leaves nothing that misleads.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spotsweep_protocol::functions::CLAIM;
use tokio::time::{Instant, sleep};

use crate::batch::QUEUE;
use crate::deploy::BUCKET;
use crate::stack::{Stack, StackOptions};
use spotsweep_protocol::failure::{Context, Failure};

/// How long a probe's lock may be mistaken for a host's.
const PROBE_PATIENCE: Duration = Duration::from_millis(500);

/// What a client needs to reach a running stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// ministack's URL.
    pub endpoint: String,
    /// The emulator's URL.
    pub emulator: String,
    /// The control plane's bucket.
    pub bucket: String,
    /// The control plane's table.
    pub table: String,
    /// The queue of the sweeps that name none.
    pub queue: String,
    /// Job definition of sweeps that name none.
    pub job_definition: String,
    /// Name of the function that runners call.
    pub claim_function: String,
    /// The log of ministack and the functions.
    pub functions_log: PathBuf,
    /// The folder of the jobs' logs.
    pub jobs_logs: PathBuf,
    /// The folder that trials run in.
    pub code: PathBuf,
    /// The stack's other options, as words of a command line.
    pub options: Vec<String>,
}

impl State {
    /// Describes a running stack and the options that it was started with.
    pub fn of(stack: &Stack, options: &StackOptions) -> Self {
        Self {
            endpoint: stack.endpoint().to_owned(),
            emulator: stack.emulator_endpoint(),
            bucket: BUCKET.to_owned(),
            table: stack.table().to_owned(),
            queue: QUEUE.to_owned(),
            job_definition: options.job_definition.clone(),
            claim_function: CLAIM.to_owned(),
            functions_log: stack.functions_log().to_owned(),
            jobs_logs: stack.jobs_logs(),
            code: stack.code().to_owned(),
            options: options.words(),
        }
    }
}

/// The folder of the state, `<target>/local`.
#[derive(Debug, Clone)]
pub struct Desk {
    folder: PathBuf,
}

/// The lock that the host of the stack holds.
#[derive(Debug)]
pub struct Hosting {
    desk: Desk,
    _lock: File,
}

impl Desk {
    /// The state in this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The state of a demo, next to that of `local up`. Commands use it if there is no stack of `local up`.
    pub fn of_demo(folder: &Path) -> Self {
        Self::new(&folder.join("demo"))
    }

    /// The log of the host's own output.
    pub fn log(&self) -> PathBuf {
        self.folder.join("serve.log")
    }

    /// Makes this process the host.
    ///
    /// # Errors
    /// There is a host already, or the lock file cannot be written.
    pub async fn host(&self) -> Result<Hosting, Failure> {
        let mut lock = self.open()?;
        let deadline = Instant::now() + PROBE_PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                // The lock may be that of a probe, which releases it at once.
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(Duration::from_millis(20)).await,
                Err(TryLockError::WouldBlock) => return Err(Failure::new("a local stack is running already")),
                Err(TryLockError::Error(error)) => return Err(cannot_lock(error)),
            }
        }
        self.forget();
        let pid = std::process::id();
        lock.set_len(0).and_then(|()| write!(lock, "{pid}")).context(|| "cannot write the local stack's pid")?;
        Ok(Hosting { desk: self.clone(), _lock: lock })
    }

    /// The pid of the living host, if there is one.
    pub fn host_pid(&self) -> Result<Option<i32>, Failure> {
        // The lock is shared, so that two probes never take each other for a host.
        match self.open()?.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                Ok(fs::read_to_string(self.lock_path()).ok().and_then(|pid| pid.trim().parse().ok()))
            }
            Err(TryLockError::Error(error)) => Err(cannot_lock(error)),
        }
    }

    /// The running stack, if it is ready.
    pub fn running(&self) -> Result<Option<State>, Failure> {
        if self.host_pid()?.is_none() {
            return Ok(None);
        }
        let Ok(bytes) = fs::read(self.state_path()) else { return Ok(None) };
        let state = serde_json::from_slice(&bytes);
        state.map(Some).context(|| format!("cannot read {}", self.state_path().display()))
    }

    /// The running stack of `local up` in this folder, or else that of a demo.
    pub fn running_under(folder: &Path) -> Result<Option<State>, Failure> {
        match Self::new(folder).running()? {
            None => Self::of_demo(folder).running(),
            up => Ok(up),
        }
    }

    /// Marks the stack as viewed, for as long as the file is open. None if the mark cannot be made.
    pub fn view(&self) -> Option<File> {
        let views = self.views().ok()?;
        views.lock_shared().is_ok().then_some(views)
    }

    /// Waits until the stack has no view any more, but not longer than `patience`.
    pub async fn unviewed(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let Ok(views) = self.views() else { return };
        while matches!(views.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn views(&self) -> io::Result<File> {
        File::create(self.folder.join("views"))
    }

    /// Waits until there is no host. Returns false if there is still one after `patience`.
    pub async fn deserted(&self, patience: Duration) -> Result<bool, Failure> {
        let deadline = Instant::now() + patience;
        while self.host_pid()?.is_some() {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(true)
    }

    /// Removes the files of a dead host.
    pub fn forget(&self) {
        // Usually there is no file to remove.
        let _ = fs::remove_file(self.state_path());
    }

    fn open(&self) -> Result<File, Failure> {
        let path = self.lock_path();
        fs::create_dir_all(&self.folder).context(|| format!("cannot create {}", self.folder.display()))?;
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        open.context(|| format!("cannot open {}", path.display()))
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join("host.pid")
    }

    fn state_path(&self) -> PathBuf {
        self.folder.join("state.json")
    }
}

fn cannot_lock(error: io::Error) -> Failure {
    Failure::new("cannot lock the local stack's state").caused_by(error)
}

impl Hosting {
    /// Writes the state of a ready stack. The file is renamed to its name when it is complete, so no reader sees a part
    /// of it.
    pub fn announce(&self, state: &State) -> Result<(), Failure> {
        let (path, aside) = (self.desk.state_path(), self.desk.folder.join("state.json.new"));
        let json = serde_json::to_vec_pretty(state).context(|| "cannot write the local stack's state as JSON")?;
        fs::write(&aside, json)
            .and_then(|()| fs::rename(&aside, &path))
            .context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Hosting {
    fn drop(&mut self) {
        self.desk.forget();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            endpoint: "http://127.0.0.1:1".into(),
            emulator: "http://127.0.0.1:2".into(),
            bucket: "b".into(),
            table: "t".into(),
            queue: "q".into(),
            job_definition: "d".into(),
            claim_function: "c".into(),
            functions_log: "log".into(),
            jobs_logs: "logs".into(),
            code: "code".into(),
            options: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_state_is_believed_only_while_its_host_lives() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path());
        assert_eq!(desk.running().unwrap(), None);
        let hosting = desk.host().await.unwrap();
        assert_eq!(desk.host_pid().unwrap(), Some(std::process::id().cast_signed()));
        assert_eq!(desk.running().unwrap(), None, "not ready yet");
        assert!(desk.host().await.is_err(), "two hosts");
        hosting.announce(&state()).unwrap();
        assert_eq!(desk.running().unwrap(), Some(state()));
        drop(hosting);
        assert_eq!(desk.running().unwrap(), None);

        // A killed host leaves a state and a pid, but no lock.
        fs::write(desk.state_path(), serde_json::to_vec(&state()).unwrap()).unwrap();
        fs::write(desk.lock_path(), "1").unwrap();
        assert_eq!(desk.host_pid().unwrap(), None);
        assert_eq!(desk.running().unwrap(), None);
        let _hosting = desk.host().await.unwrap();
        assert_eq!(desk.running().unwrap(), None, "the dead host's state must be gone");
    }

    #[tokio::test]
    async fn a_stack_waits_for_its_views_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path());
        let waits = async |most: u64| {
            let begun = Instant::now();
            desk.unviewed(Duration::from_millis(most)).await;
            begun.elapsed()
        };
        let view = desk.view().unwrap();
        assert!(waits(200).await >= Duration::from_millis(200));
        let closes = async {
            sleep(Duration::from_millis(200)).await;
            drop(view);
        };
        let (waited, ()) = tokio::join!(waits(60_000), closes);
        assert!((200..30_000).contains(&waited.as_millis()), "{waited:?}");
    }
}
