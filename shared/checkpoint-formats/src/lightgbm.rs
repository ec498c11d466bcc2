//! LightGBM's models as text: the trees, a mark of their end, the parameters, and another mark
//! (<https://github.com/lightgbm-org/LightGBM/blob/master/src/boosting/gbdt_model_text.cpp>, `SaveModelToString`). The
//! Python package adds a line of JSON.

use std::io;

use crate::Completeness;
use crate::source::Source;

/// The first bytes of the versions that have these marks.
const STARTS: [&[u8]; 2] = [b"tree\nversion=v3\n", b"tree\nversion=v4\n"];
const TREES_END: &str = "\nend of trees\n";
const PARAMETERS: &str = "\nparameters:\n";
const END: &str = "\nend of parameters\n";
const PYTHON_LINE: &str = "pandas_categorical:";
/// The bytes that are read at the end. The parameters have a few thousand bytes.
const TAIL_BYTES: u64 = 1 << 20;

pub(crate) fn has_start(start: &[u8]) -> bool {
    STARTS.iter().any(|mark| start.starts_with(mark))
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let tail_at = source.bytes.saturating_sub(TAIL_BYTES);
    let tail = source.read_at(tail_at, TAIL_BYTES)?;
    if tail.contains(&0) {
        // The end is no text: its pages were never written.
        return Ok(Completeness::Torn);
    }
    let tail = String::from_utf8_lossy(&tail);
    let Some((_, rest)) = tail.rsplit_once(END) else {
        // The library crashes if the parameters are cut off. A model may have no parameters.
        let is_torn = tail.contains(PARAMETERS) || (tail_at == 0 && !tail.contains(TREES_END));
        return Ok(if is_torn { Completeness::Torn } else { Completeness::Unknown });
    };
    let rest = rest.trim_start();
    let is_line = rest.starts_with(PYTHON_LINE);
    Ok(if rest.is_empty() || (is_line && rest.ends_with('\n')) {
        Completeness::Whole
    } else if is_line || PYTHON_LINE.starts_with(rest) {
        Completeness::Torn
    } else {
        Completeness::Unknown
    })
}
