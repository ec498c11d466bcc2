//! The index of a TensorFlow checkpoint: a table of LevelDB, which ends with a footer
//! (<https://github.com/google/leveldb/blob/main/doc/table_format.md>;
//! <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/tensor_bundle/tensor_bundle.h>).

pub(crate) mod shard;

use std::io;

use crate::Completeness;
use crate::source::Source;
use crate::walk::{self, Stop, Walk};

const FOOTER_BYTES: u64 = 48;
/// The offset of the mark in the footer, after two handles and padding.
const MAGIC_AT: u64 = 40;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// The bytes after a block: one for its compression, and a checksum.
const BLOCK_END_BYTES: u64 = 5;

/// Whether a table begins like every index: with an empty key, and the number of shards.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    // The entry shares no prefix, its key has no bytes, and the bytes of a `BundleHeaderProto` follow.
    matches!(start, [0, 0, 2..=0x7f, 0x08, 1..=0xff, ..])
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let Some(footer_at) = source.bytes.checked_sub(FOOTER_BYTES) else { return Ok(Completeness::Torn) };
    walk::judge(source, footer_at, |mut walk| {
        let lists = handle(&mut walk)?;
        let index = handle(&mut walk)?;
        let magic_at = footer_at + MAGIC_AT;
        walk.skip(magic_at.checked_sub(walk.at).ok_or(Stop::Torn)?)?;
        let is_whole = walk.little(8)? == MAGIC && index == Some(footer_at) && lists <= Some(footer_at);
        if is_whole { Ok(()) } else { Err(Stop::Torn) }
    })
}

/// Reads the offset and the size of a block, and returns where the block ends.
fn handle(walk: &mut Walk<'_>) -> Result<Option<u64>, Stop> {
    let (offset, size) = (walk.variable()?, walk.variable()?);
    Ok(offset.checked_add(size).and_then(|end| end.checked_add(BLOCK_END_BYTES)))
}
