//! Hides the values of secrets in what a training prints, byte by byte as it comes.
//!
//! A value is hidden as it is, and in the forms in which programs print it: a single line of a value that has several,
//! base64, percent-encoding, hexadecimal, and the escapes of JSON, Rust, Python and shells.
//!
//! This protects from accidents, not from a program that wants to print a secret. Not hidden is a value that is
//! reversed, compressed, encrypted, hashed or written in pieces, in two of these forms at once, in another form (HTML,
//! UTF-16, numbers, hexadecimal with separators), or in base64 that is wrapped, because any place in the value may have
//! the line break. Neither is a part of a value, except for its lines: the fields of a JSON object are values of their
//! own. Around a value in the middle of base64, one character may stay at each side, with some bits of the value.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;

use crate::redact::HIDDEN;

mod forms;
#[cfg(test)]
mod tests;

/// The shortest value, in bytes without blanks at its ends, that is hidden. Shorter ones, such as `1` or `yes`, are
/// parts of numbers and words everywhere: without them the output would be of no use.
pub const LEAST_BYTES: usize = 4;

/// The values that are hidden. A clone shares them.
///
/// It takes up to five kilobytes of memory for each byte of a value with many special characters, and less than one for
/// a token of letters and digits.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<Patterns>>);

impl Mask {
    /// Hides these values. Blanks and line breaks at the ends of a value are no part of it.
    pub fn new(values: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let forms = values.into_iter().flat_map(|value| forms::of(value.as_ref()));
        Self::of_patterns(&forms.collect())
    }

    fn of_patterns(patterns: &BTreeSet<Vec<u8>>) -> Self {
        Self((!patterns.is_empty()).then(|| Arc::new(Patterns::new(patterns))))
    }

    /// Returns a whole text without the values. The beginning of a value at the end of the text is hidden as well.
    pub fn hide(&self, text: &str) -> String {
        let mut stream = self.stream();
        let mut clean = stream.push(text.as_bytes());
        clean.extend(stream.finish());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// Begins a stream.
    pub fn stream(&self) -> Stream {
        Stream {
            state: self.0.as_ref().map(|patterns| patterns.start()).unwrap_or_default(),
            patterns: self.0.clone(),
            held: Vec::new(),
            hidden: Vec::new(),
            is_after_hidden: false,
        }
    }
}

impl fmt::Debug for Mask {
    /// Leaves out the values.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mask(..)")
    }
}

/// What finds the hidden byte strings.
struct Patterns {
    automaton: NFA,
    /// The length of the longest end of the bytes so far that more bytes may complete, by the automaton's state. States
    /// without such an end are absent.
    open: HashMap<StateID, usize>,
}

impl Patterns {
    fn new(patterns: &BTreeSet<Vec<u8>>) -> Self {
        // It fails only for gigabytes of states.
        let automaton = NFA::new(patterns).expect("values are smaller than memory");
        let mut new = Self { automaton, open: HashMap::new() };
        let mut whole = Vec::new();
        for pattern in patterns {
            let mut state = new.start();
            for (length, byte) in pattern.iter().enumerate() {
                if length > 0 {
                    new.open.insert(state, length);
                }
                state = new.next(state, *byte);
            }
            whole.push((state, pattern));
        }
        // A pattern that begins no longer one is complete. A shorter end of it may begin another one.
        whole.sort_by_key(|(_, pattern)| pattern.len());
        for (state, pattern) in whole {
            let shorter = pattern[1..].iter().fold(new.start(), |state, byte| new.next(state, *byte));
            if let (false, open @ 1..) = (new.open.contains_key(&state), new.open(shorter)) {
                new.open.insert(state, open);
            }
        }
        new
    }

    fn start(&self) -> StateID {
        self.automaton.start_state(Anchored::No).unwrap_or_default()
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    fn open(&self, state: StateID) -> usize {
        self.open.get(&state).copied().unwrap_or_default()
    }

    /// Returns the length of the longest pattern that ends here.
    fn ended(&self, state: StateID) -> Option<usize> {
        if !self.automaton.is_match(state) {
            return None;
        }
        let ended = (0..self.automaton.match_len(state)).map(|index| self.automaton.match_pattern(state, index));
        ended.map(|pattern| self.automaton.pattern_len(pattern)).max()
    }
}

/// A stream of bytes, such as the output of a process, in which the values are hidden.
///
/// All bytes of all occurrences are hidden, also where two overlap. Hidden bytes without others between them become one
/// [`HIDDEN`]. How the stream is cut into pushes makes no difference.
pub struct Stream {
    patterns: Option<Arc<Patterns>>,
    state: StateID,
    /// The bytes that were not passed on.
    held: Vec<u8>,
    /// The hidden bytes among them, in order and with others between them.
    hidden: Vec<Range<usize>>,
    /// Whether the last byte that was passed on was hidden.
    is_after_hidden: bool,
}

impl Stream {
    /// Takes bytes, and returns those that can be passed on. The longest end that may be the beginning of a value is
    /// held back.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(patterns) = self.patterns.clone() else { return bytes.to_vec() };
        let mut end = self.held.len();
        self.held.extend_from_slice(bytes);
        for byte in bytes {
            end += 1;
            self.state = patterns.next(self.state, *byte);
            if let Some(length) = patterns.ended(self.state) {
                self.hide(end - length..end);
            }
        }
        self.pass(end - patterns.open(self.state))
    }

    /// Returns the rest at the end of the stream. If the stream ends within a value, its beginning is hidden. Later
    /// pushes are a new stream.
    pub fn finish(&mut self) -> Vec<u8> {
        if self.held.len() >= LEAST_BYTES {
            self.hide(0..self.held.len());
        }
        let rest = self.pass(self.held.len());
        *self = Mask(self.patterns.take()).stream();
        rest
    }

    /// Hides bytes that end after all earlier hidden ones.
    fn hide(&mut self, mut range: Range<usize>) {
        while let Some(last) = self.hidden.pop_if(|last| last.end >= range.start) {
            range.start = range.start.min(last.start);
        }
        self.hidden.push(range);
    }

    /// Passes the bytes before this place on.
    fn pass(&mut self, end: usize) -> Vec<u8> {
        let mut passed = Vec::with_capacity(end);
        let mut from = 0;
        for range in self.hidden.iter().filter(|range| range.start < end) {
            if from < range.start {
                passed.extend_from_slice(&self.held[from..range.start]);
                self.is_after_hidden = false;
            }
            if !self.is_after_hidden {
                passed.extend_from_slice(HIDDEN.as_bytes());
                self.is_after_hidden = true;
            }
            from = range.end.min(end);
        }
        if from < end {
            passed.extend_from_slice(&self.held[from..end]);
            self.is_after_hidden = false;
        }
        self.held.drain(..end);
        self.hidden.retain_mut(|range| {
            *range = range.start.saturating_sub(end)..range.end.saturating_sub(end);
            range.start < range.end
        });
        passed
    }
}

impl fmt::Debug for Stream {
    /// Leaves out the values, and the bytes that may be the beginning of one.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stream(..)")
    }
}
