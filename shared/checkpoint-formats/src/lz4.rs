//! LZ4 frames: blocks, a mark of the end, and checksums if the writer adds them
//! (<https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>).

use std::io;

use lz4_flex::frame::{Error, FrameDecoder};

use crate::Completeness;
use crate::members::{self, Budget, Input, Undrained};
use crate::source::Source;

pub(crate) const MAGIC: &[u8] = b"\x04\x22\x4d\x18";

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    members::completeness(source, false, |start| members::begins(start, MAGIC), frame)
}

fn frame(input: &mut Input<'_>, budget: &mut Budget) -> Completeness {
    input.is_past_end = false;
    match members::drain(FrameDecoder::new(&mut *input), budget) {
        // The decoder accepts the end of the file as the end of the frame, but a frame has an end mark of its own.
        Ok(()) => (!input.is_past_end).into(),
        Err(Undrained::TooMuch) => Completeness::Unjudged,
        Err(Undrained::Failed(error)) => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            let is_unsupported = matches!(inner, Some(Error::DictionaryNotSupported | Error::SkippableFrame(_)));
            if is_unsupported { Completeness::Unknown } else { Completeness::Torn }
        }
    }
}
