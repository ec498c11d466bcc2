//! Sizes of items, and the units that reading and writing them costs.

use std::ops::{AddAssign, Mul};

use serde_json::{Map, Value};

/// Bytes in one write unit and in one strongly consistent read unit (DynamoDB developer guide, "DynamoDB read and write
/// operations").
const WRITE_BYTES: u64 = 1024;
const READ_BYTES: u64 = 4096;

/// What calls have used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    /// Number of calls.
    pub calls: f64,
    /// Bytes of the requests' bodies.
    pub sent: f64,
    /// Bytes of the answers' bodies.
    pub received: f64,
    /// Read units. An eventually consistent read costs half of them.
    pub reads: f64,
    /// Write units of the records of sweeps and trials.
    pub records: f64,
    /// Write units of pages of records' histories.
    pub audits: f64,
    /// Write units of pointers from instances, volumes and snapshots.
    pub pointers: f64,
    /// Write units of the index of open work.
    pub index: f64,
    /// Number of written records.
    pub changes: f64,
    /// Number of written records whose state has changed, by their history.
    pub moves: f64,
    /// Write units of the changes of state if each were one write of the record without its history.
    pub least: f64,
}

impl Units {
    /// Sum of all write units: records, histories, pointers and the index.
    pub fn writes(&self) -> f64 {
        self.records + self.audits + self.pointers + self.index
    }
}

impl Mul<f64> for Units {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            calls: self.calls * times,
            sent: self.sent * times,
            received: self.received * times,
            reads: self.reads * times,
            records: self.records * times,
            audits: self.audits * times,
            pointers: self.pointers * times,
            index: self.index * times,
            changes: self.changes * times,
            moves: self.moves * times,
            least: self.least * times,
        }
    }
}

impl AddAssign for Units {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.sent += other.sent;
        self.received += other.received;
        self.reads += other.reads;
        self.records += other.records;
        self.audits += other.audits;
        self.pointers += other.pointers;
        self.index += other.index;
        self.changes += other.changes;
        self.moves += other.moves;
        self.least += other.least;
    }
}

/// Read units for so many bytes of one item, or of one page of items.
pub(super) fn read(bytes: u64, is_consistent: bool) -> f64 {
    let units = bytes.div_ceil(READ_BYTES).max(1) as f64;
    if is_consistent { units } else { units / 2.0 }
}

/// Write units of an item.
pub(super) fn write(bytes: u64) -> f64 {
    bytes.div_ceil(WRITE_BYTES).max(1) as f64
}

/// Bytes of an item (DynamoDB developer guide, "DynamoDB item sizes and formats").
pub(super) fn size(item: &Map<String, Value>) -> u64 {
    item.iter().map(|(name, value)| name.len() as u64 + of_value(value)).sum()
}

/// Bytes of a typed value.
pub(super) fn of_value(value: &Value) -> u64 {
    let Some((kind, value)) = value.as_object().and_then(|typed| typed.iter().next()) else { return 0 };
    match (kind.as_str(), value) {
        ("S", Value::String(text)) => text.len() as u64,
        // A number has about one byte for two digits, and one more.
        ("N", Value::String(digits)) => {
            let digits = digits.chars().filter(char::is_ascii_digit).count() as u64;
            digits.div_ceil(2) + 1
        }
        // A map has three bytes, and one more for each element.
        ("M", Value::Object(fields)) => 3 + fields.len() as u64 + size(fields),
        ("L", Value::Array(elements)) => 3 + elements.iter().map(|element| 1 + of_value(element)).sum::<u64>(),
        _null_or_bool => 1,
    }
}
