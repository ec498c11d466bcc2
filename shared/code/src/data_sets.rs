//! Leaves out data: a training reads it from S3, and each attempt would download it with the code.

use std::collections::BTreeMap;

use crate::content::Content;
use crate::left_out::{LeftOut, Reason};
use crate::walk::Found;

/// The largest file that is packed unless `include` matches it, in bytes.
pub const LARGEST_BYTES: u64 = 50 << 20;
/// The most files of one kind of data that are packed from below one folder unless `include` matches them.
pub const MOST_DATA_FILES: u64 = 5_000;

/// The endings of files that data sets have many of.
const ENDINGS: [&str; 41] = [
    "aac", "arrow", "avi", "avif", "bin", "bmp", "csv", "dcm", "feather", "flac", "gif", "h5", "hdf5", "jpeg", "jpg",
    "json", "jsonl", "m4a", "mat", "mkv", "mov", "mp3", "mp4", "nii", "npy", "npz", "ogg", "opus", "parquet", "pgm",
    "png", "ppm", "pt", "tfrecord", "tif", "tiff", "tsv", "txt", "wav", "webp", "xml",
];

/// The endings among them that code has many of, too: of these only the files in one folder count together.
const IN_CODE: [&str; 3] = ["json", "txt", "xml"];

/// Returns what is packed.
pub(crate) fn leave_out(mut found: Vec<Found>, left_out: &mut Vec<LeftOut>) -> Vec<Found> {
    found.retain(|found| match found.item.content {
        Content::File { bytes, .. } if bytes > LARGEST_BYTES && !found.is_included => {
            left_out.push(LeftOut { path: found.item.path.clone(), reason: Reason::Large { bytes } });
            false
        }
        Content::File { .. } | Content::Link { .. } => true,
    });
    let sets = sets(&found);
    found.retain(|found| {
        let in_set = |ending| {
            let most = if is_in_code(ending) { 1 } else { usize::MAX };
            folders(&found.item.path).take(most).any(|folder| has(&sets, folder, ending))
        };
        !ending(found).is_some_and(in_set)
    });
    left_out.extend(sets.into_iter().map(|Set { folder, ending, files }| {
        let path = if folder.is_empty() { ".".to_owned() } else { folder };
        LeftOut { path, reason: Reason::DataSet { ending, files } }
    }));
    found
}

/// Many files of one kind below a folder.
struct Set {
    folder: String,
    ending: String,
    files: u64,
}

fn has(sets: &[Set], folder: &str, ending: &str) -> bool {
    sets.iter().any(|set| set.folder == folder && set.ending == ending)
}

/// Returns the data sets. Each folder is the deepest one that has so many files: the images of a data set may be in one
/// folder for each of its classes.
fn sets(found: &[Found]) -> Vec<Set> {
    // By depth, so that each folder comes after those below it.
    let mut counts: BTreeMap<(std::cmp::Reverse<usize>, &str, &str), u64> = BTreeMap::new();
    for found in found {
        if let (Some(ending), Some(folder)) = (ending(found), folders(&found.item.path).next()) {
            *counts.entry((depth(folder), folder, ending)).or_default() += 1;
        }
    }
    let mut sets = Vec::new();
    while let Some(((_, folder, ending), files)) = counts.pop_first() {
        if files > MOST_DATA_FILES {
            sets.push(Set { folder: folder.to_owned(), ending: ending.to_owned(), files });
        } else if !folder.is_empty() && !is_in_code(ending) {
            let parent = above(folder);
            *counts.entry((depth(parent), parent, ending)).or_default() += files;
        }
    }
    sets
}

fn depth(folder: &str) -> std::cmp::Reverse<usize> {
    std::cmp::Reverse(if folder.is_empty() { 0 } else { folder.matches('/').count() + 1 })
}

/// Returns the folder of a path, which is empty at the top.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the folders of a path, the deepest first, and the top as the last.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(above(path)), |folder| (!folder.is_empty()).then(|| above(folder)))
}

/// Returns the ending of a file that may be data, as it is written: the pattern that sends it depends on the case.
fn ending(found: &Found) -> Option<&str> {
    if found.is_included || matches!(found.item.content, Content::Link { .. }) {
        return None;
    }
    let (_, ending) = found.item.path.rsplit_once('.')?;
    ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)).then_some(ending)
}

fn is_in_code(ending: &str) -> bool {
    IN_CODE.iter().any(|known| ending.eq_ignore_ascii_case(known))
}
