//! Safetensors: the header's length, the header as JSON, then the tensors without gaps
//! (<https://huggingface.co/docs/safetensors/index#format>).

use std::fmt;
use std::io;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::Completeness;
use crate::source::{Source, little_endian};

/// The longest header that the library accepts
/// (<https://github.com/huggingface/safetensors/blob/main/safetensors/src/tensor.rs>, `MAX_HEADER_SIZE`).
const MAX_HEADER_BYTES: u64 = 100_000_000;
const LENGTH_BYTES: u64 = 8;

/// Whether these bytes are a plausible length and the beginning of a JSON object with a key.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    start.len() > 9 && start[8..].starts_with(b"{\"") && little_endian(&start[..8]) <= MAX_HEADER_BYTES
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let length = source.read_at(0, LENGTH_BYTES)?;
    let header = little_endian(&length);
    if length.len() < 8 || header > MAX_HEADER_BYTES || source.bytes < LENGTH_BYTES + header {
        return Ok(Completeness::Torn);
    }
    let text = source.read_at(LENGTH_BYTES, header)?;
    let Ok(End(end)) = serde_json::from_slice(&text) else { return Ok(Completeness::Torn) };
    let is_whole = (LENGTH_BYTES + header).checked_add(end) == Some(source.bytes) && !source.has_hole();
    Ok(is_whole.into())
}

/// The end of the last tensor of a header, relative to the header's end.
struct End(u64);

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Tensors)
    }
}

#[derive(Deserialize)]
struct Tensor {
    data_offsets: (u64, u64),
}

/// A visitor that reads a header without storing it.
struct Tensors;

impl<'de> Visitor<'de> for Tensors {
    type Value = End;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<End, A::Error> {
        let mut end = 0;
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
            } else {
                end = end.max(map.next_value::<Tensor>()?.data_offsets.1);
            }
        }
        Ok(End(end))
    }
}
