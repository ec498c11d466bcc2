//! Whether one file of a training's checkpoint is complete, as the file's own format says.
//!
//! A format is known by its first bytes; where it has no mark there, by the ending of the file's name. What is held in
//! memory is bounded, whatever lengths the file states.

mod bzip2;
mod first_page;
mod gzip;
mod hdf5;
mod json;
mod lz4;
mod members;
mod npy;
mod parquet;
mod pickle;
mod safetensors;
mod source;
mod sqlite;
mod tar;
mod xz;
mod zip;
mod zlib;
mod zstd;

use std::fs::File;
use std::io;
use std::path::Path;

use source::Source;

/// What a file's format says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// The format is known, and all that it announces is there.
    Whole,
    /// The format is known, and a part is missing: the library that reads the format refuses the file.
    Torn,
    /// The format is not known here, or does not say.
    Unknown,
}

impl From<bool> for Completeness {
    fn from(is_whole: bool) -> Self {
        if is_whole { Self::Whole } else { Self::Torn }
    }
}

/// A format, as the beginning of a file and its name show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Bzip2,
    Gzip,
    /// The superblock stands at this offset.
    Hdf5(u64),
    Json,
    JsonLines,
    /// Zeros stand in place of its mark.
    Lost,
    Lz4,
    Npy,
    Parquet,
    /// True where the first operation states the protocol.
    Pickle(bool),
    Safetensors,
    Sqlite,
    Tar,
    Xz,
    Zip,
    Zlib,
    Zstd,
}

/// What the format of the file at `path` says. SQLite's journal or write-ahead log of the file is read too.
///
/// # Errors
/// Where the file cannot be read. Strange content is no error.
pub fn completeness(path: &Path) -> io::Result<Completeness> {
    let mut source = Source::new(File::open(path)?)?;
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match format(&mut source, &ending)? {
        Some(Format::Bzip2) => bzip2::completeness(&mut source),
        Some(Format::Gzip) => gzip::completeness(&mut source),
        Some(Format::Hdf5(at)) => hdf5::completeness(&mut source, at),
        Some(Format::Json) => json::one_value(&mut source, ending == "json"),
        Some(Format::JsonLines) => json::lines(&mut source),
        Some(Format::Lost) => Ok(Completeness::Torn),
        Some(Format::Lz4) => lz4::completeness(&mut source),
        Some(Format::Npy) => npy::completeness(&mut source),
        Some(Format::Parquet) => parquet::completeness(&mut source),
        Some(Format::Pickle(has_protocol)) => pickle::completeness(&mut source, 0, has_protocol),
        Some(Format::Safetensors) => safetensors::completeness(&mut source),
        Some(Format::Sqlite) => sqlite::completeness(&mut source, path),
        Some(Format::Tar) => tar::completeness(&mut source),
        Some(Format::Xz) => xz::completeness(&mut source),
        Some(Format::Zip) => zip::completeness(&mut source),
        Some(Format::Zlib) => zlib::completeness(&mut source),
        Some(Format::Zstd) => zstd::completeness(&mut source),
        None => Ok(Completeness::Unknown),
    }
}

/// The format of a file, by its beginning; `ending` is that of its name, in small letters.
fn format(source: &mut Source, ending: &str) -> io::Result<Option<Format>> {
    let start = source.read_at(0, tar::BLOCK)?;
    Ok(match start.as_slice() {
        [] => None,
        start if first_page::is_zero(start) => behind_zeros(source, ending)?,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Format::Zip),
        start if start.starts_with(gzip::MAGIC) => Some(Format::Gzip),
        start if start.starts_with(xz::MAGIC) => Some(Format::Xz),
        start if start.starts_with(lz4::MAGIC) => Some(Format::Lz4),
        start if zstd::has_magic(start, ending) => Some(Format::Zstd),
        start if bzip2::has_magic(start) => Some(Format::Bzip2),
        start if matches!(ending, "pkl" | "pickle" | "joblib" | "z") && zlib::is_header(start) => Some(Format::Zlib),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Format::Npy),
        start if start.starts_with(hdf5::SIGNATURE) => Some(Format::Hdf5(0)),
        start if start.starts_with(sqlite::MAGIC) => Some(Format::Sqlite),
        start if parquet::has_magic(start) => Some(Format::Parquet),
        [0x80, 2..=5, ..] => Some(Format::Pickle(true)),
        start if tar::is_tar(start, ending) => Some(Format::Tar),
        start if ending == "safetensors" || safetensors::looks_like(start) => Some(Format::Safetensors),
        _ if ending == "json" => Some(Format::Json),
        _ if matches!(ending, "jsonl" | "ndjson") => Some(Format::JsonLines),
        [b'{' | b'[', ..] => Some(Format::Json),
        _ if matches!(ending, "pkl" | "pickle") => Some(Format::Pickle(false)),
        _ if matches!(ending, "h5" | "hdf5" | "mat") => hdf5::behind_a_user_block(source)?.map(Format::Hdf5),
        _ => None,
    })
}

/// The format of a file that begins with zeros.
fn behind_zeros(source: &mut Source, ending: &str) -> io::Result<Option<Format>> {
    if first_page::is_database(ending) {
        // A journal may have its first page.
        return Ok(Some(Format::Sqlite));
    }
    if matches!(ending, "h5" | "hdf5" | "mat")
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
