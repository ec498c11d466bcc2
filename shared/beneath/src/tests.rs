#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::{Folder, Kind, is_odd, is_protected, read_regular};

/// A folder of a training in `inside`, and what it must not lead to in `outside`.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { folder };
        for name in ["inside/sub", "outside/sub"] {
            fs::create_dir_all(bench.at(name)).unwrap();
        }
        for name in ["inside/file", "inside/sub/file", "outside/secret", "outside/sub/secret"] {
            fs::write(bench.at(name), name).unwrap();
        }
        for (link, target) in [
            ("link", bench.at("outside/secret")),
            ("dangling", bench.at("outside/new")),
            ("folder", bench.at("outside/sub")),
            ("up", PathBuf::from("../outside/secret")),
            ("own", PathBuf::from("sub/file")),
            ("own-folder", PathBuf::from("sub")),
            ("own-absolute", bench.at("inside/sub/file")),
            ("chain", PathBuf::from("own-folder/../own")),
            ("loop", PathBuf::from("loop")),
            ("environment", PathBuf::from("/proc/self/environ")),
            ("zero", PathBuf::from("/dev/zero")),
        ] {
            symlink(target, bench.at("inside").join(link)).unwrap();
        }
        mknodat(CWD, bench.at("inside/pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn inside(&self) -> Folder {
        Folder::trusted(&self.at("inside")).unwrap()
    }

    /// Whether nothing outside has changed.
    fn is_untouched(&self) -> bool {
        let names = |folder: &str| fs::read_dir(self.at(folder)).unwrap().count();
        let same = |name: &str| fs::read_to_string(self.at(name)).unwrap() == name;
        names("outside") == 2 && names("outside/sub") == 1 && same("outside/secret") && same("outside/sub/secret")
    }
}

/// Names in `inside` that are no plain file, or are not reached through plain folders.
const ODD: [&str; 12] = [
    "link",
    "dangling",
    "folder",
    "up",
    "own",
    "loop",
    "environment",
    "zero",
    "pipe",
    "folder/secret",
    "sub",
    "../outside/secret",
];

#[test]
fn nothing_but_plain_files_is_opened() {
    let bench = Bench::new();
    let _socket = UnixListener::bind(bench.at("inside/socket")).unwrap();
    let inside = bench.inside();
    for name in ODD.into_iter().chain(["socket", "file/below", "own-folder/file", "/etc/passwd", ""]) {
        let error = inside.open(Path::new(name)).unwrap_err();
        assert!(is_odd(&error), "{name}: {error}");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
    assert!(!is_odd(&inside.open(Path::new("none")).unwrap_err()));
    let mut text = String::new();
    inside.open(Path::new("sub/file")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "inside/sub/file");
    assert_eq!(inside.status(Path::new("link")).unwrap().kind, Kind::Link);
    let kinds: Vec<_> = inside.entries().unwrap().iter().map(|entry| entry.status.kind).collect();
    let count = |kind| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!((count(Kind::File), count(Kind::Folder), count(Kind::Link), count(Kind::Other)), (1, 1, 11, 2));
}

#[test]
fn nothing_outside_is_changed() {
    let bench = Bench::new();
    let inside = bench.inside();
    let path = Path::new;
    for name in ODD {
        let _ = inside.append(path(name)).map(|_| panic!("{name} is appended to"));
    }
    for name in ["folder/new", "folder/sub/new", "../outside/new", "own-folder/new"] {
        assert!(inside.write(path(name), b"x").is_err(), "{name}");
        assert!(inside.rename(path("file"), path(name)).is_err(), "{name}");
        assert!(inside.copy(path("file"), path(name)).is_err(), "{name}");
        assert!(inside.hard_link(path("file"), path(name)).is_err(), "{name}");
        assert!(inside.symbolic_link(path(name), path("file")).is_err(), "{name}");
        assert!(inside.make_folder(path(name)).is_err(), "{name}");
        assert!(inside.allocate(path(name), 1).is_err(), "{name}");
    }
    for name in ["folder/secret", "../outside/secret"] {
        assert!(inside.remove_file(path(name)).is_err(), "{name}");
        assert!(inside.rename(path(name), path("taken")).is_err(), "{name}");
        assert!(inside.hard_link(path(name), path("taken")).is_err(), "{name}");
        assert!(inside.copy(path(name), path("taken")).is_err(), "{name}");
    }
    // A written file replaces a link, and another name of a file.
    inside.hard_link(path("file"), path("second")).unwrap();
    for name in ["link", "dangling", "pipe", "zero", "second"] {
        inside.write(path(name), b"new").unwrap();
        assert_eq!(fs::read(bench.at("inside").join(name)).unwrap(), b"new");
    }
    inside.copy(path("file"), path("up")).unwrap();
    assert_eq!(fs::read(bench.at("inside/up")).unwrap(), b"inside/file");
    assert!(bench.is_untouched());
    assert_eq!(fs::read(bench.at("inside/file")).unwrap(), b"inside/file");
}

#[test]
fn links_are_followed_below_the_folder_only() {
    let bench = Bench::new();
    let inside = bench.inside();
    let paths = [bench.at("inside")];
    for name in ["file", "sub/file", "own", "own-folder/file", "own-absolute", "chain"] {
        let mut text = String::new();
        let file = inside.open_linked(Path::new(name), &paths);
        file.unwrap_or_else(|error| panic!("{name}: {error}")).read_to_string(&mut text).unwrap();
        assert!(text.starts_with("inside/"), "{name}: {text}");
    }
    for name in ODD.into_iter().filter(|name| *name != "own") {
        assert!(inside.open_linked(Path::new(name), &paths).is_err(), "{name}");
    }
    assert!(inside.open_linked(Path::new("own-absolute"), &[]).is_err(), "that path is not this folder's");
}

#[test]
fn new_folders_belong_to_the_owner_of_theirs() {
    let bench = Bench::new();
    let inside = bench.inside();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(bench.at("inside/sub"), Some(43_210), Some(43_211)).unwrap();
    }
    inside.copy(Path::new("file"), Path::new("sub/a/b/copy")).unwrap();
    let owner = |name: &str| {
        let found = fs::metadata(bench.at(name)).unwrap();
        (found.uid(), found.gid())
    };
    assert_eq!(owner("inside/sub/a"), owner("inside/sub"));
    assert_eq!(owner("inside/sub/a/b"), owner("inside/sub"));
    assert_eq!(owner("inside/sub/a/b/copy"), owner("inside/file"));
    assert_eq!(fs::read(bench.at("inside/sub/a/b/copy")).unwrap(), b"inside/file");
}

#[test]
fn who_may_read_shows_in_the_mode() {
    let bench = Bench::new();
    let inside = bench.inside();
    let own = rustix::process::geteuid().as_raw();
    let readable = |mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(bench.at("inside/file"), fs::Permissions::from_mode(mode)).unwrap();
        let status = inside.status(Path::new("file")).unwrap();
        let group = status.owner.gid;
        [status.is_readable_by(own, &[]), status.is_readable_by(43_210, &[group]), status.is_readable_by(43_210, &[7])]
    };
    assert_eq!(readable(0o600), [true, false, false]);
    assert_eq!(readable(0o640), [true, true, false]);
    assert_eq!(readable(0o604), [true, true, true]);
    assert_eq!(readable(0o000), [true, false, false]);
}

#[test]
fn a_path_is_protected_where_no_other_user_can_rename_what_it_names() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let with_mode = |mode: u32| {
        fs::set_permissions(bench.at("inside"), fs::Permissions::from_mode(mode)).unwrap();
        [is_protected(&bench.at("inside")).unwrap(), is_protected(&bench.at("inside/sub")).unwrap()]
    };
    assert_eq!(with_mode(0o755), [true, true]);
    assert_eq!(with_mode(0o1777), [true, true]);
    assert_eq!(with_mode(0o777), [false, false]);
    assert_eq!(with_mode(0o775), [false, false]);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(bench.at("inside"), Some(43_210), None).unwrap();
        assert_eq!(with_mode(0o755), [false, false]);
    }
    assert!(is_protected(&bench.at("none")).is_err());
}

#[test]
fn a_small_file_is_read_without_waiting() {
    let bench = Bench::new();
    assert_eq!(read_regular(&bench.at("inside/own"), 6).unwrap(), b"inside");
    for name in ["inside/pipe", "inside/zero", "inside/sub"] {
        assert!(read_regular(&bench.at(name), 6).is_err(), "{name}");
    }
}
