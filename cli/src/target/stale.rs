//! Recognizes variables of `spotsweep local env` that a shell has kept after the end of their stack.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use spotsweep_protocol::failure::Failure;

/// The endpoint of all services (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html>).
const ENDPOINT: &str = "AWS_ENDPOINT_URL";
/// On this machine an answer takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(1);

/// Fails if the environment names an endpoint on this machine and nothing listens there. The SDK would try for seconds,
/// and only report that the connection was refused.
pub(super) fn check() -> Result<(), Failure> {
    match endpoint().filter(|url| is_left(url)) {
        Some(url) => Err(ended(&url)),
        None => Ok(()),
    }
}

/// The endpoint that the environment names.
pub(super) fn endpoint() -> Option<String> {
    std::env::var(ENDPOINT).ok()
}

/// Whether an endpoint is on this machine, and nothing listens there.
pub(super) fn is_left(url: &str) -> bool {
    address(url).is_some_and(|address| !listens(&address))
}

fn ended(url: &str) -> Failure {
    Failure::new(format!(
        "nothing listens at {url}, which {ENDPOINT} names: the local stack of `eval \"$(spotsweep local env)\"` has ended; \
         start another with `spotsweep local up` and repeat the `eval`, or open a new shell for AWS"
    ))
}

/// `host:port` of an endpoint on this machine. None for one elsewhere.
fn address(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://")?;
    let authority = rest.split('/').next()?;
    let (host, _port) = authority.rsplit_once(':')?;
    ["127.0.0.1", "localhost", "[::1]"].contains(&host).then(|| authority.to_owned())
}

fn listens(address: &str) -> bool {
    let Ok(addresses) = address.to_socket_addrs() else { return false };
    addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_endpoint_of_this_machine_is_looked_at() {
        for (url, expected) in [
            ("http://127.0.0.1:4566", Some("127.0.0.1:4566")),
            ("http://localhost:4566/", Some("localhost:4566")),
            ("http://[::1]:4566", Some("[::1]:4566")),
            ("https://s3.eu-west-1.amazonaws.com", None),
            ("http://minio.example:9000", None),
            ("", None),
        ] {
            assert_eq!(address(url).as_deref(), expected, "{url}");
        }
    }
}
