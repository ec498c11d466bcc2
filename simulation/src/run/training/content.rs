//! The bytes of checkpoint files. The formats are real, so that a cut or mixed file is refused if a real library
//! refuses it.

use std::io::Read;

use flate2::Crc;
use flate2::read::GzDecoder;

use super::habits::Format;

/// The state of a training is its step, the run that has computed it, and numbers of eight bytes. It spans several
/// sectors.
const STATE_BYTES: usize = 1900;

/// The start of a pickle of protocol 4 that holds one bytes object (pickletools: `PROTO`, `BINBYTES`, `STOP`).
const PICKLE_START: [u8; 3] = [0x80, 4, b'B'];
const PICKLE_STOP: u8 = b'.';

/// A gzip header: deflate, no name, no time, unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The block type, and the length twice.
const STORED_BLOCK_HEADER_BYTES: usize = 5;

/// The text before and after the trees in a model of LightGBM, version 4.
const TEXT_START: &str = "tree\nversion=v4\n\n";
const TEXT_END: &str = "\nend of trees\n\nparameters:\n\nend of parameters\n";
/// Bytes of the state in one line.
const LINE: usize = 32;

/// What a file of a checkpoint holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) struct Loaded {
    /// The number of completed steps that the file states.
    pub(in crate::run) step: u32,
    /// The run that has computed it.
    pub(in crate::run) run: u32,
    /// Whether every byte is from that run's save after that step.
    pub(in crate::run) is_intact: bool,
}

/// Encodes the file `part` of the checkpoint of `trial` that `run` saves after `step`.
pub(super) fn encode(format: Format, trial: u32, (step, run): (u32, u32), part: u32) -> Vec<u8> {
    let state = state(trial, (step, run), part);
    match format {
        Format::Checked => gzip(&state),
        Format::Ending => {
            let length = u32::try_from(state.len()).unwrap_or(u32::MAX).to_le_bytes();
            [&PICKLE_START, &length[..], &state, &[PICKLE_STOP]].concat()
        }
        Format::Raw => state,
        Format::Text => {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            let mut text = TEXT_START.as_bytes().to_vec();
            for line in state.chunks(LINE) {
                text.extend(line.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
                text.push(b'\n');
            }
            [&text, TEXT_END.as_bytes()].concat()
        }
    }
}

/// Decodes the state in a text, up to the first character that is no hexadecimal digit.
fn of_text(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().filter(|byte| **byte != b'\n').map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u32> = digits.map_while(|digit| digit).collect();
    digits.chunks_exact(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

/// Writes one stored block (RFC 1951, 3.2.4) as a gzip file (RFC 1952), because an encoder would clear 300 KiB of
/// memory for each file.
fn gzip(state: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(state);
    let length = u16::try_from(state.len()).unwrap_or(u16::MAX);
    let last_block = 1;
    [
        &GZIP_HEADER[..],
        &[last_block],
        &length.to_le_bytes(),
        &(!length).to_le_bytes(),
        state,
        &crc.sum().to_le_bytes(),
        &crc.amount().to_le_bytes(),
    ]
    .concat()
}

/// The position at which the state begins in a file.
fn offset(format: Format) -> usize {
    match format {
        Format::Checked => GZIP_HEADER.len() + STORED_BLOCK_HEADER_BYTES,
        Format::Ending => PICKLE_START.len() + size_of::<u32>(),
        Format::Raw => 0,
        Format::Text => TEXT_START.len(),
    }
}

/// The step that a file states, even if the rest is damaged.
pub(super) fn said_step(format: Format, bytes: &[u8]) -> Option<u32> {
    said(format, bytes).map(|(step, _)| step)
}

/// The step and the run that a file states.
fn said(format: Format, bytes: &[u8]) -> Option<(u32, u32)> {
    let state = bytes.get(offset(format)..)?;
    let digits = 4 * size_of::<u32>();
    if format == Format::Text { numbers(&of_text(state.get(..digits)?)) } else { numbers(state) }
}

/// The step and the run at the start of a state.
fn numbers(state: &[u8]) -> Option<(u32, u32)> {
    let (step, rest) = state.split_first_chunk()?;
    Some((u32::from_le_bytes(*step), u32::from_le_bytes(*rest.first_chunk()?)))
}

/// Reads a file as the library that wrote it does; `None` if the library refuses it.
pub(in crate::run) fn decode(format: Format, bytes: &[u8], trial: u32, part: u32) -> Option<Loaded> {
    // Most files are unchanged. To inflate each of them at each look would take half of a run's time.
    let said = said(format, bytes).filter(|(step, _)| *step > 0);
    if let Some((step, run)) = said.filter(|said| encode(format, trial, *said, part) == bytes) {
        return Some(Loaded { step, run, is_intact: true });
    }
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
        Format::Text => {
            let text = std::str::from_utf8(bytes).ok()?;
            of_text(text.strip_prefix(TEXT_START)?.strip_suffix(TEXT_END)?.as_bytes())
        }
    };
    // A script reshapes raw numbers, and that fails if their count is wrong.
    if state.len() != STATE_BYTES {
        return None;
    }
    let (step, run) = numbers(&state)?;
    // No training writes a step of 0.
    (step > 0).then(|| Loaded { step, run, is_intact: state == self::state(trial, (step, run), part) })
}

/// A state differs from any other state in each sector, because each number differs.
fn state(trial: u32, (step, run): (u32, u32), part: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STATE_BYTES + size_of::<u64>());
    bytes.extend_from_slice(&step.to_le_bytes());
    bytes.extend_from_slice(&run.to_le_bytes());
    let mut value = (u64::from(run) << 32) | (u64::from(trial) << 20) | (u64::from(step) << 4) | u64::from(part);
    while bytes.len() < STATE_BYTES {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.truncate(STATE_BYTES);
    bytes
}
