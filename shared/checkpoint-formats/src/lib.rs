//! Judges whether one file of a training's checkpoint is complete, by the file's own format.
//!
//! A format is recognised by its first bytes. If it has no mark there, the ending of the file's name decides. Memory is
//! bounded, whatever lengths the file states.
//!
//! Judged to their end: zip (PyTorch, NumPy, Keras), gzip, zlib, bzip2, xz, Zstandard and LZ4, all with their
//! checksums; safetensors, HDF5, NumPy's arrays, pickles, MessagePack (Flax), SQLite, tar, JSON and its lines, UBJSON
//! (XGBoost), LightGBM's text, and TensorFlow's checkpoints, whose data are judged by the index next to them.
//!
//! Judged only in part, because nothing states the end: PyTorch's files from before it used zip, and `joblib` without
//! compression. A file that ends within a part is torn.
//!
//! Not judged: plain numbers, and formats that are not listed here, such as those of tables and of exported models. A
//! training that fails on such a file goes back by one checkpoint.

mod bzip2;
mod first_page;
mod gzip;
mod hdf5;
mod json;
mod lightgbm;
mod lz4;
mod members;
mod msgpack;
mod npy;
mod pickle;
mod safetensors;
mod source;
mod sqlite;
mod tar;
mod tensorflow;
mod ubjson;
mod walk;
mod xz;
mod zip;
mod zlib;
mod zstd;

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
pub use source::Content;
use source::Source;
pub use sqlite::MAGIC as SQLITE;

/// The judgement of a file by its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Completeness {
    /// The format is known, and everything that it announces exists.
    Whole,
    /// The format is known, and a part is missing, so the library that reads the format refuses the file.
    Torn,
    /// The format is not known here, or it does not state the end.
    Unknown,
    /// Judging the file would take more time or memory than a file may take.
    Unjudged,
}

impl From<bool> for Completeness {
    fn from(is_whole: bool) -> Self {
        if is_whole { Self::Whole } else { Self::Torn }
    }
}

/// A format, recognised by the beginning of a file and by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Bzip2,
    Gzip,
    /// HDF5, with the superblock at this offset.
    Hdf5(u64),
    Json,
    JsonLines,
    LightGbm,
    /// A format whose mark has been replaced by zeros.
    Lost,
    Lz4,
    MessagePack,
    Npy,
    /// Pickle; true if the first operation states the protocol.
    Pickle(bool),
    Safetensors,
    Sqlite,
    Tar,
    TensorFlow,
    UbJson,
    Xz,
    Zip,
    Zlib,
    Zstd,
}

/// A function that opens a file.
pub type Open<'a> = &'a dyn Fn(&Path) -> io::Result<Box<dyn Content>>;

/// Judges the file at `path` by its format. SQLite's journal or write-ahead log of the file is read too.
///
/// # Errors
/// If the file cannot be read. Invalid content is no error.
pub fn completeness(path: &Path) -> io::Result<Completeness> {
    completeness_by(path, &|path| Ok(Box::new(File::open(path)?)))
}

/// Judges a file that `open` opens, like [`completeness`].
///
/// # Errors
/// As [`completeness`].
pub fn completeness_by(path: &Path, open: Open<'_>) -> io::Result<Completeness> {
    let mut source = Source::new(open(path)?)?;
    // The file has plain numbers, whose bytes may look like any format.
    if let Some((index, shard)) = tensorflow::shard::index(path) {
        return tensorflow::shard::completeness(&mut source, &index, shard, open);
    }
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let Some(format) = format(&mut source, &ending)? else { return Ok(Completeness::Unknown) };
    let source = &mut source;
    match format {
        Format::Bzip2 => bzip2::completeness(source),
        Format::Gzip => gzip::completeness(source),
        Format::Hdf5(at) => hdf5::completeness(source, at),
        Format::Json => json::one_value(source, ending == "json"),
        Format::JsonLines => json::lines(source),
        Format::LightGbm => lightgbm::completeness(source),
        Format::Lost => Ok(Completeness::Torn),
        Format::Lz4 => lz4::completeness(source),
        Format::MessagePack => msgpack::completeness(source),
        Format::Npy => npy::completeness(source),
        Format::Pickle(has_protocol) => pickle::completeness(source, 0, has_protocol),
        Format::Safetensors => safetensors::completeness(source),
        Format::Sqlite => sqlite::completeness(source, path, open),
        Format::Tar => tar::completeness(source),
        Format::TensorFlow => tensorflow::completeness(source),
        Format::UbJson => ubjson::completeness(source),
        Format::Xz => xz::completeness(source),
        Format::Zip => zip::completeness(source),
        Format::Zlib => zlib::completeness(source),
        Format::Zstd => zstd::completeness(source),
    }
}

/// Whether a text is a model, or the beginning of one.
pub fn is_model_text(text: &str) -> bool {
    lightgbm::has_start(text.as_bytes())
}

/// Whether programs overwrite files of this format in place, without truncating them first. After a lost instance such
/// a file may be a mix of two versions, which the format does not show.
///
/// # Errors
/// As [`completeness`].
pub fn may_mix_versions(path: &Path, open: Open<'_>) -> io::Result<bool> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    // NumPy's arrays are mapped into memory (`numpy.memmap`), as files of raw numbers are.
    Ok(matches!(format(&mut Source::new(open(path)?)?, &ending)?, None | Some(Format::Hdf5(_) | Format::Npy)))
}

/// Returns the format of a file. `ending` is the ending of its name, in lower case.
fn format(source: &mut Source, ending: &str) -> io::Result<Option<Format>> {
    let start = source.read_at(0, tar::BLOCK)?;
    if start.is_empty() {
        return Ok(None);
    }
    if first_page::is_zero(&start) {
        return behind_zeros(source, ending);
    }
    if let Some(format) = by_mark(&start, ending).or_else(|| by_name(&start, ending)) {
        return Ok(Some(format));
    }
    Ok(match ending {
        "h5" | "hdf5" => hdf5::behind_a_user_block(source)?.map(Format::Hdf5),
        _ => None,
    })
}

/// Returns the format of a file with a mark.
fn by_mark(start: &[u8], ending: &str) -> Option<Format> {
    Some(match start {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Format::Zip,
        _ if start.starts_with(gzip::MAGIC) => Format::Gzip,
        _ if start.starts_with(xz::MAGIC) => Format::Xz,
        _ if start.starts_with(lz4::MAGIC) => Format::Lz4,
        _ if zstd::has_magic(start, ending) => Format::Zstd,
        _ if bzip2::has_magic(start) => Format::Bzip2,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Format::Npy,
        _ if start.starts_with(hdf5::SIGNATURE) => Format::Hdf5(0),
        _ if start.starts_with(sqlite::MAGIC) => Format::Sqlite,
        _ if lightgbm::has_start(start) => Format::LightGbm,
        [0x80, 2..=5, ..] => Format::Pickle(true),
        _ if tar::is_tar(start, ending) => Format::Tar,
        _ => return None,
    })
}

/// Returns the format of a file without a mark, or with a weak one.
fn by_name(start: &[u8], ending: &str) -> Option<Format> {
    Some(match (ending, start) {
        ("safetensors", _) => Format::Safetensors,
        ("pkl" | "pickle" | "joblib" | "z", _) if zlib::is_header(start) => Format::Zlib,
        ("msgpack", _) if msgpack::looks_like(start) => Format::MessagePack,
        ("ubj", _) if ubjson::looks_like(start) => Format::UbJson,
        ("index", _) if tensorflow::looks_like(start) => Format::TensorFlow,
        _ if safetensors::looks_like(start) => Format::Safetensors,
        ("json", _) => Format::Json,
        ("jsonl" | "ndjson", _) => Format::JsonLines,
        (_, [b'{' | b'[', ..]) => Format::Json,
        ("pkl" | "pickle", _) => Format::Pickle(false),
        _ => return None,
    })
}

/// Returns the format of a file that begins with zeros.
fn behind_zeros(source: &mut Source, ending: &str) -> io::Result<Option<Format>> {
    if first_page::is_database(ending) {
        // The journal may have the database's first page.
        return Ok(Some(Format::Sqlite));
    }
    if matches!(ending, "h5" | "hdf5")
        && let Some(at) = hdf5::behind_a_user_block(source)?
    {
        return Ok(Some(Format::Hdf5(at)));
    }
    if first_page::must_have_mark(ending) {
        return Ok(Some(Format::Lost));
    }
    let end_at = source.bytes.saturating_sub(first_page::ZIP_END_BYTES);
    if first_page::is_zip_end(&source.read_at(end_at, first_page::ZIP_END_BYTES)?) {
        return Ok(Some(Format::Zip));
    }
    Ok(match ending {
        "json" => Some(Format::Json),
        "jsonl" | "ndjson" => Some(Format::JsonLines),
        "tar" if (source.bytes) < tar::BLOCK => Some(Format::Tar),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
