//! Safetensors: the header's length, the header as JSON, then the tensors without gaps
//! (<https://huggingface.co/docs/safetensors/index#format>).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use serde::Deserialize;

use super::{Completeness, has_hole, number, read_at};

/// The library refuses longer headers.
const MAX_HEADER_BYTES: u64 = 100_000_000;
const LENGTH_BYTES: u64 = 8;

/// A tensor's place; `__metadata__` has none.
#[derive(Deserialize)]
struct Tensor {
    data_offsets: Option<(u64, u64)>,
}

/// Whether these are a plausible length and the beginning of a JSON object.
pub(super) fn looks_like(magic: &[u8]) -> bool {
    magic.len() > 9 && magic[8..].starts_with(b"{\"") && number(&magic[..8]) <= MAX_HEADER_BYTES
}

pub(super) fn completeness(file: &mut File, bytes: u64) -> io::Result<Completeness> {
    let header = number(&read_at(file, 0, 8)?);
    if header > MAX_HEADER_BYTES || bytes < LENGTH_BYTES + header {
        return Ok(Completeness::Torn);
    }
    let header_text = read_at(file, LENGTH_BYTES, usize::try_from(header).unwrap_or(0))?;
    let Ok(tensors) = serde_json::from_slice::<BTreeMap<String, Tensor>>(&header_text) else {
        return Ok(Completeness::Torn);
    };
    let end = tensors.values().filter_map(|tensor| tensor.data_offsets).map(|(_, end)| end).max().unwrap_or(0);
    let is_whole = (LENGTH_BYTES + header).checked_add(end) == Some(bytes) && !has_hole(file, bytes);
    Ok(is_whole.into())
}
