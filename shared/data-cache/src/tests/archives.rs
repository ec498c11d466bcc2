//! Archives, as people make them and as they should not be.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{EntryType, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::bucket::Bucket;
use super::{content, fetched};
use crate::DataError;

/// A path, what is there, and a file's content.
type Entry<'a> = (&'a [u8], EntryType, &'a [u8]);

fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(*kind);
        header.set_mode(0o6777);
        header.set_size(content.len() as u64);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("other").unwrap();
        }
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn file<'a>(path: &'a str, content: &'a [u8]) -> Entry<'a> {
    (path.as_bytes(), EntryType::Regular, content)
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in entries {
        if path.ends_with('/') {
            archive.add_directory(*path, SimpleFileOptions::default()).unwrap();
        } else {
            archive.start_file(*path, SimpleFileOptions::default().unix_permissions(0o4777)).unwrap();
            archive.write_all(content).unwrap();
        }
    }
    archive.finish().unwrap().into_inner()
}

fn zst(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

fn bucket(objects: &[(&str, Vec<u8>)]) -> Bucket {
    Bucket::of(objects.iter().map(|(key, content)| ((*key).to_owned(), content.clone())).collect())
}

#[tokio::test]
async fn archives_become_what_they_contain() {
    let large = content(1, 3_000_000);
    let many = tar(&[
        (b"pax_global_header", EntryType::XGlobalHeader, b"10 a=12345\n"),
        (b"./", EntryType::Directory, b""),
        (b"./empty/", EntryType::Directory, b""),
        (b"old/", EntryType::Regular, b""),
        file("./train//0.jpg", &large),
        file("train/1.jpg", b"1"),
        (b"latin-\xe9", EntryType::Regular, b"2"),
    ]);
    let (start, end) = many.split_at(many.len() / 3);
    // Two frames, and one between them that says nothing.
    let frames = [&zst(start)[..], &0x184D_2A51_u32.to_le_bytes(), &3_u32.to_le_bytes(), b"abc", &zst(end)].concat();
    let expected = |found: &BTreeMap<String, Vec<u8>>, prefix: &str| {
        assert!(found[&format!("{prefix}train/0.jpg")] == large);
        assert_eq!(found[&format!("{prefix}train/1.jpg")], b"1");
    };
    // The last name is not UTF-8, which `files` cannot return.
    let utf8 = tar(&[file("train/0.jpg", &large), file("train/1.jpg", b"1")]);
    for (key, archive) in [
        ("a.tar", utf8.clone()),
        ("b/c/a.tar", utf8.clone()),
        ("b/a.tar.zst", zst(&utf8)),
        ("b/a.zip", zip(&[("train/", b""), ("train/0.jpg", &large), ("train/1.jpg", b"1")])),
    ] {
        let objects = [(key, archive), ("plain.txt", b"plain".to_vec()), ("plain.gz", b"gz".to_vec())];
        let found = fetched(bucket(&objects), true).await.unwrap();
        assert_eq!((found.len(), &found["plain.txt"][..]), (4, &b"plain"[..]), "{key}");
        expected(&found, key.rsplit_once('/').map_or("", |(folder, _)| &key[..=folder.len()]));
        // Without `unpack` an archive is a file like others.
        let found = fetched(bucket(&objects), false).await.unwrap();
        assert_eq!((found.len(), &found[key]), (3, &objects[0].1));
    }
    for archive in [("a.tar", many), ("a.tar.zst", frames)] {
        let (folder, cache) = super::cache();
        let bucket = std::sync::Arc::new(bucket(&[archive]));
        let held = super::acquire(&cache, (&bucket.set(true), &bucket)).await.unwrap();
        let tree = held.path();
        assert!(std::fs::read(tree.join("train/0.jpg")).unwrap() == large);
        assert!(tree.join("empty").is_dir() && tree.join("old").is_dir());
        assert_eq!(std::fs::read_dir(tree).unwrap().count(), 4);
        drop(folder);
    }
    // An archive may have a file of its own name, and archives may fill the same folders.
    let objects = [("a.tar", tar(&[file("a.tar", b"1"), file("b/c", b"2")])), ("b.tar", tar(&[file("b/d", b"3")]))];
    assert_eq!(fetched(bucket(&objects), true).await.unwrap().len(), 3);
}

#[tokio::test]
async fn hostile_and_damaged_archives_are_refused() {
    let long = "x".repeat(99);
    let link = |kind| tar(&[file("fine", b""), (b"bad", kind, b"")]);
    let mut flipped = zst(&tar(&[file("bad", &content(1, 100_000))]));
    let at = flipped.len() - 200;
    flipped[at] ^= 0x55;
    let whole = tar(&[file("bad", &content(1, 100_000))]);
    let zipped = zip(&[("bad", &content(1, 100_000))]);
    let mut flipped_zip = zipped.clone();
    flipped_zip[800] ^= 0x55;
    let mut linked = ZipWriter::new(Cursor::new(Vec::new()));
    linked.add_symlink("bad", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("d/a.tar", tar(&[file("../bad", b"")])),
        ("d/a.tar", tar(&[file("x/../../bad", b"")])),
        ("d/a.tar", tar(&[file("/bad", b"")])),
        ("d/a.tar", tar(&[(b"../bad/", EntryType::Directory, b"")])),
        ("d/a.tar", link(EntryType::Symlink)),
        ("d/a.tar", link(EntryType::Link)),
        ("d/a.tar", link(EntryType::Char)),
        ("d/a.tar", link(EntryType::Fifo)),
        ("d/a.tar", tar(&[file("bad", b""), file("bad", b"")])),
        ("d/a.tar", tar(&[file("bad", b""), file("bad/x", b"")])),
        ("d/a.tar", tar(&[file(".", b"bad")])),
        ("d/a.tar", tar(&[(b"taken", EntryType::Regular, b"bad")])),
        ("d/a.tar", whole[..50_000].to_vec()),
        ("d/a.tar", b"bad".repeat(400)),
        ("d/a.tar.zst", whole.clone()),
        ("d/a.tar.zst", flipped),
        ("d/a.tar.zst", {
            let compressed = zst(&whole);
            compressed[..compressed.len() / 2].to_vec()
        }),
        ("d/a.zip", whole.clone()),
        ("d/a.zip", Vec::new()),
        ("d/a.zip", zipped[..zipped.len() - 30].to_vec()),
        ("d/a.zip", flipped_zip),
        ("d/a.zip", zip(&[("../bad", b"")])),
        ("d/a.zip", zip(&[("/bad", b"")])),
        ("d/a.zip", linked.finish().unwrap().into_inner()),
    ];
    for (at, (key, archive)) in cases.into_iter().enumerate() {
        let objects = [(key, archive), ("d/taken", long.clone().into_bytes())];
        let error = fetched(bucket(&objects), true).await.unwrap_err();
        assert!(
            matches!(&error, DataError::Archive { key: of, .. } if of == key || of == "d/taken"),
            "{at}: {error:?}"
        );
        assert!(!error.is_transient());
    }
}
