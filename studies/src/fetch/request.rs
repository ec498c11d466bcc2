//! Reads requests of HTTP/1.1.

use std::io::{self, Read};
use std::ops::Range;

/// The most headers of a request.
const MOST_HEADERS: usize = 64;
const STEP_BYTES: usize = 16 << 10;

/// A request, as far as the answers depend on it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path of the URL, without its query.
    pub(super) path: String,
    pub(super) query: String,
    /// The value of `Range`.
    range: Option<String>,
    pub(super) if_match: Option<String>,
    /// Whether the answer is to have the object's checksum.
    pub(super) wants_checksum: bool,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads the next request of a connection. `unread` keeps what has been read beyond it. `None` at the connection's
    /// end.
    pub(super) fn read(mut stream: impl Read, unread: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let (mut request, length) = loop {
            if let Some((request, length, head)) = parse(unread)? {
                unread.drain(..head);
                break (request, length);
            }
            if !read_more(&mut stream, unread)? {
                return Ok(None);
            }
        };
        while unread.len() < length {
            if !read_more(&mut stream, unread)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        request.body = unread.drain(..length).collect();
        Ok(Some(request))
    }

    /// Returns the wanted bytes of an object, and whether they are a part of it. `None` if the range cannot be
    /// satisfied.
    pub(super) fn range(&self, size: u64) -> Option<(Range<u64>, bool)> {
        let Some(range) = &self.range else { return Some((0..size, false)) };
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        let first = first.parse().ok().filter(|first| *first < size)?;
        let end = if last.is_empty() { size } else { last.parse::<u64>().ok()?.saturating_add(1).min(size) };
        (first < end).then_some((first..end, true))
    }
}

/// Reads what has arrived. Returns false at the connection's end.
fn read_more(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<bool> {
    let mut step = [0; STEP_BYTES];
    let count = stream.read(&mut step)?;
    unread.extend_from_slice(&step[..count]);
    Ok(count > 0)
}

/// Returns a request without its body, the body's length, and the length of the head, as soon as the head is complete.
fn parse(unread: &[u8]) -> io::Result<Option<(Request, usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = parsed.parse(unread).map_err(io::Error::other)? else { return Ok(None) };
    let header = |name: &str| {
        let found = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let length = match header("content-length") {
        Some(length) => length.parse().map_err(io::Error::other)?,
        None if header("transfer-encoding").is_some() => return Err(io::Error::other("a request of unknown length")),
        None => 0,
    };
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        range: header("range"),
        if_match: header("if-match"),
        wants_checksum: header("x-amz-checksum-mode").is_some_and(|mode| mode == "ENABLED"),
        body: Vec::new(),
    };
    Ok(Some((request, length, head)))
}
