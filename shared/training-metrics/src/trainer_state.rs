//! Reads `trainer_state.json`, the log so far that Hugging Face's Trainer writes into each checkpoint.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead};

use spotsweep_protocol::metric::Source;

use crate::json_line;
use crate::logged::Logged;
use crate::names::Named;

pub(crate) const NAME: &str = "trainer_state.json";
/// The name of the member that is the log.
const LOG: &[u8] = b"log_history";
/// The depth of an entry: in the file's object, and in the list.
const ENTRY: usize = 3;
const MOST_BYTES: usize = 64 * 1024;
/// The most entries of a trial that are distinguished. A training of months has fewer.
const MOST_SEEN: usize = 200_000;
/// The most new entries that are held at once.
const MOST_AT_ONCE: usize = 10_000;

/// The entries of all such files of a trial. Each checkpoint repeats the entries of the earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashSet<u64>);

impl Seen {
    /// Returns the entries that no earlier file had, and whether there may be more. The text after them may be invalid
    /// JSON, but they were logged all the same.
    pub(crate) fn new_in(&mut self, mut file: impl BufRead, named: &Named) -> io::Result<(Vec<Logged>, bool)> {
        let (mut found, mut scan) = (Vec::new(), Scan::default());
        loop {
            let bytes = file.fill_buf()?;
            let count = bytes.len();
            for byte in bytes {
                let entry = scan.take(*byte).and_then(|entry| json_line::parse(&entry, Source::Found, named));
                found.extend(entry.filter(|entry| self.is_new(entry)));
            }
            file.consume(count);
            if count == 0 || found.len() >= MOST_AT_ONCE {
                return Ok((found, count > 0));
            }
        }
    }

    fn is_new(&mut self, entry: &Logged) -> bool {
        let Some(first) = entry.values.first() else { return false };
        let mut hasher = DefaultHasher::new();
        (entry.step.unwrap_or_default().to_bits(), &first.name).hash(&mut hasher);
        self.0.len() < MOST_SEEN && self.0.insert(hasher.finish())
    }
}

/// Scans the text of a file, and holds at most one entry.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// The newest text of the file's own object, as far as it may be the log's name.
    name: Vec<u8>,
    /// The bytes of the entry that has begun.
    entry: Vec<u8>,
}

impl Scan {
    /// Adds the next byte. Returns the entry that ends with it.
    fn take(&mut self, byte: u8) -> Option<String> {
        if self.in_text {
            self.in_text = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            if self.in_text && self.depth == 1 && self.name.len() <= LOG.len() {
                self.name.push(byte);
            }
        } else {
            match byte {
                b'"' => {
                    self.in_text = true;
                    if self.depth == 1 {
                        self.name.clear();
                    }
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.name != LOG {
            return None;
        }
        let has_ended = self.depth < ENTRY;
        if (!has_ended || !self.entry.is_empty()) && self.entry.len() <= MOST_BYTES {
            self.entry.push(byte);
        }
        if !has_ended || self.entry.is_empty() {
            return None;
        }
        let entry = std::mem::take(&mut self.entry);
        (entry.len() <= MOST_BYTES).then(|| String::from_utf8_lossy(&entry).into_owned())
    }
}
