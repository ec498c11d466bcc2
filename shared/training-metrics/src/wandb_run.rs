//! Reads the file of a W&B run, which W&B writes online and offline: `run-<id>.wandb`.
//!
//! It is a log of LevelDB's format (<https://github.com/google/leveldb/blob/main/doc/log_format.md>) with a header of
//! W&B's, and CRC-32 as in zip instead of CRC-32C (wandb 0.31.0, `core/pkg/leveldb/record.go`). Each record is a
//! protobuf message (`wandb_internal.proto`).

use std::io::{self, BufRead, Seek, SeekFrom};

use crc::{CRC_32_ISO_HDLC, Crc};
use prost::Message;
use serde_json::{Map, Value as Json};
use spotsweep_protocol::metric::Source;

use crate::json_line;
use crate::logged::Logged;
use crate::part::{PIECE_BYTES, Part};

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// `:W&B`, a magic number and a version.
const FILE_HEADER: [u8; 7] = *b":W&B\xe1\xbe\x00";
const BLOCK_BYTES: u64 = 32 * 1024;
const HEADER_BYTES: u64 = 7;
/// The most bytes of a record that is read. A record of metrics is short; longer ones are tables and logs.
const MOST_BYTES: usize = 1 << 20;

/// Kinds of parts of a record.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(message, optional, tag = "2")]
    history: Option<History>,
}

#[derive(Clone, PartialEq, Message)]
struct History {
    #[prost(message, repeated, tag = "1")]
    item: Vec<Item>,
    #[prost(message, optional, tag = "2")]
    step: Option<Step>,
}

#[derive(Clone, PartialEq, Message)]
struct Item {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, repeated, tag = "2")]
    nested_key: Vec<String>,
    #[prost(string, tag = "16")]
    value_json: String,
}

#[derive(Clone, PartialEq, Message)]
struct Step {
    #[prost(int64, tag = "1")]
    num: i64,
}

/// Returns what was logged in the records from `offset` on after `since`, in seconds since 1970.
pub(crate) fn read(file: &mut (impl BufRead + Seek), mut offset: u64, since: f64) -> io::Result<Part> {
    let bytes = file.seek(SeekFrom::End(0))?;
    let mut found = Vec::new();
    if offset == 0 {
        if bytes < HEADER_BYTES {
            return Ok(Part { found, offset, is_broken: false, has_more: false });
        }
        let mut header = [0; HEADER_BYTES as usize];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut header)?;
        if header != FILE_HEADER {
            return Ok(Part { found, offset, is_broken: true, has_more: false });
        }
        offset = HEADER_BYTES;
    }
    let start = offset;
    // A record that is not complete yet is read again from its beginning. Parts without a beginning are skipped,
    // because they belong to a record that is too long.
    let (mut at, mut record) = (offset, None::<Vec<u8>>);
    file.seek(SeekFrom::Start(offset))?;
    while let Some(chunk) = chunk(file, at, bytes)? {
        let Chunk { kind, data, end } = chunk;
        match kind {
            FULL | FIRST => (offset, record) = (at, Some(data)),
            MIDDLE | LAST => {
                record = record.filter(|record| record.len() <= MOST_BYTES);
                record.iter_mut().for_each(|record| record.extend_from_slice(&data));
            }
            // The checksum is wrong, or no version of W&B writes this.
            _ => return Ok(Part { found, offset, is_broken: true, has_more: false }),
        }
        at = end;
        if matches!(kind, FULL | LAST)
            && let Some(record) = record.take()
        {
            found.extend(Record::decode(&*record).ok().and_then(|record| logged(record.history?, since)));
        }
        if record.is_none() {
            offset = at;
        }
        if offset - start >= PIECE_BYTES {
            return Ok(Part { found, offset, is_broken: false, has_more: true });
        }
    }
    Ok(Part { found, offset, is_broken: false, has_more: false })
}

struct Chunk {
    /// The kind; 0 if the chunk is broken.
    kind: u8,
    data: Vec<u8>,
    end: u64,
}

/// Returns the part of a record at `at`, the file's position; `None` if it is not complete yet.
fn chunk(file: &mut (impl BufRead + Seek), mut at: u64, bytes: u64) -> io::Result<Option<Chunk>> {
    let left = BLOCK_BYTES - at % BLOCK_BYTES;
    if left < HEADER_BYTES {
        at += left;
        file.seek_relative(left.cast_signed())?;
    }
    if at + HEADER_BYTES > bytes {
        return Ok(None);
    }
    let mut header = [0; HEADER_BYTES as usize];
    file.read_exact(&mut header)?;
    let [c0, c1, c2, c3, l0, l1, kind] = header;
    let (checksum, length) = (u32::from_le_bytes([c0, c1, c2, c3]), u16::from_le_bytes([l0, l1]));
    let end = at + HEADER_BYTES + u64::from(length);
    if end > bytes {
        return Ok(None);
    }
    let mut data = vec![0; length.into()];
    file.read_exact(&mut data)?;
    let mut digest = CRC.digest();
    digest.update(&[kind]);
    digest.update(&data);
    let kind = if digest.finalize() == checksum { kind } else { 0 };
    Ok(Some(Chunk { kind, data, end }))
}

fn logged(history: History, since: f64) -> Option<Logged> {
    let name = |item: &Item| if item.nested_key.is_empty() { item.key.clone() } else { item.nested_key.join(".") };
    let object: Map<String, Json> =
        history.item.iter().filter_map(|item| Some((name(item), number(&item.value_json)?))).collect();
    let time = object.get("_timestamp").and_then(Json::as_f64);
    if time.is_some_and(|time| time <= since) {
        return None;
    }
    // The names of W&B's own values begin with `_`.
    let own = history.step.map(|step| step.num as f64);
    let object: Map<String, Json> = object.into_iter().filter(|(name, _)| !name.starts_with('_')).collect();
    let mut found = json_line::of_object(&object, Source::Recorded);
    found.step = found.step.or(own);
    found.time = time;
    (!found.values.is_empty()).then_some(found)
}

/// Reads a number. Numbers that JSON does not have are texts; other texts are not metrics.
fn number(json: &str) -> Option<Json> {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    match serde_json::from_str(json) {
        Ok(Json::Number(number)) => Some(Json::Number(number)),
        Ok(Json::String(text)) => matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity").then(|| Json::String(text)),
        Ok(_) => None,
        Err(_) => is_number(json).then(|| Json::String(json.to_owned())),
    }
}
