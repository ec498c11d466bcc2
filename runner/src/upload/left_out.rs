//! Files whose names do not fit in an S3 key: they are left out, and named.

use std::collections::{BTreeMap, BTreeSet};

use super::scan::Found;

/// The longest key: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
const MAX_KEY_BYTES: usize = 1024;

/// Removes the files whose names do not fit in a key below the prefix, and returns these names with the reasons.
pub(super) fn take_out(found: &mut Vec<Found>, prefix: &str) -> BTreeMap<String, String> {
    let mut left_out = BTreeMap::new();
    // A file with an unchanged name has precedence over a file whose name was escaped to the same text.
    found.sort_by_key(|file| (file.name.clone(), !file.path.ends_with(&file.name)));
    let mut names = BTreeSet::new();
    found.retain(|Found { name, path, .. }| {
        let bytes = prefix.len() + name.len();
        let why = if bytes > MAX_KEY_BYTES {
            format!("its key would have {bytes} bytes, and S3 takes {MAX_KEY_BYTES}")
        } else if !names.insert(name.clone()) {
            format!("another file is called as it would be; rename {path:?}")
        } else {
            return true;
        };
        left_out.insert(name.clone(), why);
        false
    });
    left_out
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::super::names::key_name;
    use super::super::scan::Stamp;
    use super::*;

    #[test]
    fn what_no_key_can_hold_is_named() {
        let stamp = Stamp { bytes: 1, modified: SystemTime::UNIX_EPOCH, inode: 1 };
        let file = |path: &[u8]| {
            let path = PathBuf::from(OsStr::from_bytes(path));
            Found { name: key_name(&path), path, is_checkpoint: false, stamp }
        };
        let long = "f".repeat(MAX_KEY_BYTES - 3);
        let mut found = vec![file(b"caf\xe9"), file(b"caf%E9"), file(long.as_bytes()), file(&long.as_bytes()[1..])];
        let left_out = take_out(&mut found, "p/0/");
        let kept: Vec<_> = found.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
        assert_eq!(kept, ["caf%E9", &long[1..]]);
        assert_eq!(left_out.keys().collect::<Vec<_>>(), ["caf%E9", &long]);
        assert!(left_out[&long].contains("1025 bytes"), "{left_out:?}");
    }
}
