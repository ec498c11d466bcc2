//! MessagePack as Flax writes it: one value whose parts state their lengths
//! (<https://github.com/msgpack/msgpack/blob/master/spec.md>).

use std::io;

use crate::Completeness;
use crate::source::Source;
use crate::walk::{self, Stop, Walk};

/// Whether these bytes begin a map whose first key is a text, as in Flax's states.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let key = match start {
        [0x81..=0x8f, rest @ ..] => rest.first(),
        [0xde, rest @ ..] => rest.get(2),
        [0xdf, rest @ ..] => rest.get(4),
        _ => return false,
    };
    key.is_none_or(|key| matches!(key, 0xa0..=0xbf | 0xd9..=0xdb))
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    walk::judge(source, 0, |mut walk| {
        // Each value takes at least one byte, so this loop is no longer than the file.
        let mut missing = 1_u64;
        while missing > 0 {
            missing = (missing - 1).saturating_add(value(&mut walk)?);
        }
        // Flax refuses more than one value, but other programs write several.
        if walk.is_at_end() { Ok(()) } else { Err(Stop::Unknown) }
    })
}

/// Skips a value, and returns the number of values that follow as its parts.
fn value(walk: &mut Walk<'_>) -> Result<u64, Stop> {
    let kind = walk.byte()?;
    let low = u64::from(kind & 0x0f);
    let (count, length) = match kind {
        0x80..=0x8f => (2 * low, 0),
        0x90..=0x9f => (low, 0),
        0xa0..=0xbf => (0, u64::from(kind & 0x1f)),
        0xc4 | 0xd9 => (0, walk.big(1)?),
        0xc5 | 0xda => (0, walk.big(2)?),
        0xc6 | 0xdb => (0, walk.big(4)?),
        // Extensions, including Flax's arrays, have a byte for their type.
        0xc7 => (0, walk.big(1)? + 1),
        0xc8 => (0, walk.big(2)? + 1),
        0xc9 => (0, walk.big(4)? + 1),
        0xd4..=0xd8 => (0, (1 << (kind - 0xd4)) + 1),
        0xcc | 0xd0 => (0, 1),
        0xcd | 0xd1 => (0, 2),
        0xca | 0xce | 0xd2 => (0, 4),
        0xcb | 0xcf | 0xd3 => (0, 8),
        0xdc => (walk.big(2)?, 0),
        0xdd => (walk.big(4)?, 0),
        0xde => (2 * walk.big(2)?, 0),
        0xdf => (2 * walk.big(4)?, 0),
        // The specification never uses this byte.
        0xc1 => return Err(Stop::Torn),
        0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => (0, 0),
    };
    walk.skip(length)?;
    Ok(count)
}
