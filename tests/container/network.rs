//! Makes the instance's network in a namespace of the test's own, and another namespace, behind a link, for what is not
//! on the instance.

use std::env::consts::ARCH;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Address of the metadata service, which is not on the instance.
pub(crate) const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// Address of the ECS agent on the instance, which returns task credentials.
pub(crate) const AGENT: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 2);
/// Address to which the names of AWS's public endpoints lead. It is for documentation (RFC 5737).
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// The namespaces. Dropping this removes them.
pub(crate) struct Network {
    instance: Namespace,
    outside: Namespace,
}

impl Network {
    /// Makes the namespaces, the link between them, and the addresses. Nothing else can be reached.
    pub(crate) fn make(name: &str) -> Result<Self, String> {
        let network =
            Self { instance: Namespace::make(format!("{name}-i"))?, outside: Namespace::make(format!("{name}-o"))? };
        let (instance, outside) = (&network.instance, &network.outside);
        let pair = ["netns", &instance.name, "type", "veth", "peer", "name", "eth0", "netns", &outside.name];
        ip(&[&["link", "add", "eth0"], &pair[..]].concat())?;
        for (namespace, address) in [(instance, "10.0.1.23/24"), (outside, "10.0.1.1/24")] {
            ip(&["-n", &namespace.name, "address", "add", address, "dev", "eth0"])?;
            ip(&["-n", &namespace.name, "link", "set", "eth0", "up"])?;
        }
        ip(&["-n", &instance.name, "route", "add", "default", "via", "10.0.1.1"])?;
        for address in [AGENT, METADATA, PUBLIC] {
            let at = &network.holding(address).name;
            ip(&["-n", at, "address", "add", &format!("{address}/32"), "dev", "lo"])?;
        }
        Ok(network)
    }

    fn holding(&self, address: Ipv4Addr) -> &Namespace {
        if address == AGENT { &self.instance } else { &self.outside }
    }

    /// Path of the instance's namespace, for processes that run in it.
    pub(crate) fn path(&self) -> PathBuf {
        self.instance.path()
    }

    /// Runs the launch template's script as an instance does at its boot, on a root file system in `folder`. It finds
    /// the `runner` that it has to fetch from an earlier boot.
    pub(crate) fn boot(&self, folder: &Path, runner: Option<&Path>) {
        let template = include_str!("../../infra/compute.yaml");
        let (_, script) = template.split_once("#cloud-boothook\n").unwrap();
        let (script, _) = script.split_once("--==SPOTSWEEP==--").unwrap();
        // The template's parts are joined, and one has its parameters.
        let lines =
            script.lines().map(str::trim_start).filter(|line| !line.starts_with("- ") && !line.starts_with("bucket="));
        let script: String = lines.map(|line| format!("{line}\n")).collect();
        let programs = folder.join("programs");
        fs::create_dir(&programs).unwrap();
        // The script stops the ECS agent if it fails. With this, no service of this machine is stopped.
        symlink("/bin/true", programs.join("systemctl")).unwrap();
        let script_file = folder.join("boothook");
        fs::write(&script_file, script).unwrap();
        let hash = runner.map(|runner| {
            let kept = folder.join("instance/opt/spotsweep");
            fs::create_dir_all(&kept).unwrap();
            fs::copy(runner, kept.join("spotsweep-runner")).unwrap();
            let summed = Command::new("sha256sum").arg(runner).output().unwrap();
            String::from_utf8(summed.stdout).unwrap()[..64].to_owned()
        });
        let booted = Command::new("nsenter")
            .arg(format!("--net={}", self.path().display()))
            .arg("bash")
            .arg(script_file)
            .env("ROOT", folder.join("instance"))
            .envs([("x86_64", ""), ("aarch64", "")])
            .env(ARCH, hash.unwrap_or_default())
            .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(booted.status.success(), "the boot script: {}", String::from_utf8_lossy(&booted.stderr));
    }

    /// A socket that listens in the address's namespace. It can be used outside of it, because a socket stays in the
    /// namespace in which it was made.
    pub(crate) fn listen(&self, address: Ipv4Addr, port: u16) -> TcpListener {
        let namespace = File::open(self.holding(address).path()).unwrap();
        // The namespace is changed for one thread, which ends afterwards.
        let listening = std::thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            TcpListener::bind((IpAddr::V4(address), port)).unwrap()
        });
        let listener = listening.join().unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }
}

/// A namespace. Dropping it removes it and its links.
struct Namespace {
    name: String,
}

impl Namespace {
    fn make(name: String) -> Result<Self, String> {
        ip(&["netns", "add", &name])?;
        let made = Self { name };
        ip(&["-n", &made.name, "link", "set", "lo", "up"])?;
        Ok(made)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(problem) = ip(&["netns", "delete", &self.name]) {
            eprintln!("{problem}");
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let made = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let problem = || format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&made.stderr).trim());
    made.status.success().then_some(()).ok_or_else(problem)
}
