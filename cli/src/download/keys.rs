//! Turns keys into paths. A training chooses the keys, so nothing about them is assumed.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::folder::is_part_name;
use super::{Object, Trouble};

/// Decodes a key of a list with `EncodingType=url`: XML cannot contain every character that a key may have. The service
/// model does not say how a space is encoded, and boto3 decodes as forms do (botocore's `unquote_plus`).
pub(super) fn decoded(key: &str) -> String {
    percent_decode_str(&key.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// The rest of a key as a path that stays inside the folder to which it is joined.
pub(super) fn safe_path(key: &str) -> Option<PathBuf> {
    let path = Path::new(key);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_file = !key.is_empty() && !key.ends_with('/') && !key.contains("//") && !key.contains('\0');
    (plain && is_file && !key.contains("/./") && !path.iter().any(is_part_name)).then(|| path.to_owned())
}

/// Separates a file and a folder of the same name. What was put last stays, as in the training's own folder. An object
/// whose file was removed stays in the bucket, so `model` and `model/w` can both be there.
pub(super) fn apart(objects: Vec<Object>) -> (Vec<Object>, Vec<Trouble>) {
    let mut newest: HashMap<&Path, &Object> = HashMap::new();
    for object in &objects {
        for folder in object.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let within = newest.entry(folder).or_insert(object);
            if within.put_at < object.put_at {
                *within = object;
            }
        }
    }
    // A file stays if nothing in the folder of its name is newer.
    let stays = |file: &&Object| newest.get(&*file.path).is_some_and(|within| within.put_at < file.put_at);
    let files: HashMap<&Path, &Object> = objects.iter().filter(stays).map(|file| (file.path.as_path(), file)).collect();
    let trouble = |object: &Object| {
        if let Some(file) = object.path.ancestors().skip(1).find_map(|folder| files.get(folder)) {
            let why = format!("a file of its folder's name was put later: {}", file.key);
            return Some(Trouble::of(&object.key, why));
        }
        let within = newest.get(&*object.path).filter(|_| !files.contains_key(&*object.path))?;
        Some(Trouble::of(&object.key, format!("a folder has its name: {}", within.key)))
    };
    let troubles: Vec<Option<Trouble>> = objects.iter().map(trouble).collect();
    let kept = troubles.iter().map(Option::is_none).collect::<Vec<_>>();
    let objects = objects.into_iter().zip(kept).filter_map(|(object, is_kept)| is_kept.then_some(object)).collect();
    (objects, troubles.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn keys_never_leave_the_folder() {
        for key in ["a", "trials/0/model/model.joblib", "a b", "..a", "a\\..\\b", "\\a"] {
            assert_eq!(safe_path(key), Some(PathBuf::from(key)), "{key}: on this system a backslash is a letter");
        }
        for key in
            ["", "a/", "../a", "a/../../b", "a/..", "..", "/a", "a//b", "./a", "a/./b", "a\0b", "a/.spotsweep-7-0.part"]
        {
            assert_eq!(safe_path(key), None, "{key:?}");
        }
    }

    #[test]
    fn of_a_file_and_a_folder_of_one_name_the_newer_stays() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let object = |(key, seconds): &(&str, u64)| Object {
            key: format!("p/{key}"),
            path: PathBuf::from(key),
            bytes: 1,
            put_at: at(*seconds),
        };
        type Case = (&'static [(&'static str, u64)], &'static [&'static str], &'static [&'static str]);
        let cases: [Case; 4] = [
            (
                &[("model", 1), ("model/w", 2), ("model/x", 1), ("model2", 1)],
                &["model/w", "model/x", "model2"],
                &["p/model: a folder has its name: p/model/w"],
            ),
            (
                &[("model", 3), ("model/a/w", 2), ("model/x", 1)],
                &["model"],
                &[
                    "p/model/a/w: a file of its folder's name was put later: p/model",
                    "p/model/x: a file of its folder's name was put later: p/model",
                ],
            ),
            (&[("a", 1), ("a/b", 1)], &["a/b"], &["p/a: a folder has its name: p/a/b"]),
            (&[("a", 1), ("ab", 1), ("b/a", 1)], &["a", "ab", "b/a"], &[]),
        ];
        for (objects, kept, said) in cases {
            let (objects, troubles) = apart(objects.iter().map(object).collect());
            let paths: Vec<_> = objects.iter().map(|object| object.path.to_string_lossy()).collect();
            assert_eq!(paths, kept);
            assert_eq!(troubles.iter().map(ToString::to_string).collect::<Vec<_>>(), said);
        }
    }
}
