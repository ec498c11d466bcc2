//! Reading processes: real ones, and texts of `/proc`.
#![allow(clippy::unwrap_used)]
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;

#[test]
fn a_process_is_read_whatever_its_name() {
    let rest = "0 0 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
    for (stat, expected) in [
        (format!("12 (sh) S 7 {rest}"), Some((12, "sh", 7, false))),
        (format!("13 (a) S 9) (b) Z 12 {rest}"), Some((13, "a) S 9) (b", 12, true))),
        (String::new(), None),
        ("12 (sh) S 7".to_owned(), None),
    ] {
        let stat = Stat::parse(&stat);
        let seen = stat.as_ref().map(|stat| (stat.id.pid, stat.name.as_str(), stat.parent, stat.ended));
        assert_eq!(seen, expected);
        assert!(stat.is_none_or(|stat| stat.id.started == 777));
    }
}

#[test]
fn the_child_that_is_waited_for_is_read() {
    let [wait4, waitid] = WAIT_CALLS;
    for (call, expected) in [
        (format!("{wait4} 0x1f 0x7ffc 0x0 0x0 0x0 0x0 0x7ffd 0x7f24"), Some(31)),
        (format!("{wait4} 0xffffffff 0x7ffc 0x0"), None),
        (format!("{wait4} 0xffffffffffffffff 0x7ffc 0x0"), None),
        (format!("{waitid} 0x1 0x20 0x7ffc 0x4"), Some(32)),
        (format!("{waitid} 0x0 0x20 0x7ffc 0x4"), None),
        ("230 0x1 0x1f 0x0".to_owned(), None),
        ("running".to_owned(), None),
        (String::new(), None),
    ] {
        assert_eq!(waited_for(&call), expected, "{call}");
    }
}

#[test]
fn a_process_is_seen_though_its_name_is_no_text() {
    let folder = tempfile::tempdir().unwrap();
    // Half a letter at the end, as when the kernel cuts a name, and bytes that are no letters.
    for (name, argument) in [(b"abcdefghijklmn\xc3\xa9".as_slice(), b"60".as_slice()), (b"\xff\xfeevil", b"60.0")] {
        let program = folder.path().join(OsStr::from_bytes(name));
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg(OsStr::from_bytes(argument)).spawn().unwrap();
        let pid = child.id().cast_signed();
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap();
        let found = read(pid);
        let is_below = below(std::process::id().cast_signed(), &all()).contains(&pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(String::from_utf8(stat).is_err(), "the kernel gives the name as it is");
        assert!(found.is_some() && is_below, "{found:?}");
    }
}

#[test]
fn this_process_is_seen_with_the_file_that_it_writes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let own = i32::try_from(std::process::id()).unwrap();
    let found = read(own).unwrap();
    assert!(!found.waits && !found.is_shell() && !found.is_forwarder(), "{found:?}");
    assert!(written_files(own).contains(&file.path().to_owned()));
}
