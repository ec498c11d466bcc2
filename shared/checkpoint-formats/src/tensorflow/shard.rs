//! A file of a TensorFlow checkpoint's tensors. The index next to it has the position and the checksum of each tensor
//! (<https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/protobuf/tensor_bundle.proto>,
//! `BundleEntryProto`; blocks: <https://github.com/google/leveldb/blob/main/doc/table_format.md>).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc, Table};

use super::{BLOCK_END_BYTES, FOOTER_BYTES};
use crate::source::{Source, little_endian};
use crate::{Completeness, Open};

/// The longest index that is read. An index of a million tensors has about 50 MB.
const MAX_INDEX_BYTES: u64 = 64 << 20;
/// The longest block that is read. The blocks of an index have a few hundred kilobytes.
const MAX_BLOCK_BYTES: u64 = 16 << 20;
const BUFFER_BYTES: usize = 64 * 1024;
/// Types whose checksum is not that of their bytes: texts, resources, variants.
const OTHER_CHECKSUM: [u64; 3] = [7, 20, 21];
static CASTAGNOLI: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The entry of one tensor.
#[derive(Default)]
struct Entry {
    kind: u64,
    shard: u64,
    offset: u64,
    bytes: u64,
    checksum: u64,
}

/// Returns the index of the checkpoint that a file belongs to, and the number of the file:
/// `ckpt-1.data-00000-of-00001`.
pub(crate) fn index(path: &Path) -> Option<(PathBuf, u64)> {
    let (shard, count) = path.extension()?.to_str()?.strip_prefix("data-")?.split_once("-of-")?;
    count.parse::<u64>().ok()?;
    Some((path.with_extension("index"), shard.parse().ok()?))
}

/// Judges a file by the index. Without a whole index the result is unknown.
pub(crate) fn completeness(source: &mut Source, index: &Path, shard: u64, open: Open<'_>) -> io::Result<Completeness> {
    let Ok(mut index) = open(index).and_then(Source::new) else { return Ok(Completeness::Unknown) };
    if index.bytes > MAX_INDEX_BYTES {
        return Ok(Completeness::Unjudged);
    }
    if super::completeness(&mut index)? != Completeness::Whole {
        return Ok(Completeness::Unknown);
    }
    let Some(entries) = entries(&mut index, shard)? else { return Ok(Completeness::Unknown) };
    let total = entries.iter().try_fold(0_u64, |total, entry| total.checked_add(entry.bytes));
    let ends = entries.iter().map(|entry| entry.offset.checked_add(entry.bytes));
    if !ends.into_iter().all(|end| end.is_some_and(|end| end <= source.bytes)) {
        return Ok(Completeness::Torn);
    }
    // Otherwise tensors that share their bytes would be read once for each of them.
    if total.is_none_or(|total| total > source.bytes) {
        return Ok(Completeness::Unknown);
    }
    for entry in &entries {
        if !OTHER_CHECKSUM.contains(&entry.kind) && !has_checksum(source, entry)? {
            return Ok(Completeness::Torn);
        }
    }
    Ok(Completeness::Whole)
}

fn has_checksum(source: &mut Source, entry: &Entry) -> io::Result<bool> {
    let mut reader = source.reader(entry.offset).take(entry.bytes);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut digest = CASTAGNOLI.digest();
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
    }
    // The checksum is masked as in LevelDB, because a checksum of data that contain checksums would be weak.
    let masked = digest.finalize().rotate_right(15).wrapping_add(0xa282_ead8);
    Ok(u64::from(masked) == entry.checksum)
}

/// Returns the tensors of one file; `None` if the index is compressed or invalid.
fn entries(index: &mut Source, shard: u64) -> io::Result<Option<Vec<Entry>>> {
    let footer = index.read_at(index.bytes.saturating_sub(FOOTER_BYTES), FOOTER_BYTES)?;
    let mut rest = footer.as_slice();
    let handle = handle(&mut rest).and_then(|_| handle(&mut rest));
    let Some(blocks) = block(index, handle)? else { return Ok(None) };
    let Some(blocks) = values(&blocks) else { return Ok(None) };
    let mut found = Vec::new();
    // Otherwise blocks that share their bytes would be read once for each of them.
    let mut left = index.bytes;
    for mut value in blocks {
        let handle = self::handle(&mut value);
        let Some(rest) = handle.and_then(|(_, bytes)| left.checked_sub(bytes.checked_add(BLOCK_END_BYTES)?)) else {
            return Ok(None);
        };
        left = rest;
        let Some(content) = block(index, handle)? else { return Ok(None) };
        let Some(entries) =
            values(&content).and_then(|values| values.into_iter().map(entry).collect::<Option<Vec<_>>>())
        else {
            return Ok(None);
        };
        found.extend(entries.into_iter().filter(|entry| entry.shard == shard && entry.bytes > 0));
    }
    Ok(Some(found))
}

/// Returns the offset and the length of a block.
fn handle(rest: &mut &[u8]) -> Option<(u64, u64)> {
    Some((variable(rest)?, variable(rest)?))
}

/// Returns a block's content if it is not compressed, which TensorFlow never does.
fn block(index: &mut Source, handle: Option<(u64, u64)>) -> io::Result<Option<Vec<u8>>> {
    let is_there = |(offset, bytes): &(u64, u64)| {
        *bytes <= MAX_BLOCK_BYTES && offset.checked_add(*bytes).is_some_and(|end| end < index.bytes)
    };
    let Some((offset, bytes)) = handle.filter(is_there) else { return Ok(None) };
    let mut content = index.read_at(offset, bytes + BLOCK_END_BYTES)?;
    let is_plain = content.len() as u64 == bytes + BLOCK_END_BYTES && content.get(bytes as usize) == Some(&0);
    content.truncate(bytes as usize);
    Ok(is_plain.then_some(content))
}

/// Returns the values of a block, except for that of the empty key, which describes all files.
fn values(content: &[u8]) -> Option<Vec<&[u8]>> {
    let (_, count) = content.split_last_chunk::<4>()?;
    let restarts = little_endian(count).checked_add(1)?.checked_mul(4)?;
    let end = content.len().checked_sub(usize::try_from(restarts).ok()?)?;
    let mut rest = &content[..end];
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (shared, own, length) = (variable(&mut rest)?, variable(&mut rest)?, variable(&mut rest)?);
        take(&mut rest, own)?;
        let value = take(&mut rest, length)?;
        if shared > 0 || own > 0 {
            values.push(value);
        }
    }
    Some(values)
}

fn entry(mut rest: &[u8]) -> Option<Entry> {
    let mut entry = Entry::default();
    while !rest.is_empty() {
        let tag = variable(&mut rest)?;
        let number = match tag & 7 {
            0 => variable(&mut rest)?,
            1 => little_endian(take(&mut rest, 8)?),
            2 => {
                let length = variable(&mut rest)?;
                take(&mut rest, length)?;
                0
            }
            5 => little_endian(take(&mut rest, 4)?),
            _ => return None,
        };
        match tag >> 3 {
            1 => entry.kind = number,
            3 => entry.shard = number,
            4 => entry.offset = number,
            5 => entry.bytes = number,
            6 => entry.checksum = number,
            _ => {}
        }
    }
    Some(entry)
}

fn take<'a>(rest: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    rest.split_off(..usize::try_from(count).ok()?)
}

/// Reads a number like [`crate::walk::Walk::variable`].
fn variable(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let byte = *rest.split_off_first()?;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
