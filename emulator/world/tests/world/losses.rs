//! Tests of what is left of a volume's files when its instance is lost.

use std::collections::BTreeSet;

use spotsweep_world::ebs::{FileSystem, Opened};
use spotsweep_world::rng::Rng;

const SEEDS: u64 = 400;

/// Returns what is left of a file system, once for each seed.
fn left(files: &FileSystem) -> impl Iterator<Item = FileSystem> {
    (0..SEEDS).map(|seed| {
        let mut lost = files.clone();
        lost.lose(&mut Rng::new(seed));
        assert_eq!(lost.seen(), lost.written());
        lost
    })
}

fn written(path: &str, content: &[u8]) -> FileSystem {
    FileSystem::of([(path.to_owned(), content.to_vec())])
}

#[test]
fn what_is_written_out_stays() {
    let mut files = written("a/old", &[1; 2000]);
    files.write("a/new", 0, &[2; 2000], 1);
    files.sync("a/new");
    files.rename("a/new", "a/renamed");
    files.sync("a/renamed");
    for left in left(&files) {
        assert_eq!((left.content("a/renamed"), left.content("a/new")), (Some(&[2; 2000][..]), None));
        assert_eq!(left.content("a/old"), Some(&[1; 2000][..]));
    }
}

#[test]
fn a_new_file_is_absent_empty_cut_off_full_of_holes_or_whole() {
    let mut files = FileSystem::default();
    files.write("new", 0, &[2; 2000], 1);
    let mut seen = BTreeSet::new();
    for left in left(&files) {
        seen.insert(match left.seen().files.get("new") {
            None => "absent",
            Some(file) if file.has_hole => {
                assert!(file.bytes.contains(&0), "a hole reads as zeros");
                "holes"
            }
            Some(file) => match file.bytes.len() {
                0 => "empty",
                2000 => "whole",
                _cut => "cut off",
            },
        });
    }
    assert_eq!(seen, ["absent", "cut off", "empty", "holes", "whole"].into());
}

#[test]
fn only_what_is_written_over_mixes_with_what_was_there() {
    for (opened, mixes) in [(Opened::Kept, true), (Opened::Truncated, false)] {
        let mut files = written("model", &[1; 2000]);
        files.open("model", opened, 1);
        files.write("model", 0, &[2; 2000], 1);
        let is_mixed = |left: FileSystem| left.content("model").is_some_and(|it| it.contains(&1) && it.contains(&2));
        assert_eq!(left(&files).any(is_mixed), mixes, "{opened:?}");
    }
}

#[test]
fn a_rename_is_made_or_not_made() {
    let mut files = written("model", &[1; 9]);
    files.write("model.tmp", 0, &[2; 9], 1);
    files.sync("model.tmp");
    files.rename("model.tmp", "model");
    let mut seen = BTreeSet::new();
    for left in left(&files) {
        let (model, beside) =
            (left.content("model").map(<[u8]>::to_vec), left.content("model.tmp").map(<[u8]>::to_vec));
        assert!(matches!(
            (model.as_deref(), beside.as_deref()),
            (Some([1, ..]), Some([2, ..])) | (Some([2, ..]), None)
        ));
        seen.insert(model);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn what_was_removed_may_be_back() {
    let mut files = written("old", &[1; 9]);
    files.remove("old");
    let seen: BTreeSet<bool> = left(&files).map(|left| left.content("old").is_some()).collect();
    assert_eq!(seen, [false, true].into());
}
