//! ONNX: a message of Protocol Buffers, `ModelProto`, whose fields state their lengths
//! (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>; <https://protobuf.dev/programming-guides/encoding/>).

use std::io;

use crate::Completeness;
use crate::source::Source;
use crate::walk::{self, Stop};

/// The first field that writers write, the version of the format, as a number.
pub(crate) const FIRST: u8 = 0x08;
/// Fields that every model has. A message may end after any field, so a shorter one is a message too.
const GRAPH: u64 = 7;
const OPERATORS: u64 = 8;

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    walk::judge(source, 0, |mut walk| {
        let (mut has_graph, mut has_operators) = (false, false);
        while !walk.is_at_end() {
            let tag = walk.variable()?;
            match tag & 7 {
                0 => walk.variable().map(drop)?,
                1 => walk.skip(8)?,
                2 => {
                    let length = walk.variable()?;
                    walk.skip(length)?;
                }
                5 => walk.skip(4)?,
                // Groups, which no field is, and what the encoding does not have.
                _ => return Err(Stop::Torn),
            }
            match tag >> 3 {
                // The encoding does not have this one: zeros in place of fields.
                0 => return Err(Stop::Torn),
                GRAPH => has_graph = true,
                OPERATORS => has_operators = true,
                _ => {}
            }
        }
        if has_graph && has_operators { Ok(()) } else { Err(Stop::Unknown) }
    })
}
