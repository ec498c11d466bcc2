//! Zstandard: frames of blocks, the last of which is marked, and a checksum if the writer adds one
//! (<https://www.rfc-editor.org/rfc/rfc8878>, section 3.1).

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::Completeness;
use crate::members::{self, Budget, Input};
use crate::source::Source;

const MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// The bytes after the first one, 0x50 to 0x5f, of a frame that decoders skip.
const SKIPPED: &[u8] = b"\x2a\x4d\x18";
/// The window of level 22, the highest one.
const MAX_WINDOW_BYTES: u64 = 128 << 20;
/// The bytes that are decoded before they are dropped.
const STEP_BYTES: usize = 1 << 20;

/// Whether a file begins with a frame. LZ4 has the same skippable frames, so these need the ending of Zstandard.
pub(crate) fn has_magic(start: &[u8], ending: &str) -> bool {
    start.starts_with(MAGIC) || (matches!(ending, "zst" | "zstd") && is_skipped(start))
}

fn is_skipped(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, rest @ ..] if members::begins(rest, SKIPPED))
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    members::completeness(source, false, |start| members::begins(start, MAGIC) || is_skipped(start), frame)
}

fn frame(input: &mut Input<'_>, budget: &mut Budget) -> Completeness {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MAX_WINDOW_BYTES);
    match decoder.init(&mut *input) {
        Ok(()) => {}
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
            let skipped = io::copy(&mut input.take(u64::from(length)), &mut io::sink());
            return (skipped.ok() == Some(u64::from(length))).into();
        }
        Err(FrameDecoderError::WindowSizeTooBig { .. } | FrameDecoderError::DictNotProvided { .. }) => {
            return Completeness::Unknown;
        }
        Err(_) => return Completeness::Torn,
    }
    while !decoder.is_finished() {
        let is_decoded = decoder.decode_blocks(&mut *input, BlockDecodingStrategy::UptoBytes(STEP_BYTES)).is_ok();
        let Ok(count) = decoder.collect_to_writer(io::sink()) else { return Completeness::Torn };
        if !is_decoded {
            return Completeness::Torn;
        }
        if !budget.has(count) {
            return Completeness::Unjudged;
        }
    }
    let stated = decoder.get_checksum_from_data();
    stated.is_none_or(|stated| decoder.get_calculated_checksum() == Some(stated)).into()
}
