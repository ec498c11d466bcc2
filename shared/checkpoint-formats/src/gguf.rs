//! GGUF: metadata, a list of the tensors, and the tensors at offsets from there
//! ("GGUF" in the documentation of <https://github.com/ggml-org/ggml>).

use std::io;

use crate::Completeness;
use crate::source::Source;
use crate::walk::{self, Stop, Walk};

pub(crate) const MAGIC: &[u8] = b"GGUF";
/// The mark and the version.
const VERSION_AT: u64 = 4;
/// What offsets are a multiple of, unless the metadata say otherwise.
const ALIGNMENT: u64 = 32;
const ALIGNMENT_KEY: &[u8] = b"general.alignment";
/// The library refuses more (`GGML_MAX_DIMS` of <https://github.com/ggml-org/ggml/blob/master/include/ggml.h>).
const MAX_DIMENSIONS: u64 = 4;
/// Types of metadata.
const U32: u64 = 4;
const STRING: u64 = 8;
const ARRAY: u64 = 9;

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    walk::judge(source, VERSION_AT, |mut walk| {
        // Version 1 has shorter lengths; a file for big-endian machines has the bytes of its version in that order.
        if !matches!(walk.little(4)?, 2 | 3) {
            return Err(Stop::Unknown);
        }
        let (tensors, pairs) = (walk.little(8)?, walk.little(8)?);
        let mut alignment = ALIGNMENT;
        for _ in 0..pairs {
            alignment = pair(&mut walk)?.unwrap_or(alignment);
        }
        let mut end = Some(0);
        for _ in 0..tensors {
            let tensor = tensor_end(&mut walk)?;
            end = end.zip(tensor).map(|(end, tensor)| tensor.max(end));
        }
        let start = walk.at.checked_next_multiple_of(alignment).ok_or(Stop::Unknown)?;
        let end = end.ok_or(Stop::Unknown)?;
        let is_there = tensors == 0 || start.checked_add(end).is_some_and(|end| end <= walk.bytes);
        if is_there { Ok(()) } else { Err(Stop::Torn) }
    })
}

/// Passes over a key and its value; returns the alignment where this is it.
fn pair(walk: &mut Walk<'_>) -> Result<Option<u64>, Stop> {
    let length = walk.little(8)?;
    let is_alignment = if length == ALIGNMENT_KEY.len() as u64 {
        let mut is_same = true;
        for byte in ALIGNMENT_KEY {
            is_same &= walk.byte()? == *byte;
        }
        is_same
    } else {
        walk.skip(length)?;
        false
    };
    let kind = walk.little(4)?;
    if is_alignment && kind == U32 {
        return walk.little(4).map(Some);
    }
    match kind {
        ARRAY => array(walk)?,
        STRING => string(walk)?,
        _ => walk.skip(size(kind)?)?,
    }
    Ok(None)
}

fn array(walk: &mut Walk<'_>) -> Result<(), Stop> {
    let (kind, count) = (walk.little(4)?, walk.little(8)?);
    if kind != STRING {
        // The library does not read arrays of arrays.
        return walk.skip(count.checked_mul(size(kind)?).ok_or(Stop::Torn)?);
    }
    (0..count).try_for_each(|_| string(walk))
}

fn string(walk: &mut Walk<'_>) -> Result<(), Stop> {
    let length = walk.little(8)?;
    walk.skip(length)
}

/// The size of a number of the metadata.
fn size(kind: u64) -> Result<u64, Stop> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(Stop::Unknown),
    }
}

/// Passes over what is stated of a tensor, and returns where it ends; `None` for types that are not known here.
fn tensor_end(walk: &mut Walk<'_>) -> Result<Option<u64>, Stop> {
    string(walk)?;
    let dimensions = walk.little(4)?;
    if dimensions > MAX_DIMENSIONS {
        return Err(Stop::Unknown);
    }
    let mut elements = Some(1_u64);
    for _ in 0..dimensions {
        let length = walk.little(8)?;
        elements = elements.and_then(|elements| elements.checked_mul(length));
    }
    let block = block(walk.little(4)?);
    let offset = walk.little(8)?;
    let bytes =
        block.zip(elements).and_then(|((per_block, bytes), elements)| (elements / per_block).checked_mul(bytes));
    Ok(bytes.and_then(|bytes| offset.checked_add(bytes)))
}

/// How many elements of a type make a block, and its bytes (`enum ggml_type` of the same header, and `block_…` of
/// <https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h>).
fn block(kind: u64) -> Option<(u64, u64)> {
    Some(match kind {
        24 => (1, 1),
        1 | 25 | 30 => (1, 2),
        0 | 26 => (1, 4),
        27 | 28 => (1, 8),
        39 => (32, 17),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        19 => (256, 50),
        34 => (256, 54),
        29 => (256, 56),
        16 | 35 => (256, 66),
        17 => (256, 74),
        22 => (256, 82),
        10 => (256, 84),
        18 => (256, 98),
        11 | 21 => (256, 110),
        23 => (256, 136),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        _ => return None,
    })
}
