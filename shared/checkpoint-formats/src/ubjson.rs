//! Universal Binary JSON, as XGBoost writes it: an object whose parts state their lengths
//! (<https://ubjson.org/type-reference/>).

use std::io;

use crate::Completeness;
use crate::source::Source;
use crate::walk::{self, Stop, Walk};

/// The deepest nesting that is followed. XGBoost's models have fewer than ten levels.
const MAX_DEPTH: usize = 64;

/// An object or array that has begun and not ended.
struct Container {
    is_object: bool,
    /// The number of missing items, if it was stated. Otherwise a mark ends the container.
    missing: Option<u64>,
}

/// Whether these bytes begin an object in UBJSON, not in JSON.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    matches!(start, [b'{'] | [b'{', b'i' | b'U' | b'I' | b'l' | b'L' | b'}' | b'#' | b'$', ..])
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    walk::judge(source, 0, |mut walk| {
        let mut open = Vec::new();
        let kind = walk.byte()?;
        value(&mut walk, kind, &mut open)?;
        while let Some(container) = open.last_mut() {
            let next = match &mut container.missing {
                Some(0) => None,
                Some(missing) => {
                    *missing -= 1;
                    Some(walk.byte()?)
                }
                None => Some(walk.byte()?).filter(|byte| *byte != if container.is_object { b'}' } else { b']' }),
            };
            let Some(mut kind) = next else {
                open.pop();
                continue;
            };
            if container.is_object {
                let length = length(&mut walk, kind)?;
                walk.skip(length)?;
                kind = walk.byte()?;
            }
            value(&mut walk, kind, &mut open)?;
        }
        if walk.is_at_end() { Ok(()) } else { Err(Stop::Unknown) }
    })
}

/// Skips a value of this kind, or begins a container.
fn value(walk: &mut Walk<'_>, kind: u8, open: &mut Vec<Container>) -> Result<(), Stop> {
    match kind {
        b'S' | b'H' => {
            let kind = walk.byte()?;
            let length = length(walk, kind)?;
            walk.skip(length)
        }
        b'{' | b'[' => {
            let container = begin(walk, kind == b'{')?;
            if open.len() >= MAX_DEPTH {
                return Err(Stop::Unknown);
            }
            open.extend(container);
            Ok(())
        }
        _ => walk.skip(size(kind)?),
    }
}

/// Reads what follows `{` or `[`: the kind of all items and their number, if stated. `None` if the container ends
/// there.
fn begin(walk: &mut Walk<'_>, is_object: bool) -> Result<Option<Container>, Stop> {
    let mut next = walk.peek()?;
    let mut shared = None;
    if next == b'$' {
        walk.skip(1)?;
        shared = Some(walk.byte()?);
        next = walk.peek()?;
    }
    if next != b'#' {
        // A stated kind needs a stated number.
        let container = Container { is_object, missing: None };
        return if shared.is_none() { Ok(Some(container)) } else { Err(Stop::Torn) };
    }
    walk.skip(1)?;
    let kind = walk.byte()?;
    let count = length(walk, kind)?;
    match shared {
        None => Ok(Some(Container { is_object, missing: Some(count) })),
        // XGBoost states kinds of numbers, and only in arrays.
        Some(kind) if !is_object => {
            walk.skip(count.checked_mul(size(kind)?).ok_or(Stop::Torn)?)?;
            Ok(None)
        }
        Some(_) => Err(Stop::Unknown),
    }
}

/// Reads a length, which is a number of this kind.
fn length(walk: &mut Walk<'_>, kind: u8) -> Result<u64, Stop> {
    match kind {
        b'i' | b'U' | b'I' | b'l' | b'L' => walk.big(u32::try_from(size(kind)?).unwrap_or_default()),
        // Zeros are lost pages, and other bytes are another dialect.
        0 => Err(Stop::Torn),
        _ => Err(Stop::Unknown),
    }
}

/// Returns the size of a value without a length.
fn size(kind: u8) -> Result<u64, Stop> {
    match kind {
        b'Z' | b'N' | b'T' | b'F' => Ok(0),
        b'i' | b'U' | b'C' => Ok(1),
        b'I' => Ok(2),
        b'l' | b'd' => Ok(4),
        b'L' | b'D' => Ok(8),
        0 => Err(Stop::Torn),
        _ => Err(Stop::Unknown),
    }
}
