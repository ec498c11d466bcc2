//! A record's history: the newest entries are in the record itself, and earlier ones in pages.
//!
//! DynamoDB bills a put by each begun KiB, and another row as another put. So a trial holds entries while they fit the
//! KiB that it has begun anyway. When they do not, all but the newest become a page. A sweep seldom changes and is read
//! by every event about its trials, so it holds as many as fit the 4 KiB of a read unit.
//!
//! A page is put before the record that does not have its entries any more. The put needs no condition, because the
//! version of its last entry is in its key, and what a record held in one version never differs. If two invocations
//! work on the record at the same time, an entry can be in two pages. Its version shows that it is the same one.

use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::DeserializeOwned;

use super::BoxError;
use super::rows::{DUE, META, Row, TRIAL, attribute, field, keyed, of_attribute, record};
use spotsweep_control_plane::store::{Audit, History, Versioned};

/// The attribute of a record or a page with the entries.
const HISTORY: &str = "history";

/// Bytes of a write unit, and of a read unit
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html>).
const WRITE_BYTES: usize = 1024;
const READ_BYTES: usize = 4096;

/// A record that is to be put, with its newest entries.
pub(super) struct Kept {
    pub(super) record: Row,
    /// The entries in the record.
    pub(super) recent: History,
    /// A page with the entries that are not in the record any more.
    pub(super) page: Option<Row>,
}

/// Adds the newest entry to those that the record has held, if they fit; otherwise these become a page. There may be no
/// newest entry.
pub(super) fn keep(mut record: Row, held: &History, newest: Option<(u64, Audit)>) -> Result<Kept, BoxError> {
    let newest: History = newest.into_iter().collect();
    let mut all = held.clone();
    all.extend(newest.clone());
    let (of_all, of_newest) = (attribute(&all)?, attribute(&newest)?);
    let bytes = of_row(&record) + HISTORY.len();
    let unit = if field(&record, "sk") == Some(META) { READ_BYTES } else { WRITE_BYTES };
    let units = |history: &AttributeValue| (bytes + of_value(history)).div_ceil(unit);
    let (recent, entries, page) = if units(&of_all) == units(&of_newest) {
        (all, of_all, None)
    } else {
        (newest, of_newest, page(&record, held)?)
    };
    if !recent.is_empty() {
        record.insert(HISTORY.to_owned(), entries);
    }
    Ok(Kept { record, recent, page })
}

/// Returns the record of a row, with its version, its due time and its entries.
pub(super) fn held<T: DeserializeOwned>(row: Row) -> Result<Versioned<T>, BoxError> {
    let version = row.get("version").and_then(|value| value.as_n().ok()).ok_or("a row without its version")?;
    let version = version.parse()?;
    let recent = entries(&row)?;
    let due = field(&row, DUE).map(str::parse).transpose()?;
    Ok(Versioned { record: record(row)?, version, due, recent })
}

fn page(record: &Row, held: &History) -> Result<Option<Row>, BoxError> {
    let Some(last) = held.keys().next_back() else { return Ok(None) };
    let key = |name: &str| field(record, name).ok_or("a record without its key");
    let mut page = keyed(key("pk")?.to_owned(), format!("{}{last:010}", prefix(key("sk")?)));
    page.insert(HISTORY.to_owned(), attribute(held)?);
    Ok(Some(page))
}

/// Returns the prefix of the sort keys of a record's pages, by the record's sort key.
pub(super) fn prefix(sk: &str) -> String {
    format!("LOG#{}#", sk.strip_prefix(TRIAL).unwrap_or(sk))
}

/// Returns the entries of a record or a page.
pub(super) fn entries(row: &Row) -> Result<History, BoxError> {
    let entries = row.get(HISTORY).cloned();
    entries.map_or_else(|| Ok(History::new()), of_attribute)
}

/// Returns the bytes of a row
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>).
fn of_row(row: &Row) -> usize {
    row.iter().map(|(name, value)| name.len() + of_value(value)).sum()
}

/// Returns the bytes of a value by the same rules, for the types of values that records have.
fn of_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 1,
        AttributeValue::Ss(texts) => 3 + texts.iter().map(String::len).sum::<usize>(),
        AttributeValue::L(elements) => 3 + elements.iter().map(|element| 1 + of_value(element)).sum::<usize>(),
        AttributeValue::M(fields) => 3 + fields.len() + of_row(fields),
        _null_or_bool => 1,
    }
}
