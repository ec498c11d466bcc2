//! The bytes of an archive.

use std::fs;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use crate::tests::{Bench, LIMIT};
use crate::{PackError, UnpackError, pack, verify};

/// Two files, an executable, a link and long names.
fn code() -> Bench {
    let long = format!("{}/{}.py", "sub".repeat(40), "name".repeat(40));
    let bench =
        Bench::with(&[("train.py", "print(1)\n"), ("lib/model.py", "x = 1\n"), (&long, ""), ("run.sh", "#!/bin/sh\n")]);
    bench.mode("run.sh", 0o700);
    bench.link("lib/again.py", "../train.py");
    bench.link("long", &long);
    bench.link("same", "./lib/");
    bench
}

#[test]
fn the_same_code_has_the_same_bytes() {
    let (bench, other) = (code(), Bench::new());
    let (packed, archive) = bench.pack();
    let mut files: Vec<_> = bench.tree().into_iter().collect();
    files.reverse();
    for (path, (mode, content)) in files {
        if mode == 0 {
            other.link(&path, str::from_utf8(&content).unwrap());
        } else {
            other.write(&path, content);
            // What another umask makes of it.
            other.mode(&path, if mode & 0o100 == 0 { 0o600 } else { 0o777 });
            let file = fs::File::open(other.at(&path)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007)).unwrap();
        }
    }
    assert_eq!(other.pack(), (packed.clone(), archive.clone()));
    // Another hash means that each sweep's code is uploaded once more, so it should have a reason.
    assert_eq!(packed.sha256, "6d06e8b98223fa7d4cc000f9fb0dd5f18d01a17952f7ee7d6445986a264bc2dd");
    assert_eq!(packed.files, 7);
    assert_eq!(verify(archive.as_slice(), &packed.sha256, packed.bytes).unwrap().files, 7);
}

#[test]
fn each_change_of_the_code_changes_the_hash() {
    let changes: [fn(&Bench); 6] = [
        |bench| bench.write("train.py", "print(2)\n"),
        |bench| bench.mode("train.py", 0o755),
        |bench| fs::rename(bench.at("train.py"), bench.at("main.py")).unwrap(),
        |bench| bench.write("new.py", ""),
        |bench| fs::remove_file(bench.at("lib/again.py")).unwrap(),
        |bench| {
            fs::remove_file(bench.at("same")).unwrap();
            bench.link("same", "lib");
        },
    ];
    let mut hashes = vec![code().pack().0.sha256];
    for change in changes {
        let bench = code();
        change(&bench);
        hashes.push(bench.pack().0.sha256);
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 7);
}

#[test]
fn a_file_that_changes_meanwhile_is_named() {
    let changes: [fn(&Bench); 5] = [
        |bench| bench.write("lib/model.py", "x = 1\ny = 2\n"),
        |bench| {
            let file = fs::File::open(bench.at("lib/model.py")).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        },
        |bench| bench.mode("lib/model.py", 0o755),
        |bench| fs::remove_file(bench.at("lib/model.py")).unwrap(),
        |bench| {
            fs::remove_file(bench.at("lib/model.py")).unwrap();
            bench.link("lib/model.py", "../train.py");
        },
    ];
    for change in changes {
        let bench = code();
        let listing = bench.list(&[], &[]);
        change(&bench);
        let error = pack(bench.path(), &listing, io::sink()).unwrap_err();
        assert!(error.to_string().starts_with("`lib/model.py` "), "{error}");
    }
    let bench = code();
    let listing = bench.list(&[], &[]);
    fs::remove_file(bench.at("same")).unwrap();
    bench.link("same", "lib");
    assert!(matches!(pack(bench.path(), &listing, io::sink()), Err(PackError::Changed { path }) if path == "same"));
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let bench = code();
    assert!(matches!(pack(bench.path(), &bench.list(&[], &[]), Full), Err(PackError::Write(_))));
}

#[test]
fn another_program_reads_the_same() {
    let bench = code();
    let (_, archive) = bench.pack();
    let tar = ruzstd::decoding::StreamingDecoder::new(archive.as_slice()).unwrap();
    let out = Bench::new();
    tar::Archive::new(tar).unpack(out.path()).unwrap();
    let names =
        |bench: &Bench| bench.tree().into_iter().map(|(path, (_, content))| (path, content)).collect::<Vec<_>>();
    assert_eq!(names(&out), names(&bench));
}

#[test]
fn an_empty_folder_is_an_archive() {
    let bench = Bench::new();
    let (packed, archive) = bench.pack();
    assert_eq!((packed.files, packed.bytes), (0, 1024));
    assert_eq!(Bench::new().unpack(&archive, &packed.sha256).unwrap().files, 0);
    assert!(matches!(verify(&archive[..4], &packed.sha256, LIMIT), Err(UnpackError::Compression(_))));
}
