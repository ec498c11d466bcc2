//! The bytes of checkpoint files: real formats, so that what is cut off or mixed is refused or not as by real libraries.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::habits::Format;

/// The state of a training: some sectors long.
const STATE_BYTES: usize = 1900;

/// A pickle of protocol 4 that is one object of bytes (pickletools: `PROTO`, `BINBYTES`, `STOP`).
const PICKLE_START: [u8; 3] = [0x80, 4, b'B'];
const PICKLE_STOP: u8 = b'.';

/// What a file of a checkpoint holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) struct Loaded {
    /// The steps that it says are behind it.
    pub(in crate::run) step: u32,
    /// Whether every byte is what the training wrote after that step.
    pub(in crate::run) is_intact: bool,
}

/// The file `part` of a checkpoint of `trial` after `step`.
pub(super) fn encode(format: Format, trial: u32, step: u32, part: u32) -> Vec<u8> {
    let state = state(trial, step, part);
    match format {
        Format::Checked => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
            // Memory takes what is written to it.
            let _ = encoder.write_all(&state);
            encoder.finish().unwrap_or_default()
        }
        Format::Ending => {
            let length = u32::try_from(state.len()).unwrap_or(u32::MAX).to_le_bytes();
            [&PICKLE_START, &length[..], &state, &[PICKLE_STOP]].concat()
        }
        Format::Raw => state,
    }
}

/// Reads a file as the library does that wrote it; `None` where it refuses the file.
pub(in crate::run) fn decode(format: Format, bytes: &[u8], trial: u32, part: u32) -> Option<Loaded> {
    let state = match format {
        Format::Checked => {
            let mut state = Vec::new();
            GzDecoder::new(bytes).read_to_end(&mut state).ok()?;
            state
        }
        Format::Ending => {
            let rest = bytes.strip_prefix(&PICKLE_START)?;
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            (rest.get(length) == Some(&PICKLE_STOP)).then(|| rest[..length].to_vec())?
        }
        Format::Raw => bytes.to_vec(),
    };
    // A script reshapes raw numbers, which takes their right count.
    if state.len() != STATE_BYTES {
        return None;
    }
    let step = u32::from_le_bytes(*state.first_chunk()?);
    // A count of steps that was never written.
    (step > 0).then(|| Loaded { step, is_intact: state == self::state(trial, step, part) })
}

/// A state differs from any other in each of its sectors.
fn state(trial: u32, step: u32, part: u32) -> Vec<u8> {
    let mut bytes = step.to_le_bytes().to_vec();
    let mut value = (u64::from(trial) << 40) | (u64::from(step) << 8) | u64::from(part);
    while bytes.len() < STATE_BYTES {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.push(u8::try_from(value >> 56).unwrap_or(0));
    }
    bytes
}
