//! Requests to the emulator of a running stack, by the emulator's own API.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use spotsweep_protocol::failure::{Context, Failure};

/// The emulator answers within milliseconds, but on a loaded machine it needs more time.
const DEADLINE: Duration = Duration::from_secs(10);

/// Reclaims an instance, after a notice if one is given. `emulator` is the emulator's URL.
///
/// # Errors
/// There is no such instance, or the emulator does not answer.
pub async fn reclaim(emulator: &str, instance: &str, notice: Option<Duration>) -> Result<(), Failure> {
    let request = json!({ "instance": instance, "notice_seconds": notice.map(|notice| notice.as_secs_f64()) });
    let answered = timeout(DEADLINE, post(emulator, "/_emulator/reclaim", &request.to_string())).await;
    let cannot_ask = || format!("cannot ask the local stack's emulator at {emulator}");
    let answer = answered.context(cannot_ask)?.context(cannot_ask)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200 ") {
        return Ok(());
    }
    Err(Failure::new(format!("cannot take {instance} away: {body}")))
}

/// Returns the whole answer, with its head and body.
async fn post(url: &str, path: &str, body: &str) -> std::io::Result<String> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
