//! Runs a container as Docker does for the ECS agent: privileged, as root, on the host's network.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, major, minor, mknodat};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::time::timeout;

use crate::network::Network;

/// Capabilities in the order of their numbers (linux/capability.h).
const CAPABILITIES: &str = "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE \
     NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE \
     SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL \
     SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE";
/// How long to wait for a container's end.
const PATIENCE: Duration = Duration::from_secs(300);

/// A file or folder of this machine, and its path in the container.
pub(crate) type Bind<'a> = (&'a Path, &'a str);

/// What a container is started with.
pub(crate) struct Start<'a> {
    /// Id of the container, which is unique on this machine.
    pub(crate) id: String,
    /// The folder for what this container writes.
    pub(crate) folder: PathBuf,
    /// The root file system, which is not changed.
    pub(crate) image: &'a Path,
    pub(crate) network: &'a Network,
    /// The folder that the container has at `/proc/driver`.
    pub(crate) driver: &'a Path,
    pub(crate) environment: Vec<(&'a str, String)>,
    pub(crate) binds: Vec<Bind<'a>>,
    /// The instance's folder with the runner, if jobs mount it.
    pub(crate) of_instance: Option<PathBuf>,
    /// Files of the image that this container does not have.
    pub(crate) without: &'a [&'a str],
    pub(crate) command: &'a [&'a str],
}

/// A running container. Dropping it removes everything of it.
pub(crate) struct Container {
    id: String,
    folder: PathBuf,
    running: RefCell<Child>,
}

/// How a container ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Container {
    pub(crate) fn start(start: &Start<'_>) -> Self {
        let folder = &start.folder;
        for name in ["written", "work", "root", "runc"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        for path in start.without {
            let hidden = folder.join("written").join(path);
            fs::create_dir_all(hidden.parent().unwrap()).unwrap();
            // A layer removes a file of the one below with such a device.
            mknodat(CWD, hidden, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        }
        // The layers are those of Docker's overlay2: the image below, and what the container writes above.
        let layers = ["lowerdir", "upperdir", "workdir"].into_iter().zip([
            start.image.to_owned(),
            folder.join("written"),
            folder.join("work"),
        ]);
        let layers: Vec<_> = layers.map(|(layer, path)| format!("{layer}={}", path.display())).collect();
        let layers = std::ffi::CString::new(layers.join(",")).unwrap();
        mount("overlay", folder.join("root"), "overlay", MountFlags::empty(), Some(layers.as_c_str())).unwrap();
        fs::write(folder.join("config.json"), configuration(start).to_string()).unwrap();
        let output = |name: &str| Stdio::from(File::create(folder.join(name)).unwrap());
        let mut run: tokio::process::Command = runc(folder, &["run", "--bundle", path(folder), &start.id]).into();
        let running = run.stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr")).spawn().unwrap();
        Self { id: start.id.clone(), folder: folder.clone(), running: RefCell::new(running) }
    }

    /// What it has written to standard error so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.borrow_mut().try_wait().unwrap().is_none()
    }

    /// Whether the training runs in it, besides the runner and its readers.
    pub(crate) fn trains(&self) -> bool {
        let listed = runc(&self.folder, &["ps", "--format", "json", &self.id]).output().unwrap();
        let processes = serde_json::from_slice::<Vec<u32>>(&listed.stdout).unwrap_or_default();
        let command = |process: &u32| fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        processes.iter().map(command).any(|words| String::from_utf8_lossy(&words).starts_with("python3"))
    }

    /// Sends a signal to its first process. When that is killed, everything in the container is.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = runc(&self.folder, &["kill", &self.id, signal]).output().unwrap();
        assert!(sent.status.success(), "runc kill: {}", String::from_utf8_lossy(&sent.stderr));
    }

    pub(crate) async fn outcome(mut self) -> Outcome {
        let ended = timeout(PATIENCE, self.running.get_mut().wait()).await;
        let ended = ended.unwrap_or_else(|_elapsed| panic!("{} does not end: {}", self.id, self.log())).unwrap();
        let stdout = fs::read_to_string(self.folder.join("stdout")).unwrap();
        Outcome { code: ended.code(), stdout, stderr: self.log() }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // A container that has ended is deleted already.
        let _ = runc(&self.folder, &["delete", "--force", &self.id]).output();
        if let Err(problem) = unmount(self.folder.join("root"), UnmountFlags::DETACH) {
            eprintln!("{} stays mounted: {problem}", self.folder.display());
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn runc(folder: &Path, arguments: &[&str]) -> Command {
    let mut runc = Command::new("runc");
    runc.arg("--root").arg(folder.join("runc")).args(arguments);
    runc
}

/// Makes the container's configuration. `config.json` has what is the same for every job.
fn configuration(start: &Start<'_>) -> Value {
    let mut configuration: Value = serde_json::from_str(include_str!("config.json")).unwrap();
    let environment = start.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let capabilities = capabilities();
    configuration["root"] = json!({ "path": start.folder.join("root"), "readonly": false });
    configuration["hostname"] = json!("ip-10-0-1-23");
    configuration["process"]["args"] = json!(start.command);
    configuration["process"]["env"] = environment.collect();
    configuration["process"]["capabilities"] =
        json!({ "bounding": capabilities, "effective": capabilities, "permitted": capabilities });
    for (from, to) in &start.binds {
        let bind = json!({ "destination": to, "type": "bind", "source": from, "options": ["rbind", "rprivate"] });
        configuration["mounts"].as_array_mut().unwrap().push(bind);
    }
    if let Some(folder) = &start.of_instance {
        let options = ["rbind", "rprivate", "ro"];
        let mount = json!({ "destination": "/opt/spotsweep", "type": "bind", "source": folder, "options": options });
        configuration["mounts"].as_array_mut().unwrap().push(mount);
    }
    // The host's network is the namespace that the test has made.
    let network = json!({ "type": "network", "path": start.network.path() });
    configuration["linux"]["namespaces"].as_array_mut().unwrap().push(network);
    configuration["linux"]["devices"] = devices().into();
    // runc makes no mounts below /proc, so a hook makes this one, as NVIDIA's runtime does.
    let mount = json!(["mount", "--bind", start.driver, start.folder.join("root/proc/driver")]);
    configuration["hooks"] = json!({ "createContainer": [{ "path": "/bin/mount", "args": mount }] });
    configuration["linux"]["cgroupsPath"] = json!(format!("/{}", start.id));
    configuration
}

/// The capabilities that `--privileged` gives: all that this process has itself.
fn capabilities() -> Vec<String> {
    let own = rustix::thread::capabilities(None).unwrap().permitted.bits();
    let numbered = CAPABILITIES.split_whitespace().enumerate();
    numbered.filter(|(number, _)| own >> number & 1 == 1).map(|(_, name)| format!("CAP_{name}")).collect()
}

/// The devices that exist when the container starts. Docker puts these into a privileged container's own `/dev`.
fn devices() -> Vec<Value> {
    let describe = |entry: fs::DirEntry| {
        let found = entry.metadata().ok()?;
        let kind = match (found.file_type().is_block_device(), found.file_type().is_char_device()) {
            (true, _) => "b",
            (_, true) => "c",
            _ => return None,
        };
        Some(json!({
            "path": entry.path(), "type": kind, "major": major(found.rdev()), "minor": minor(found.rdev()),
            "fileMode": found.mode() & 0o777, "uid": found.uid(), "gid": found.gid(),
        }))
    };
    let entries = fs::read_dir("/dev").unwrap().map(Result::unwrap);
    // The container has a console and terminals of its own.
    let own = |entry: &fs::DirEntry| ["console", "ptmx"].iter().any(|name| entry.file_name() == *name);
    entries.filter(|entry| !own(entry)).filter_map(describe).collect()
}
