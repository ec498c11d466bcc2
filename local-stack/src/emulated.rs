//! What the emulator of a running stack is asked to do, by its own API.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use spotsweep_protocol::failure::{Context, Failure};

/// It answers within milliseconds; a loaded machine gets more.
const DEADLINE: Duration = Duration::from_secs(10);

/// Takes an instance away, after a notice if there is one. `emulator` is the emulator's URL.
///
/// # Errors
/// Where there is no such instance, or the emulator does not answer.
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

/// The whole answer, head and body.
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
