#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]

mod databases;
mod groups;
mod kept;
mod left_over;
mod logs;
mod parts;
mod rewritten;
mod rollback;
mod together;
mod unjudged;

use std::collections::BTreeSet;
use std::fs::{self, FileTimes, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use spotsweep_protocol::claim::{Found, Seal};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::aside::TORN;
use crate::disk::MountedDisk;
use crate::record::Sealed;
use crate::{AtEnd, BadEnd, CHECKPOINTS, OWN, QUIET, Sealer};

/// The `is_time` of a seal that has enough time.
const IN_TIME: fn() -> bool = || true;

/// Long after the clock of the [`Bench`], and long before today.
const NOW: i64 = 2_000_000_000_000_000;

/// A workspace, and the actions of attempts on it.
struct Bench {
    folder: tempfile::TempDir,
    is_disk: bool,
    attempt: u32,
    /// The time of the newest file, in seconds since 1970.
    clock: u64,
}

impl Bench {
    fn new(is_disk: bool) -> Self {
        let folder = spotsweep_needs::scratch();
        fs::create_dir_all(folder.path().join(OWN)).unwrap();
        fs::create_dir_all(folder.path().join(CHECKPOINTS)).unwrap();
        Self { folder, is_disk, attempt: 0, clock: 1_000_000 }
    }

    fn disk(&self) -> MountedDisk {
        MountedDisk::below(self.folder.path())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(CHECKPOINTS).join(name)
    }

    /// Writes in place; each file is newer than the one before.
    fn write(&mut self, name: &str, content: &[u8]) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
        self.touch(name);
    }

    fn touch(&mut self, name: &str) {
        self.clock += 1;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(self.clock);
        let file = OpenOptions::new().append(true).open(self.at(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    }

    /// Writes next to the file, and renames into its place.
    fn replace(&mut self, name: &str, content: &[u8]) {
        let beside = format!("{name}.part");
        self.write(&beside, content);
        fs::rename(self.at(&beside), self.at(name)).unwrap();
    }

    fn resume(&mut self) -> (Sealer, Found) {
        self.attempt += 1;
        Sealer::resume(&self.disk(), self.folder.path(), self.attempt, self.is_disk, |_| ()).unwrap()
    }

    /// Seals what is there now, as while the command runs or as at its end.
    fn seal(&mut self, last: bool) {
        let (mut sealer, _) = self.resume();
        sealer.begin(&self.disk()).unwrap();
        if last {
            sealer.finish(&self.disk(), &at_rest(), &IN_TIME).unwrap();
        } else {
            assert!(sealer.seal_resting(&self.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        }
    }
}

/// The command has ended by itself, and had closed everything before.
fn at_rest() -> AtEnd {
    AtEnd::new(BTreeSet::new(), NOW, false)
}

/// The command has failed.
fn failure(error: &str) -> BadEnd {
    BadEnd { exit_code: 1, error: Some(error.to_owned()) }
}

#[test]
fn a_round_that_is_stopped_leaves_the_seal_as_it_was() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    bench.write("one.pt", &zip_of(b"1"));
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    bench.write("two.pt", &vec![7; 3 << 20]);
    let (disk, reading) = bench.disk().stoppable();
    reading.stop();
    assert!(sealer.seal_resting(&disk, QUIET, NOW, &BTreeSet::new).is_err());
    assert_eq!(sealer.record.files.len(), 1);
    sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
    assert_eq!(sealer.record.files.len(), 2);
}

/// A second version may have the same size, and the same time.
#[test]
fn a_file_of_this_moment_is_sealed_a_moment_later() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    bench.write("model.pt", &zip_of(b"1"));
    let modified_ns = i64::try_from(bench.clock).unwrap() * 1_000_000_000;
    for (age_ms, is_sealed) in [(0, false), (10, false), (50, true)] {
        let now_ns = modified_ns + age_ms * 1_000_000;
        let sealed = sealer.seal_resting(&bench.disk(), QUIET, now_ns, &BTreeSet::new).unwrap();
        assert_eq!(sealed, is_sealed, "after {age_ms} ms");
    }
}

#[test]
fn what_was_being_written_at_the_end_is_judged_by_its_format() {
    let zip = zip_of(&[7; 1000]);
    // Content, whether it is sealed, whether it is doubtful.
    let cases: [(&[u8], bool, bool); 3] =
        [(&zip[..100], false, false), (&zip, true, false), (b"a pickle?", true, true)];
    for (content, is_sealed, is_doubtful) in cases {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("old.pt", &zip);
        bench.write("new.pt", content);
        // A look between two writes may seal it meanwhile.
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        let at_end = AtEnd::new(BTreeSet::from([bench.at("new.pt")]), NOW, true);
        sealer.finish(&bench.disk(), &at_end, &IN_TIME).unwrap();
        let sealed = sealer.record.files.get("new.pt");
        assert_eq!((sealed.is_some(), sealed.is_some_and(|file| file.doubtful)), (is_sealed, is_doubtful));
        let torn = if is_sealed { vec![] } else { vec!["new.pt".to_owned()] };
        assert_eq!(bench.resume().1.torn, torn);
    }
}

fn zip_of(content: &[u8]) -> Vec<u8> {
    let mut writer = ZipWriter::new(io::Cursor::new(Vec::new()));
    writer.start_file("archive/data.pkl", SimpleFileOptions::default()).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap().into_inner()
}

/// The sealed content of `new`. No format shows whether it is complete.
const SEALED: [u8; 2000] = [0xfe; 2000];

/// What happens to `new`, which is sealed after `old`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Nothing,
    Truncated,
    Emptied,
    SameSizeOverwritten,
    Grown,
    LongerOverwritten,
    OverwrittenByZip,
    OverwrittenByTornZip,
    Replaced,
    ReplacedByShorter,
    ReplacedByEmpty,
    Touched,
    Removed,
}

impl Event {
    fn happen(self, bench: &mut Bench) {
        let zip = zip_of(b"weights");
        match self {
            Self::Nothing => {}
            Self::Truncated => bench.write("new", &SEALED[..1000]),
            Self::Emptied => bench.write("new", b""),
            Self::SameSizeOverwritten => bench.write("new", &[[0xfe; 1000], [0xfd; 1000]].concat()),
            Self::Grown => bench.write("new", &[0xfe; 2100]),
            Self::LongerOverwritten => bench.write("new", &[0xfd; 2100]),
            Self::OverwrittenByZip => bench.write("new", &zip),
            Self::OverwrittenByTornZip => bench.write("new", &zip[..zip.len() - 23]),
            Self::Replaced => bench.replace("new", &[0xfd; 2100]),
            Self::ReplacedByShorter => bench.replace("new", &[0xfd; 100]),
            Self::ReplacedByEmpty => bench.replace("new", b""),
            Self::Touched => bench.touch("new"),
            Self::Removed => fs::remove_file(bench.at("new")).unwrap(),
        }
    }
}

#[test]
fn what_differs_from_a_running_seal_is_judged_by_its_format() {
    // The event; whether `new` is torn after the last seal, and after a running one.
    let cases = [
        (Event::Nothing, false, false),
        (Event::Truncated, true, true),
        (Event::Emptied, true, true),
        (Event::SameSizeOverwritten, true, true),
        (Event::Grown, true, true),
        (Event::LongerOverwritten, true, true),
        (Event::OverwrittenByZip, true, false),
        (Event::OverwrittenByTornZip, true, true),
        (Event::Replaced, true, true),
        (Event::ReplacedByShorter, true, true),
        (Event::ReplacedByEmpty, true, true),
        (Event::Touched, false, false),
    ];
    for (event, torn_after_last, torn_after_running) in cases {
        for (last, is_disk, torn) in [
            (true, true, torn_after_last),
            (true, false, torn_after_last),
            (false, true, torn_after_running),
            (false, false, torn_after_running),
        ] {
            let what = format!("{event:?}, last {last}, disk {is_disk}");
            let mut bench = Bench::new(is_disk);
            bench.write("old", b"older content");
            bench.write("new", &SEALED);
            bench.seal(last);
            event.happen(&mut bench);
            let content = fs::read(bench.at("new")).unwrap();
            let (_, found) = bench.resume();
            let torn = torn.then(|| "new".to_owned());
            let expected =
                Found { newest: Some("new".into()), torn: torn.clone().into_iter().collect(), ..Found::default() };
            assert_eq!(found, expected, "{what}");
            if torn.is_some() {
                assert_eq!(fs::read(bench.at("new")).unwrap(), SEALED, "{what}: its sealed version is back");
                let aside = bench.folder.path().join(OWN).join(TORN).join("2/new");
                assert_eq!(fs::read(aside).unwrap(), content, "{what}: kept");
            }
            assert_eq!(bench.resume().1.torn, [""; 0], "{what}: once is enough");
        }
    }
}

#[test]
fn what_is_gone_is_missing_only_where_the_command_could_not_remove_it() {
    for (last, left, missing) in [(true, true, vec!["new"]), (false, true, vec![]), (false, false, vec!["new"])] {
        let mut bench = Bench::new(true);
        if left {
            bench.write("old", b"older content");
        }
        bench.write("new", b"sealed content");
        bench.seal(last);
        Event::Removed.happen(&mut bench);
        let (_, found) = bench.resume();
        assert_eq!(found.missing, missing, "last {last}, left {left}");
        assert_eq!(found.newest.is_some(), left || !last, "what is kept is back");
    }
}

#[test]
fn unsealed_files_are_judged_by_themselves() {
    let zip = zip_of(&[7; 1000]);
    let torch_like = &zip[..zip.len() / 2];
    let cases: [(&str, &[u8], bool); 9] = [
        ("model.pt", &zip, false),
        ("model.pt", torch_like, true),
        ("model.bin", b"raw weights", false),
        // A log that begins like JSON.
        ("output", b"[INFO] epoch 3", false),
        ("model.bin", b"", true),
        ("state.json", b"", true),
        ("run/.is_checkpoint", b"", false),
        ("model.pt.77.part", b"", false),
        ("tmp-checkpoint-9/model.pt", b"", false),
    ];
    for (name, content, torn) in cases {
        let mut bench = Bench::new(true);
        bench.write(name, content);
        assert_eq!(!bench.resume().1.torn.is_empty(), torn, "{name} {}", content.len());
        assert_eq!(bench.at(name).exists(), !torn);
    }
}

#[test]
fn a_torn_file_takes_its_checkpoint_folder_along() {
    let mut bench = Bench::new(true);
    for name in
        ["checkpoint-500/model", "checkpoint-500/optimizer", "checkpoint-1000/model", "checkpoint-1000/optimizer"]
    {
        bench.write(name, &[&[0xff], name.as_bytes()].concat());
    }
    bench.seal(true);
    bench.write("checkpoint-1000/model", &[0xff]);
    bench.touch("checkpoint-500/model");
    let (_, found) = bench.resume();
    assert_eq!(found.torn, ["checkpoint-1000"]);
    let names = ["model", "optimizer"].map(|name| format!("checkpoint-1000/{name}"));
    for name in names {
        let aside = bench.folder.path().join(OWN).join(TORN).join("2").join(&name);
        assert!(aside.exists(), "{name} is quarantined");
        assert_eq!(fs::read(bench.at(&name)).unwrap(), [&[0xff], name.as_bytes()].concat(), "its kept version is back");
    }
}

#[test]
fn the_seal_follows_a_rotation_and_reads_only_what_changed() {
    let mut bench = Bench::new(true);
    let (mut sealer, found) = bench.resume();
    assert_eq!((found, sealer.summary()), (Found::default(), None));
    bench.write("epoch-1", b"one");
    bench.write("epoch-2", b"two!");
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    let expected = Seal { files: 2, bytes: 7, newest: Some("epoch-2".into()) };
    assert_eq!(sealer.summary(), Some(expected));
    assert!(!sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap(), "nothing has changed");

    // A file that is being written is left alone until it rests; its earlier version stays sealed.
    fs::write(bench.at("epoch-2"), b"in the midst of it").unwrap();
    bench.write("epoch-3", b"three");
    fs::remove_file(bench.at("epoch-1")).unwrap();
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    let expected = Seal { files: 2, bytes: 9, newest: Some("epoch-3".into()) };
    assert_eq!(sealer.summary(), Some(expected));

    // The same size and time mean the same content: it is not read again.
    let known = sealer.record.files["epoch-3"].clone();
    sealer.record.files.insert("epoch-3".into(), Sealed { sha256: "kept".into(), ..known });
    sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
    assert_eq!(sealer.record.files["epoch-3"].sha256, "kept");
    let expected = Seal { files: 2, bytes: 23, newest: Some("epoch-2".into()) };
    assert_eq!(sealer.summary(), Some(expected));
}

#[test]
fn a_seal_that_ran_out_of_time_is_not_the_last_word() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    bench.write("new", b"content");
    sealer.finish(&bench.disk(), &at_rest(), &|| false).unwrap();
    assert_eq!(sealer.summary(), None);
    assert_eq!(bench.resume().1, Found { newest: Some("new".into()), ..Found::default() });
    // A seal that was reopened is not the last word either.
    let (mut sealer, _) = bench.resume();
    sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
    sealer.reopen(&bench.disk()).unwrap();
    bench.replace("new", b"written by somebody else");
    assert_eq!(bench.resume().1.torn, [""; 0]);
}

#[test]
fn the_next_attempt_may_change_what_was_sealed_for_good() {
    let mut bench = Bench::new(true);
    bench.write("last.bin", b"epoch 1");
    bench.seal(true);
    // The attempt resumes, trains on, and loses its instance before its first seal.
    bench.resume();
    bench.replace("last.bin", b"epoch 2, whole");
    assert_eq!(bench.resume().1, Found { newest: Some("last.bin".into()), ..Found::default() });
}

#[test]
fn a_broken_seal_seals_nothing() {
    for text in ["", "{", "[]", r#"{"attempt": 1, "final": true, "files": 7}"#] {
        let mut bench = Bench::new(true);
        bench.write("new", b"content");
        fs::write(bench.folder.path().join(OWN).join("seal.json"), text).unwrap();
        assert_eq!(bench.resume().1, Found { newest: Some("new".into()), ..Found::default() }, "{text}");
    }
}

/// A newer runner has written the manifest.
#[test]
fn what_is_not_known_in_a_seal_does_not_cost_it() {
    let unknown = [serde_json::json!("molten"), serde_json::json!({ "molten": [1] })];
    for unknown in unknown {
        let mut bench = Bench::new(true);
        bench.write("model.bin", b"\xffcontent");
        bench.seal(false);
        let file = bench.folder.path().join(OWN).join("seal.json");
        let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        record["files"]["model.bin"]["change"] = unknown.clone();
        record["kept"]["model.bin"]["change"] = unknown.clone();
        record["failures"] = serde_json::json!([{ "name": "model.bin", "replaced": [unknown] }]);
        fs::write(&file, record.to_string()).unwrap();
        let (sealer, _) = bench.resume();
        assert_eq!((sealer.record.files.len(), sealer.record.kept.len(), sealer.record.failures.len()), (1, 1, 0));
        assert_eq!(sealer.record.change("model.bin"), None);
    }
}
