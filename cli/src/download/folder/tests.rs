#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn object(path: &str) -> Object {
    Object { key: format!("k/{path}"), path: path.into(), bytes: 3, put_at: at(1_000) }
}

fn open(folder: &TempDir, present: Present) -> Folder {
    Folder::open(folder.path(), present).unwrap()
}

fn put(folder: &Folder, object: &Object) -> Result<(), String> {
    let part = folder.part(object).map_err(|trouble| trouble.to_string())?;
    std::io::Write::write_all(&mut part.file().unwrap(), b"new").unwrap();
    folder.keep(part, object).map_err(|trouble| trouble.to_string())
}

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn only_the_very_object_is_there() {
    let (folder, object) = (tempfile::tempdir().unwrap(), object("a/model"));
    let path = folder.path().join("a/model");
    let has = |object: &Object| open(&folder, Present::Keep).has(object).unwrap();
    assert!(!has(&object), "its folder is not there");
    fs::create_dir(folder.path().join("a")).unwrap();
    assert!(!has(&object));
    fs::write(&path, "abc").unwrap();
    for (seconds, bytes, expected) in [(1_000, 3, true), (2_000, 3, true), (999, 3, false), (2_000, 4, false)] {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(at(seconds))).unwrap();
        assert_eq!(has(&Object { bytes, ..object.clone() }), expected, "{seconds} {bytes}");
    }
    assert!(!open(&folder, Present::Replace).has(&object).unwrap());
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(other.path().join("file"), "abc").unwrap();
    symlink(other.path(), folder.path().join("linked")).unwrap();
    symlink(other.path().join("file"), folder.path().join("file")).unwrap();
    symlink(other.path().join("nothing"), folder.path().join("dangling")).unwrap();
    let keep = open(&folder, Present::Keep);
    for (path, says) in [
        ("linked/file", "linked is a link, which is not followed"),
        ("linked/new", "linked is a link, which is not followed"),
        ("linked/sub/new", "linked is a link, which is not followed"),
        ("file", "what lies at file is a link"),
        ("dangling", "what lies at dangling is a link"),
    ] {
        assert!(!keep.has(&object(path)).unwrap_or(false), "{path}");
        let said = put(&keep, &object(path)).unwrap_err();
        assert!(said.contains(says), "{said}");
    }
    put(&open(&folder, Present::Replace), &object("file")).unwrap();
    assert!(folder.path().join("file").symlink_metadata().unwrap().is_file(), "the link itself is replaced");
    assert_eq!(fs::read(other.path().join("file")).unwrap(), b"abc");
    assert_eq!(names(other.path()), ["file"]);
}

#[test]
fn one_name_that_cannot_be_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    let long = "n".repeat(256);
    let keep = open(&folder, Present::Keep);
    for (path, says) in [
        ("folder", "what lies at folder is a folder"),
        ("plain/w", "plain is no folder"),
        (&*long, "cannot write"),
        (&*format!("{long}/w"), "cannot write"),
    ] {
        let said = put(&keep, &object(path)).unwrap_err();
        assert!(said.contains(says), "{said}");
        let _ = keep.has(&object(path));
    }
    put(&keep, &object("sub/folder/w")).unwrap();
    assert!(keep.has(&object("sub/folder/w")).unwrap());
    assert_eq!(names(folder.path()), ["folder", "plain", "sub"]);
}

#[test]
fn a_part_goes_with_its_fetch() {
    let folder = tempfile::tempdir().unwrap();
    let keep = open(&folder, Present::Keep);
    let (one, other) = (keep.part(&object("one")).unwrap(), keep.part(&object("other")).unwrap());
    assert!(names(folder.path()).iter().all(|name| is_part_name(name)), "{:?}", names(folder.path()));
    keep.keep(other, &object("other")).unwrap();
    drop(one);
    assert_eq!(names(folder.path()), ["other"]);
}

/// A file with two links stands for a file system that treats two names as one. There the file has one link.
#[test]
fn two_objects_are_never_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let keep = open(&folder, Present::Keep);
    put(&keep, &object("Model")).unwrap();
    let found = rustix::fs::statat(&keep.root, "Model", AtFlags::SYMLINK_NOFOLLOW).unwrap();
    keep.take(&found, &object("Model")).unwrap();
    let said = keep.take(&found, &object("model")).unwrap_err().to_string();
    assert!(said.contains("takes its name for that of Model"), "{said}");
    fs::hard_link(folder.path().join("Model"), folder.path().join("copy")).unwrap();
    assert!(keep.has(&object("copy")).unwrap(), "two links are two names");
}
