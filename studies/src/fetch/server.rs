//! A server of HTTP/1.1 with a thread for each connection.

use std::io::{self, IoSlice, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::answers::{Body, Store};
use super::objects::{Objects, pieces};
use super::request::Request;

/// A running server. It takes no more connections once it is dropped.
#[derive(Debug)]
pub struct Server {
    port: u16,
    /// The bytes of objects that were sent.
    sent: Arc<AtomicU64>,
    has_ended: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server at a free port of all addresses. It waits for `latency` before S3's answers.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start(objects: Objects, latency: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let (port, has_ended) = (listener.local_addr()?.port(), Arc::new(AtomicBool::new(false)));
        let (store, flag) = (Arc::new(Store::new(objects)), Arc::clone(&has_ended));
        let sent = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&sent);
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().take_while(|_| !flag.load(Ordering::Acquire)).flatten() {
                let (store, count) = (Arc::clone(&store), Arc::clone(&count));
                // A connection that the client breaks off is no failure of the server.
                thread::spawn(move || serve(&stream, &store, &count, latency));
            }
        });
        Ok(Self { port, sent, has_ended, accepting: Some(accepting) })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The bytes of objects that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        // It wakes the thread that accepts.
        let woken = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)));
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "each connection has a thread of its own")]
fn serve(mut stream: &TcpStream, store: &Store, sent: &AtomicU64, latency: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    while let Some(request) = Request::read(stream, &mut unread)? {
        let answer = store.answer(&request);
        if answer.is_stored {
            thread::sleep(latency);
        }
        let length = match &answer.body {
            Body::Text(text) => text.len() as u64,
            Body::Object(range) => range.end - range.start,
        };
        let head = format!("HTTP/1.1 {} Status\r\ncontent-length: {length}\r\n{}\r\n", answer.status, answer.headers);
        match answer.body {
            _ if request.method == "HEAD" => stream.write_all(head.as_bytes())?,
            Body::Text(text) => write_both(stream, head.as_bytes(), &text)?,
            Body::Object(range) => {
                let mut pieces = pieces(range);
                write_both(stream, head.as_bytes(), pieces.next().unwrap_or_default())?;
                pieces.try_for_each(|piece| stream.write_all(piece))?;
                sent.fetch_add(length, Ordering::AcqRel);
            }
        }
    }
    Ok(())
}

/// Writes both in one call, if the kernel takes them.
fn write_both(mut stream: &TcpStream, head: &[u8], body: &[u8]) -> io::Result<()> {
    let written = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
    stream.write_all(head.get(written..).unwrap_or_default())?;
    stream.write_all(&body[written.saturating_sub(head.len())..])
}
