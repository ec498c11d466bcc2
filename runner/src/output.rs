//! The command's output. The runner hides secrets in it, passes it on, keeps its end, and hands over its lines.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use spotsweep_protocol::mask::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::exit::Failure;
use crate::own_files::MOST_LOG_BYTES;
use crate::reading::Lines;
use crate::unread::Unread;

/// How much of the output's end is kept for `train.log`.
const TAIL_BYTES: usize = MOST_LOG_BYTES as usize;
/// A longer line is passed on in pieces, and only its beginning is searched for metrics.
const MAX_LINE_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 16 * 1024;

/// The runner's own stdout or stderr, for writes without blocking and without a buffer.
pub(crate) fn own_stream(stream: impl AsFd) -> Result<tokio::fs::File, Failure> {
    let descriptor = stream.as_fd().try_clone_to_owned();
    let file = descriptor.map(File::from).map_err(|source| Failure::System("use its output", source))?;
    Ok(tokio::fs::File::from_std(file))
}

/// The last [`TAIL_BYTES`] of all pushed bytes.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    /// The number of pushed bytes.
    pushed: usize,
}

impl Tail {
    /// A tail that begins with an earlier attempt's `bytes`.
    pub(crate) fn after(bytes: Vec<u8>) -> Self {
        Self { bytes, pushed: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.pushed = self.pushed.saturating_add(bytes.len());
        // The tail is trimmed at twice its size, so that each byte moves at most once.
        if self.bytes.len() > 2 * TAIL_BYTES {
            self.bytes.drain(..self.bytes.len() - TAIL_BYTES);
        }
    }

    /// The tail. If something was cut off, it begins at the start of a line.
    pub(crate) fn bytes(&self) -> &[u8] {
        let Some(cut) = self.bytes.len().checked_sub(TAIL_BYTES).filter(|cut| *cut > 0) else {
            return &self.bytes;
        };
        let tail = &self.bytes[cut..];
        let line = tail.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        &tail[line..]
    }

    /// How many bytes of the tail were pushed; the other ones are from an earlier attempt.
    pub(crate) fn pushed(&self) -> usize {
        self.pushed.min(self.bytes().len())
    }
}

/// Cuts a stream of bytes at line ends. A carriage return ends a line too, because of progress bars.
#[derive(Default)]
pub(crate) struct Splitter {
    pending: Vec<u8>,
    /// Whether the pending bytes continue a line whose start was passed on already.
    within_line: bool,
    /// Whether a line was too long.
    has_cut: bool,
}

impl Splitter {
    /// Takes bytes. Returns the bytes to pass on now, and the whole lines within them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<String>) {
        let line_end = bytes.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map(|end| self.pending.len() + end);
        self.pending.extend_from_slice(bytes);
        let ready = match line_end {
            Some(end) => end + 1,
            None if self.pending.len() > MAX_LINE_BYTES => self.pending.len(),
            None => return Default::default(),
        };
        let block: Vec<u8> = self.pending.drain(..ready).collect();
        let lines = self.lines(&block);
        self.within_line = line_end.is_none();
        (block, lines)
    }

    /// Returns the rest at the end of the stream.
    pub(crate) fn finish(&mut self) -> (Vec<u8>, Vec<String>) {
        let block = std::mem::take(&mut self.pending);
        let lines = self.lines(&block);
        (block, lines)
    }

    /// Adds a note to `unread` if lines were too long.
    pub(crate) fn tell(&mut self, unread: &Unread) {
        if std::mem::take(&mut self.has_cut) {
            let most = MAX_LINE_BYTES / 1024;
            unread.add(format!("the rest of lines of output that are longer than {most} KiB"));
        }
    }

    fn lines(&mut self, block: &[u8]) -> Vec<String> {
        let lines = block.split(|byte| matches!(byte, b'\n' | b'\r')).skip(usize::from(self.within_line));
        let mut found = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            self.has_cut |= line.len() > MAX_LINE_BYTES;
            let line = if line.len() > MAX_LINE_BYTES { beginning(line) } else { line };
            found.extend((!line.is_empty()).then(|| String::from_utf8_lossy(line).into_owned()));
        }
        found
    }
}

/// The whole words at the beginning of a line that is too long. A part of a number would be another number.
fn beginning(line: &[u8]) -> &[u8] {
    let line = &line[..MAX_LINE_BYTES];
    let end = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t' | b',' | b';'));
    line[..end.unwrap_or(0)].trim_ascii_end()
}

/// Passes on one stream of the command's output.
pub(crate) struct Pump<W> {
    /// The runner's own stdout or stderr.
    pub(crate) onward: W,
    /// Hides the secrets in this stream.
    pub(crate) mask: Stream,
    pub(crate) tail: Arc<Mutex<Tail>>,
    pub(crate) lines: Lines,
    pub(crate) unread: Unread,
    /// Bytes of all streams so far.
    pub(crate) output_bytes: Arc<AtomicU64>,
}

impl<W: AsyncWrite + Unpin> Pump<W> {
    /// Runs until the end of the stream. The command must never block on its output, so the runner goes on reading even
    /// if its own output cannot be written.
    pub(crate) async fn run(mut self, mut source: impl AsyncRead + Unpin) {
        let mut splitter = Splitter::default();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match source.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    self.output_bytes.fetch_add(count as u64, Ordering::Relaxed);
                    let shown = self.mask.push(&buffer[..count]);
                    self.hand_on(splitter.push(&shown)).await;
                }
            }
            splitter.tell(&self.unread);
        }
        let rest = self.mask.finish();
        self.hand_on(splitter.push(&rest)).await;
        self.hand_on(splitter.finish()).await;
        splitter.tell(&self.unread);
    }

    async fn hand_on(&mut self, (block, lines): (Vec<u8>, Vec<String>)) {
        if block.is_empty() {
            return;
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(&block);
        let _ = self.onward.write_all(&block).await;
        let _ = self.onward.flush().await;
        self.lines.read(lines).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_starts_at_a_line() {
        let mut tail = Tail::default();
        tail.push(b"short\n");
        assert_eq!(tail.bytes(), b"short\n");
        for number in 0..400_000 {
            tail.push(format!("{number}\n").as_bytes());
        }
        let bytes = tail.bytes();
        assert!(bytes.len() <= TAIL_BYTES && bytes.len() > TAIL_BYTES - 10);
        assert!(bytes.ends_with(b"\n399999\n"));
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        assert_eq!(first.len(), 6, "a whole number: {first:?}");
    }

    #[test]
    fn lines_come_whole_however_the_bytes_arrive() {
        let long = format!("loss={}", "1".repeat(MAX_LINE_BYTES));
        let text = format!("a=1\r\nb=2\n10%\r20%\r{long}\nc=3\nacc=5, x {long}\nno end");
        for step in [1, 2, 7, 4096, text.len()] {
            let mut splitter = Splitter::default();
            let mut passed = Vec::new();
            let mut lines = Vec::new();
            let mut take = |(block, found): (Vec<u8>, Vec<String>)| {
                passed.extend(block);
                lines.extend(found);
            };
            for bytes in text.as_bytes().chunks(step) {
                take(splitter.push(bytes));
            }
            take(splitter.finish());
            assert_eq!(passed, text.as_bytes(), "unchanged, step {step}");
            assert_eq!(lines, ["a=1", "b=2", "10%", "20%", "c=3", "acc=5, x", "no end"], "step {step}");
            let unread = Unread::default();
            splitter.tell(&unread);
            splitter.tell(&unread);
            assert_eq!(unread.all(true).len(), 1, "step {step}");
        }
    }
}
