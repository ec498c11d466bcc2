//! Which keys can be the paths of files in one folder.

/// The longest key in bytes: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>.
const LONGEST_KEY: usize = 1_024;
/// The longest name of a file in bytes: `NAME_MAX` of ext4 and XFS.
const LONGEST_NAME: usize = 255;

/// Why a key cannot be the path of a file in the folder of its data set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the object `{}` {why}; rename or move it", .key.escape_debug())]
pub struct KeyProblem {
    /// The key.
    pub key: String,
    /// What is wrong with it, without the key.
    pub why: &'static str,
}

/// Checks the keys of a data set one by one, without the set's prefix. They come in the order in which S3 lists them,
/// which is that of their bytes: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/ListingKeysUsingAPIs.html>.
/// So it keeps no more than the last key. Another order is a problem: a directory bucket lists in none, and a set of all
/// keys would take a function's memory.
#[derive(Debug, Default)]
pub struct KeyCheck {
    last: String,
    /// The lengths of those beginnings of `last`, and of itself, that are keys and may still have a folder of the same
    /// name. Between the file `a` and the folder `a` come keys such as `a-b`, all of which begin with `a`.
    files: Vec<usize>,
}

impl KeyCheck {
    /// Checks the next key.
    ///
    /// # Errors
    /// If the key is no path of a file below a folder, or cannot be in the same folder as the keys before it.
    pub fn add(&mut self, key: &str) -> Result<(), KeyProblem> {
        let why = path_problem(key).or_else(|| self.problem_with_others(key));
        if let Some(why) = why {
            return Err(KeyProblem { key: key.to_owned(), why });
        }
        key.clone_into(&mut self.last);
        self.files.push(key.len());
        Ok(())
    }

    fn problem_with_others(&mut self, key: &str) -> Option<&'static str> {
        match key.cmp(&self.last) {
            std::cmp::Ordering::Equal => return Some("is listed twice"),
            std::cmp::Ordering::Less => return Some("is not listed in the order of S3's general purpose buckets"),
            std::cmp::Ordering::Greater => {}
        }
        let last = self.last.as_bytes();
        // Keys that go on with a byte after the slash come after the whole folder.
        self.files.retain(|length| {
            key.as_bytes().starts_with(&last[..*length])
                && key.as_bytes().get(*length).is_some_and(|byte| *byte <= b'/')
        });
        let is_below = self.files.iter().any(|length| key.as_bytes().get(*length) == Some(&b'/'));
        is_below.then_some("is in a folder that has the name of another object")
    }
}

/// Returns why a text is no path of a file below a folder.
fn path_problem(key: &str) -> Option<&'static str> {
    let mut names = key.split('/');
    if key.is_empty() {
        Some("has no name of its own")
    } else if key.len() > LONGEST_KEY {
        Some("has a key of more than 1 024 bytes")
    } else if key.contains('\0') {
        Some("has a zero byte in its key")
    } else if key.starts_with('/') {
        Some("has a key that begins with a slash")
    } else if key.ends_with('/') {
        Some("has a key that ends with a slash")
    } else if names.clone().any(|name| matches!(name, "" | "." | "..")) {
        Some("has an empty name, `.` or `..` in its key")
    } else if names.any(|name| name.len() > LONGEST_NAME) {
        Some("has a name of more than 255 bytes in its key")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(keys: &[&str]) -> Result<(), KeyProblem> {
        let mut check = KeyCheck::default();
        keys.iter().try_for_each(|key| check.add(key))
    }

    #[test]
    fn keys_that_are_no_paths_are_refused() {
        let long_name = format!("a/{}", "é".repeat(128));
        let long_key = "abcdefg/".repeat(128) + "a";
        let refused = ["", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a/..", "a\0b", &long_name, &long_key];
        for key in refused {
            assert_eq!(check(&[key]).unwrap_err().key, key);
        }
        let longest = format!("{}/{}", "a".repeat(255), "b".repeat(255));
        for key in ["a", "...", "a/.b/..c", " ", "a\\..\\b", "a\nb", &longest] {
            assert_eq!(check(&[key]), Ok(()));
        }
    }

    #[test]
    fn files_and_folders_of_one_name_are_refused() {
        let fine: [&[&str]; 4] =
            [&["a", "a-b", "a.c", "ab/c"], &["a-b", "a/b", "a/c", "ab"], &["a/a", "b/a"], &["a", "b"]];
        for keys in fine {
            assert_eq!(check(keys), Ok(()), "{keys:?}");
        }
        let refused: [&[&str]; 6] = [
            &["a", "a/b"],
            &["a", "a-b", "a/b"],
            &["a", "a-", "a--", "a--b/c", "a-/b"],
            &["a", "a"],
            &["b", "a"],
            &["x/a", "x/a!", "x/a/b"],
        ];
        for keys in refused {
            let last = *keys.last().unwrap();
            assert_eq!(check(keys).unwrap_err().key, last, "{keys:?}");
            assert_eq!(check(&keys[..keys.len() - 1]), Ok(()), "{keys:?}");
        }
    }

    proptest! {
        /// The reference knows all keys at once.
        #[test]
        fn the_last_key_says_as_much_as_all(keys in prop::collection::btree_set("[ab!0](/?[ab!0]){0,4}", 1..24)) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let all: BTreeSet<&str> = keys.iter().copied().collect();
            let is_below = |key: &&str| key.match_indices('/').any(|(at, _)| all.contains(&key[..at]));
            let expected = keys.iter().find(|key| is_below(key)).map(|key| (*key).to_owned());
            prop_assert_eq!(check(&keys).err().map(|problem| problem.key), expected);
        }
    }
}
