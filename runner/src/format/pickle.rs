//! Pickles of protocol 2 and later: operations up to STOP
//! (<https://github.com/python/cpython/blob/main/Lib/pickletools.py>).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::{Completeness, has_hole};

/// What follows an operation's byte.
enum Argument {
    /// So many bytes.
    Bytes(u64),
    /// A length of so many bytes, and as many bytes as it says.
    Counted(usize),
    /// So many lines.
    Lines(u32),
    /// Nothing: the pickle ends.
    Stop,
    /// No operation of any protocol.
    Invalid,
}

/// As `pickletools.opcodes` lists them.
fn argument(operation: u8) -> Argument {
    match operation {
        b'.' => Argument::Stop,
        b'('
        | b'0'
        | b'1'
        | b'2'
        | b')'
        | b']'
        | b'}'
        | b'l'
        | b'd'
        | b't'
        | b'a'
        | b'e'
        | b's'
        | b'u'
        | b'N'
        | b'R'
        | b'b'
        | b'o'
        | b'Q'
        | 0x81
        | 0x85..=0x89
        | 0x8f..=0x94
        | 0x97
        | 0x98 => Argument::Bytes(0),
        b'K' | b'h' | b'q' | 0x80 | 0x82 => Argument::Bytes(1),
        b'M' | 0x83 => Argument::Bytes(2),
        b'J' | b'j' | b'r' | 0x84 => Argument::Bytes(4),
        b'G' | 0x95 => Argument::Bytes(8),
        b'U' | b'C' | 0x8a | 0x8c => Argument::Counted(1),
        b'T' | b'X' | b'B' | 0x8b => Argument::Counted(4),
        0x8d | 0x8e | 0x96 => Argument::Counted(8),
        b'I' | b'L' | b'F' | b'S' | b'V' | b'p' | b'g' | b'P' => Argument::Lines(1),
        b'c' | b'i' => Argument::Lines(2),
        _ => Argument::Invalid,
    }
}

pub(super) fn completeness(file: &mut File, bytes: u64) -> io::Result<Completeness> {
    if has_hole(file, bytes) {
        return Ok(Completeness::Torn);
    }
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    let mut at = 0;
    let mut pickles = 0;
    loop {
        let mut start = [0];
        if reader.read(&mut start)? == 0 {
            return Ok(Completeness::Whole);
        }
        // What follows a pickle may be anything: `torch.save` once wrote tensors there, without a length.
        if pickles > 0 && start[0] != 0x80 {
            return Ok(Completeness::Unknown);
        }
        at += 1;
        match pickle(&mut reader, start[0], &mut at, bytes)? {
            Completeness::Whole => pickles += 1,
            // The first one was whole, so this may be something else.
            _ if pickles > 0 => return Ok(Completeness::Unknown),
            other => return Ok(other),
        }
    }
}

/// One pickle, from its first operation.
fn pickle(reader: &mut BufReader<&mut File>, first: u8, at: &mut u64, bytes: u64) -> io::Result<Completeness> {
    let mut operation = [first];
    loop {
        let skipped = match argument(operation[0]) {
            Argument::Stop => return Ok(Completeness::Whole),
            Argument::Invalid => return Ok(Completeness::Torn),
            Argument::Bytes(count) => count,
            Argument::Counted(size) => {
                let mut length = [0; 8];
                if reader.read_exact(&mut length[..size]).is_err() {
                    return Ok(Completeness::Torn);
                }
                *at += size as u64;
                u64::from_le_bytes(length)
            }
            Argument::Lines(count) => {
                for _ in 0..count {
                    *at += reader.skip_until(b'\n')? as u64;
                }
                0
            }
        };
        // An argument may not reach beyond the end, and after it there is at least STOP.
        let Some(next) = at.checked_add(skipped).filter(|next| *next < bytes) else {
            return Ok(Completeness::Torn);
        };
        reader.seek_relative(i64::try_from(skipped).unwrap_or(i64::MAX))?;
        *at = next;
        reader.read_exact(&mut operation)?;
        *at += 1;
    }
}
