//! Archives that are hostile, and folders that a training has changed.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::reader::hex;
use crate::tests::Bench;
use crate::{UnpackError, unpack, verify};

struct Tar(Builder<Vec<u8>>);

impl Tar {
    fn new() -> Self {
        Self(Builder::new(Vec::new())).with("first.py", EntryType::Regular, "", b"1")
    }

    /// Adds an entry whose names are written as they are.
    fn with(mut self, path: &str, kind: EntryType, target: &str, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o4755);
        header.set_device_major(1).unwrap();
        header.set_device_minor(5).unwrap();
        header.set_link_name_literal(target).unwrap();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        self.0.append(&header, content).unwrap();
        self
    }

    fn file(self, path: &str) -> Self {
        self.with(path, EntryType::Regular, "", b"x")
    }

    fn link(self, path: &str, target: &str) -> Self {
        self.with(path, EntryType::Symlink, target, b"")
    }

    fn compressed(self) -> (Vec<u8>, String) {
        compressed(&self.0.into_inner().unwrap())
    }
}

fn compressed(tar: &[u8]) -> (Vec<u8>, String) {
    let archive = ruzstd::encoding::compress_to_vec(tar, ruzstd::encoding::CompressionLevel::Fastest);
    (archive, hex(&Sha256::digest(tar)))
}

/// Unpacks into a folder with a neighbour, and checks that nothing is written.
fn refused(archive: &[u8], hash: &str) -> UnpackError {
    let bench = Bench::with(&[("outside/file", "outside"), ("into/own", "own")]);
    let before = bench.tree();
    let error = unpack(std::io::Cursor::new(archive), hash, &bench.at("into"), 1 << 20).unwrap_err();
    assert_eq!(bench.tree(), before, "{error}");
    assert_eq!(fs::read_dir(bench.at("into")).unwrap().count(), 1, "{error}");
    error
}

#[test]
fn a_hostile_entry_is_refused_and_nothing_is_written() {
    let device = |kind| Tar::new().with("device", kind, "", b"");
    for (name, tar) in [
        ("up", Tar::new().file("../outside/file")),
        ("up later", Tar::new().file("a/../../outside/file")),
        ("absolute", Tar::new().file("/tmp/spotsweep-absolute")),
        ("empty name", Tar::new().file("a//b")),
        ("dot", Tar::new().file("./a")),
        ("no name", Tar::new().file("")),
        ("folder's name", Tar::new().file("a/")),
        ("control character", Tar::new().file("a\u{1b}[2J")),
        ("temporary name", Tar::new().file(".spotsweep-unpacking/a")),
        ("twice", Tar::new().file("first.py")),
        ("below a file", Tar::new().file("a").file("a.b").file("a/b")),
        ("file after what is below it", Tar::new().file("a/b").file("a")),
        ("file through a link", Tar::new().link("a", "b").file("a/b")),
        ("link and file", Tar::new().link("a", "first.py").file("a")),
        ("link up", Tar::new().link("a", "../outside/file")),
        ("link up from a folder", Tar::new().link("a/b", "../../outside/file")),
        ("absolute link", Tar::new().link("a", "/etc/passwd")),
        ("link through a link", Tar::new().link("d", ".").link("l", "d/../outside/file")),
        ("link to nothing", Tar::new().link("a", "")),
        ("hard link", Tar::new().with("a", EntryType::Link, "first.py", b"")),
        ("character device", device(EntryType::Char)),
        ("block device", device(EntryType::Block)),
        ("pipe", device(EntryType::Fifo)),
        ("folder", Tar::new().with("a", EntryType::Directory, "", b"")),
        ("extended header", Tar::new().with("a", EntryType::XHeader, "", b"18 path=../outside\n")),
        ("sparse file", Tar::new().with("a", EntryType::GNUSparse, "", b"")),
    ] {
        let (archive, hash) = tar.compressed();
        assert!(matches!(refused(&archive, &hash), UnpackError::Entry { .. }), "{name}");
    }
    let long = |kind| Tar::new().with("././@LongLink", kind, "", b"../outside/file\0");
    for (tar, is_entry) in [
        (long(EntryType::GNULongName).file("a"), true),
        (long(EntryType::GNULongLink).link("a", "b"), true),
        (long(EntryType::GNULongName).with("././@LongLink", EntryType::GNULongName, "", b"b\0").file("a"), false),
        (long(EntryType::GNULongName), false),
        (Tar::new().with("././@LongLink", EntryType::GNULongName, "", b"a\0b").file("a"), false),
        (Tar::new().with("././@LongLink", EntryType::GNULongName, "", &[b'a'; 5000]).file("a"), false),
        (Tar::new().with("a", EntryType::Symlink, "first.py", b"content"), false),
    ] {
        let (archive, hash) = tar.compressed();
        let error = refused(&archive, &hash);
        assert_eq!(matches!(error, UnpackError::Entry { .. }), is_entry, "{error}");
    }
}

#[test]
fn a_damaged_archive_is_refused_and_nothing_is_written() {
    let tar = Tar::new().with("noise", EntryType::Regular, "", &noise(300_000)).0.into_inner().unwrap();
    let (archive, hash) = compressed(&tar);
    let is_compression = |error: &UnpackError| matches!(error, UnpackError::Compression(_));
    for count in [0, 3, 10, archive.len() / 2, archive.len() - 5] {
        let error = refused(&archive[..count], &hash);
        assert!(is_compression(&error), "{count}: {error}");
    }
    assert!(matches!(refused(&archive, &hash.replace('a', "b")), UnpackError::Hash { .. }));
    // A tar that is cut off has a hash too.
    for count in [0, 512, 700, 1024, 200_000, tar.len() - 1024, tar.len() - 512] {
        let (archive, hash) = compressed(&tar[..count]);
        assert!(is_compression(&refused(&archive, &hash)), "{count}");
    }
    let mut wrong = tar.clone();
    wrong[3] ^= 1;
    let (archive, hash) = compressed(&wrong);
    assert!(matches!(refused(&archive, &hash), UnpackError::Header { at: 0, .. }));
    let (archive, hash) = compressed(&[tar.as_slice(), &[1]].concat());
    assert!(matches!(refused(&archive, &hash), UnpackError::Header { .. }));
    // The archive has a few kilobytes, its tar has two megabytes.
    let (archive, hash) = Tar::new().with("zeros", EntryType::Regular, "", &vec![0; 2 << 20]).compressed();
    assert!(archive.len() < 8_000);
    assert!(matches!(refused(&archive, &hash), UnpackError::TooLarge { limit_bytes: 0x10_0000 }));
}

/// Bytes that cannot be compressed.
fn noise(count: usize) -> Vec<u8> {
    (0..count as u64 / 32).flat_map(|number| Sha256::digest(number.to_le_bytes())).collect()
}

#[test]
fn code_is_written_again_whatever_a_training_has_done_to_it() {
    let code = Bench::with(&[("train.py", "print(1)\n"), ("lib/model.py", "x = 1\n"), ("lib/deep/a.py", "")]);
    code.mode("train.py", 0o755);
    code.link("link.py", "train.py");
    let (packed, archive) = code.pack();
    let outside = Bench::with(&[("file", "outside"), ("folder/model.py", "outside")]);
    let link = |bench: &Bench, path: &str, target: &str| bench.link(path, outside.at(target).to_str().unwrap());
    let remove = |bench: &Bench, path: &str| match bench.at(path) {
        path if path.is_dir() => fs::remove_dir_all(path).unwrap(),
        path => fs::remove_file(path).unwrap(),
    };
    let changes: [&dyn Fn(&Bench); 16] = [
        &|_| {},
        &|bench| remove(bench, "lib"),
        &|bench| bench.write("train.py", "changed and longer than it was\n"),
        &|bench| bench.mode("train.py", 0o000),
        &|bench| bench.mode("train.py", 0o6777),
        &|bench| (remove(bench, "train.py"), link(bench, "train.py", "file")).1,
        &|bench| (remove(bench, "train.py"), link(bench, "train.py", "none")).1,
        &|bench| (remove(bench, "train.py"), fs::hard_link(outside.at("file"), bench.at("train.py")).unwrap()).1,
        &|bench| (remove(bench, "train.py"), drop(UnixListener::bind(bench.at("train.py")).unwrap())).1,
        &|bench| (remove(bench, "lib"), link(bench, "lib", "folder")).1,
        &|bench| (remove(bench, "lib"), bench.write("lib", "a file")).1,
        &|bench| (remove(bench, "link.py"), bench.write("link.py", "a file")).1,
        &|bench| bench.mode("lib", 0o500),
        &|bench| link(bench, ".spotsweep-unpacking", "file"),
        &|bench| bench.write(".spotsweep-unpacking", "left over"),
        &|bench| bench.mode("", 0o500),
    ];
    for (number, change) in changes.iter().enumerate() {
        let bench = Bench::with(&[("outputs/model.pt", "of the training"), ("lib/cache/x", "too")]);
        bench.unpack(&archive, &packed.sha256).unwrap();
        let mut expected = bench.tree();
        change(&bench);
        let unpacked = bench.unpack(&archive, &packed.sha256).unwrap_or_else(|error| panic!("{number}: {error}"));
        assert_eq!(unpacked.moved, [], "{number}");
        if !bench.at("lib/cache").exists() {
            expected.remove("lib/cache/x");
        }
        assert_eq!(bench.tree(), expected, "{number}");
        assert_eq!(bench.tree()["train.py"], (0o755, b"print(1)\n".to_vec()));
        let owner_bits = fs::metadata(bench.path()).unwrap().permissions().mode() & 0o700;
        assert_eq!(owner_bits, 0o700, "{number}");
        let both = [outside.at("file"), outside.at("folder/model.py")].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(both, ["outside", "outside"], "{number}");
        assert_eq!(outside.tree().len(), 2, "{number}");
        assert!(!bench.at("train.py").symlink_metadata().unwrap().file_type().is_socket());
    }
}

#[test]
fn a_folder_in_the_way_is_kept_under_another_name() {
    let (packed, archive) = Bench::with(&[("train.py", "print(1)\n")]).pack();
    let bench = Bench::with(&[("train.py/weights", "1"), ("train.py.moved-1", "2"), (".spotsweep-unpacking/x", "3")]);
    let unpacked = bench.unpack(&archive, &packed.sha256).unwrap();
    let moved = |path: &str, aside: &str| (path.to_owned(), aside.to_owned());
    assert_eq!(
        unpacked.moved,
        [moved(".spotsweep-unpacking", ".spotsweep-unpacking.moved-1"), moved("train.py", "train.py.moved-2")]
    );
    let contents: Vec<_> = bench.tree().into_iter().map(|(path, (_, content))| (path, content)).collect();
    let expected = [
        (".spotsweep-unpacking.moved-1/x", "3"),
        ("train.py", "print(1)\n"),
        ("train.py.moved-1", "2"),
        ("train.py.moved-2/weights", "1"),
    ];
    assert_eq!(contents, expected.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())));
}

#[test]
fn a_folder_that_is_swapped_meanwhile_leads_nowhere_else() {
    let code = Bench::with(&[("lib/a.py", "a"), ("lib/sub/b.py", "b"), ("train.py", "c")]);
    let (packed, archive) = code.pack();
    let outside = Bench::with(&[("sub/b.py", "outside")]);
    let bench = Bench::new();
    let is_over = AtomicBool::new(false);
    let mut unpacked = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Each of these fails now and then.
                let _ = fs::rename(bench.at("lib"), bench.at("other"));
                let _ = symlink(outside.path(), bench.at("lib"));
                let _ = fs::remove_file(bench.at("lib"));
                let _ = fs::rename(bench.at("other"), bench.at("lib"));
            }
        });
        for _ in 0..200 {
            unpacked += u32::from(bench.unpack(&archive, &packed.sha256).is_ok());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(unpacked > 0);
    let contents: Vec<_> = outside.tree().into_iter().map(|(path, (_, content))| (path, content)).collect();
    assert_eq!(contents, [("sub/b.py".to_owned(), b"outside".to_vec())]);
}

#[test]
fn a_folder_without_permissions_is_opened_or_moved_aside() {
    let (packed, archive) = Bench::with(&[("lib/a.py", "a")]).pack();
    let bench = Bench::with(&[("lib/of-the-training", "1")]);
    bench.mode("lib", 0o000);
    bench.unpack(&archive, &packed.sha256).unwrap();
    // Only root can look into such a folder, to open it for its owner.
    if bench.at("lib.moved-1").exists() {
        bench.mode("lib.moved-1", 0o700);
    }
    let contents: Vec<_> = bench.tree().into_values().map(|(_, content)| content).collect();
    assert_eq!(contents.len(), 2);
    assert_eq!(fs::read(bench.at("lib/a.py")).unwrap(), b"a");
}

#[test]
fn no_damage_is_taken_for_an_archive() {
    let text = "def train(rate):\n    return rate * 2\n".repeat(40);
    let code = Bench::with(&[("train.py", &text), ("lib/a.py", "a")]);
    let (packed, archive) = code.pack();
    let mut random = 1_u64;
    for _ in 0..2_000 {
        let mut damaged = archive.clone();
        for _ in 0..2 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (at, bit) = ((random >> 33) as usize % damaged.len(), (random >> 20) % 8);
            damaged[at] ^= 1 << bit;
        }
        // The checksum of Zstandard may be damaged alone.
        if verify(damaged.as_slice(), &packed.sha256, 1 << 20).is_ok() {
            let out = Bench::new();
            out.unpack(&damaged, &packed.sha256).unwrap();
            assert_eq!(out.tree(), code.tree());
        }
    }
}
