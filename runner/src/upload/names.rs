//! The names of a command's files as ends of S3 keys.
//!
//! A key is UTF-8 (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>). Control characters are
//! allowed there, but XML cannot contain them, and S3 lists keys in XML.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path as a name: unchanged, or with `%XX` for control characters, `%` itself and bytes that are not text.
pub(super) fn key_name(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if let Some(name) = path.to_str().filter(|name| !name.contains(char::is_control)) {
        return name.to_owned();
    }
    let mut name = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || letter == '%' {
                letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(&mut name, byte));
            } else {
                name.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(&mut name, *byte));
    }
    name
}

fn escape(name: &mut String, byte: u8) {
    // Writing to a `String` does not fail.
    let _ = write!(name, "%{byte:02X}");
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn names_are_as_they_are_where_a_key_can_hold_them() {
        let cases: [(&[u8], &str); 7] = [
            ("모델/epoch=3 100%.pt".as_bytes(), "모델/epoch=3 100%.pt"),
            (b"caf\xe9.txt", "caf%E9.txt"),
            (b"100%/caf\xe9.txt", "100%25/caf%E9.txt"),
            (b"a\nb", "a%0Ab"),
            (b"sample\x1b[0m.txt", "sample%1B[0m.txt"),
            ("c1\u{85}".as_bytes(), "c1%C2%85"),
            (b"\xff\xfe", "%FF%FE"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(key_name(Path::new(OsStr::from_bytes(bytes))), expected);
        }
    }
}
