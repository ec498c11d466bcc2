//! Recognises a first page that was never written: zeros where the format of that name has its mark.

/// The mark of the record that ends a zip archive, if it has no comment
/// (<https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>, section 4.3.16).
const ZIP_END: &[u8] = b"PK\x05\x06";
/// The length of that record.
pub(crate) const ZIP_END_BYTES: u64 = 22;

pub(crate) fn is_zero(start: &[u8]) -> bool {
    start.iter().all(|byte| *byte == 0)
}

/// Whether every file with this ending has a mark in its first bytes. Endings that several formats share are not here:
/// `bin`, `ckpt` and `dat` may hold plain numbers. A tar archive may be all zeros.
pub(crate) fn must_have_mark(ending: &str) -> bool {
    matches!(
        ending,
        "bz2"
            | "gz"
            | "h5"
            | "hdf5"
            | "joblib"
            | "keras"
            | "lz4"
            | "msgpack"
            | "npy"
            | "npz"
            | "pickle"
            | "pkl"
            | "pt"
            | "pth"
            | "safetensors"
            | "tgz"
            | "ubj"
            | "xz"
            | "zip"
            | "zst"
    )
}

pub(crate) fn is_database(ending: &str) -> bool {
    matches!(ending, "db" | "db3" | "sqlite" | "sqlite3")
}

/// Whether these last bytes of a file are the end of a zip archive.
pub(crate) fn is_zip_end(end: &[u8]) -> bool {
    end.len() as u64 == ZIP_END_BYTES && end.starts_with(ZIP_END)
}
