//! A network namespace of the test's own, with the addresses that an instance reaches its services at.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The instance's metadata service.
pub(crate) const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// The ECS agent's, which hands out task credentials.
pub(crate) const AGENT: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 2);
/// Where the names of AWS's public endpoints lead: an address for documentation (RFC 5737).
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Gone when dropped.
pub(crate) struct Network {
    name: String,
}

impl Network {
    /// Makes the namespace, in which the addresses are up and nothing else is.
    pub(crate) fn make(name: &str) -> Result<Self, String> {
        ip(&["netns", "add", name])?;
        let network = Self { name: name.to_owned() };
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        for address in [METADATA, AGENT, PUBLIC] {
            ip(&["-n", name, "address", "add", &format!("{address}/32"), "dev", "lo"])?;
        }
        Ok(network)
    }

    /// For whatever is to run in it.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    /// A socket that listens in the namespace. It can be used outside of it: a socket stays where it was made.
    pub(crate) fn listen(&self, address: Ipv4Addr, port: u16) -> TcpListener {
        let namespace = File::open(self.path()).unwrap();
        // The namespace is changed for one thread, which ends with this.
        let listening = std::thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            TcpListener::bind((IpAddr::V4(address), port)).unwrap()
        });
        let listener = listening.join().unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }
}

impl Drop for Network {
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
