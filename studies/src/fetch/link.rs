//! The link between the clients and the server: the loopback device, or a virtual cable with a limited rate.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use super::run_program;

const NAMESPACE: &str = "data-fetch";
const OUR_END: &str = "data-fetch0";
const THEIR_END: &str = "data-fetch1";
/// Two addresses of <https://www.rfc-editor.org/rfc/rfc2544#appendix-C.2.2>.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// A link. It is removed when it is dropped.
#[derive(Debug)]
pub struct Link {
    /// Gbit/s; none for the loopback device.
    rate: Option<u32>,
}

impl Link {
    /// Makes a link with so many Gbit/s towards the clients, or the loopback device.
    ///
    /// # Errors
    /// If `ip` or `tc` (iproute2) fail. Both need root.
    pub fn make(rate: Option<u32>) -> io::Result<Self> {
        let link = Self { rate };
        let Some(gbit) = rate else { return Ok(link) };
        let ip = |line: String| run_program(Command::new("ip").args(line.split(' ')));
        ip(format!("netns add {NAMESPACE}"))?;
        ip(format!("link add {OUR_END} type veth peer name {THEIR_END} netns {NAMESPACE}"))?;
        ip(format!("address add {SERVER}/30 dev {OUR_END}"))?;
        ip(format!("link set {OUR_END} up"))?;
        ip(format!("-n {NAMESPACE} address add {CLIENT}/30 dev {THEIR_END}"))?;
        ip(format!("-n {NAMESPACE} link set {THEIR_END} up"))?;
        ip(format!("-n {NAMESPACE} link set lo up"))?;
        // Bursts of 2 ms, and a queue in which nothing is lost: https://man7.org/linux/man-pages/man8/tc-tbf.8.html.
        let (burst, limit) = (250_000 * gbit, 64_000_000);
        let shape = format!("qdisc add dev {OUR_END} root tbf rate {gbit}gbit burst {burst} limit {limit}");
        run_program(Command::new("tc").args(shape.split(' ')))?;
        Ok(link)
    }

    /// The server's address for clients.
    pub(super) fn server(&self) -> Ipv4Addr {
        if self.rate.is_some() { SERVER } else { Ipv4Addr::LOCALHOST }
    }

    /// What a client's command line begins with.
    pub(super) fn prefix(&self) -> Vec<String> {
        let words = self.rate.map(|_| ["ip", "netns", "exec", NAMESPACE]);
        words.into_iter().flatten().map(str::to_owned).collect()
    }

    /// The share of the rate that so many bytes a second are.
    pub(super) fn share(&self, bytes_per_second: f64) -> Option<f64> {
        self.rate.map(|gbit| bytes_per_second * 8.0 / (f64::from(gbit) * 1e9))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.rate.is_some() {
            // The cable goes with the namespace, in which one of its ends is.
            if let Err(error) = run_program(Command::new("ip").args(["netns", "delete", NAMESPACE])) {
                eprintln!("{error}");
            }
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(gbit) => write!(to, "{gbit} Gbit/s"),
            None => to.write_str("loopback"),
        }
    }
}
