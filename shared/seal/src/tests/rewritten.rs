//! Checkpoints of several files that each save rewrites under their names, which may have a number.

use std::collections::BTreeMap;
use std::thread;

use super::*;

/// The name of a part of the checkpoint.
type Layout = fn(part: usize) -> String;

const NAMES: [&str; 5] = ["model", "optim", "ema", "scheduler", "scaler"];
const LAYOUTS: [Layout; 4] = [
    |part| format!("model-rank-{part}.pt"),
    |part| format!("rank{part}/model.pt"),
    |part| format!("fold3/{}.pt", NAMES[part]),
    |part| format!("{}.pt", NAMES[part]),
];
/// The first layouts have names that differ in a number only.
const NUMBERED: usize = 2;
/// The numbers of parts, by layout.
const PARTS: [usize; 4] = [4, 2, 2, 3];

const NOTE: &str = "meta.json";

/// What the runner has done before the last save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing is sealed.
    Unsealed,
    /// The saves are sealed.
    Sealed,
    /// The first save is sealed.
    SealedOnce,
    /// The first save is sealed, and so is what the last one has written when it hangs.
    SealedOnceAndInHang,
    /// The saves are sealed, and each part of the last one when it was written.
    SealedMeanwhile,
    /// The saves are sealed, and so is what the last one has written when it hangs.
    SealedInHang,
    /// The saves are sealed, and the kept version of this part is damaged.
    Damaged(usize),
}

/// How the last save has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// A part is cut off, and those after it are not begun.
    InTurn,
    /// A part is cut off, and all others are written.
    AtOnce,
    /// A part is not begun, and all before it are written.
    Between,
}

impl Bench {
    /// The time in nanoseconds, so many milliseconds after that of the last write.
    fn now_ns(&self, milliseconds: i64) -> i64 {
        (i64::try_from(self.clock).unwrap() * 1000 + milliseconds) * 1_000_000
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    layout: usize,
    parts: usize,
    /// The part at which the last save has ended.
    at: usize,
    save: u8,
    before: Before,
    cut: Cut,
    has_note: bool,
    /// Whether the runner has stopped the training within the save and sealed what it left.
    is_stopped: bool,
}

impl Case {
    fn path(&self, part: usize) -> String {
        LAYOUTS[self.layout](part)
    }

    fn is_sealed_once(&self) -> bool {
        matches!(self.before, Before::SealedOnce | Before::SealedOnceAndInHang)
    }

    fn note(&self) -> String {
        Path::new(&self.path(0)).with_file_name(NOTE).to_str().unwrap().to_owned()
    }

    fn content(part: usize, save: u8) -> Vec<u8> {
        zip_of(&[&[part as u8], &vec![save; 100][..]].concat())
    }

    fn write(&self, bench: &mut Bench, part: usize, save: u8) {
        bench.write(&self.path(part), &Self::content(part, save));
    }

    fn write_note(&self, bench: &mut Bench, save: u8) {
        if self.has_note {
            bench.write("latest", b"model");
            bench.write(&self.note(), format!("{{\"save\": {save}}}").as_bytes());
        }
    }

    /// The saves that have written what the training finds, by path.
    fn found(&self, bench: &Bench) -> BTreeMap<String, Option<u8>> {
        let saves = || 1..=self.save;
        let parts = (0..self.parts).filter_map(|part| {
            let now = fs::read(bench.at(&self.path(part))).ok()?;
            Some((self.path(part), saves().find(|save| Self::content(part, *save) == now)))
        });
        let note = fs::read_to_string(bench.at(&self.note())).ok();
        let note = note.map(|note| (self.note(), saves().find(|save| note.contains(&save.to_string()))));
        parts.chain(note).collect()
    }

    /// All attempts until the training finds all parts or none. Returns what it finds then.
    fn happen(&self) -> BTreeMap<String, Option<u8>> {
        let mut bench = Bench::new(false);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        for save in 1..self.save {
            (0..self.parts).for_each(|part| self.write(&mut bench, part, save));
            self.write_note(&mut bench, save);
            if self.before != Before::Unsealed && (save == 1 || !self.is_sealed_once()) {
                sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
            }
            bench.clock += 600;
        }
        if let Before::Damaged(part) = self.before {
            let kept = bench.folder.path().join(OWN).join("kept").join(self.path(part));
            let _not_kept = fs::write(kept, b"damaged");
        }
        self.end_within_save(&mut bench, &mut sealer);
        for attempt in 0..8 {
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            let found = self.found(&bench);
            let mut parts = found.clone();
            parts.remove(&self.note());
            let parts = parts.len();
            // A script may load the parts that it finds, but it needs files of different names.
            let counts = |path: &String| parts == self.parts || (self.layout < NUMBERED && *path != self.note());
            let saves: BTreeSet<_> = found.iter().filter(|(path, _)| counts(path)).map(|(_, save)| save).collect();
            assert!(saves.len() < 2 && !saves.contains(&None), "{self:?}: attempt {attempt} finds {found:?}");
            if parts == 0 || parts == self.parts {
                return found;
            }
            let is_known = self.save == 3 && self.layout < NUMBERED && matches!(self.before, Before::Damaged(_));
            assert!(!is_known, "{self:?}: attempt {attempt} finds {parts} parts");
            let rollback = sealer.roll_back(&bench.disk(), &failure("a part is missing")).unwrap();
            sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
            if rollback.is_none() {
                return found;
            }
        }
        unreachable!("at most four rollbacks")
    }

    fn end_within_save(&self, bench: &mut Bench, sealer: &mut Sealer) {
        let is_whole = |part: usize| part < self.at || (self.cut == Cut::AtOnce && part != self.at);
        let is_cut = |part: usize| part == self.at && self.cut != Cut::Between;
        let mut open = BTreeSet::new();
        for part in 0..self.parts {
            if is_cut(part) {
                let content = Self::content(part, self.save);
                bench.write(&self.path(part), &content[..content.len() - 30]);
                open.insert(bench.at(&self.path(part)));
            } else if is_whole(part) {
                self.write(bench, part, self.save);
            }
            if self.before == Before::SealedMeanwhile {
                let now_ns = bench.now_ns(500);
                sealer.seal_resting(&bench.disk(), QUIET, now_ns, &|| open.clone()).unwrap();
            }
        }
        if matches!(self.before, Before::SealedInHang | Before::SealedOnceAndInHang) {
            bench.clock += 60;
            let now_ns = bench.now_ns(0);
            sealer.seal_resting(&bench.disk(), QUIET, now_ns, &|| open.clone()).unwrap();
        }
        if self.is_stopped {
            let now_ns = bench.now_ns(500);
            sealer.finish(&bench.disk(), &AtEnd::new(open, now_ns, true), &IN_TIME).unwrap();
        }
    }
}

/// The ends of a last save that the runner can tell from a complete one. Nothing tells files of different names that are
/// saved now and then from those of a save that was cut between two. Without a seal, nothing tells which files were
/// saved before.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let places = |layout: usize| (0..PARTS[layout]).map(move |at| (layout, PARTS[layout], at));
    for (layout, parts, at) in (0..LAYOUTS.len()).flat_map(places) {
        let sealed = [Before::Sealed, Before::SealedMeanwhile, Before::Damaged(at), Before::Damaged((at + 1) % parts)];
        let mut add = |save, before, cut| {
            for (has_note, is_stopped) in [(false, false), (true, true)] {
                cases.push(Case { layout, parts, at, save, before, cut, has_note, is_stopped });
            }
        };
        for save in 1..=3 {
            add(save, Before::Unsealed, if save == 1 { Cut::InTurn } else { Cut::AtOnce });
            // The saves before have shown what is rewritten together.
            (save == 3 && layout < NUMBERED).then(|| add(save, Before::SealedInHang, Cut::Between));
            (save == 3 && layout < NUMBERED).then(|| add(save, Before::SealedOnce, Cut::Between));
            (save == 3 && layout < NUMBERED).then(|| add(save, Before::SealedOnceAndInHang, Cut::Between));
            (save == 3).then(|| add(save, Before::SealedOnce, Cut::InTurn));
            (save == 3).then(|| add(save, Before::SealedOnce, Cut::AtOnce));
            for before in sealed.into_iter().filter(|_| save > 1) {
                add(save, before, Cut::InTurn);
                add(save, before, Cut::AtOnce);
                (layout < NUMBERED).then(|| add(save, before, Cut::Between));
            }
        }
    }
    cases
}

#[test]
fn a_training_finds_parts_of_one_save() {
    let check = |case: &Case| {
        let found = case.happen();
        let is_lost = case.save == 1 || matches!(case.before, Before::Unsealed | Before::Damaged(_));
        let parts = (0..case.parts).filter(|part| found.contains_key(&case.path(*part))).count();
        assert!(is_lost || parts == case.parts, "{case:?}: {found:?}");
    };
    let cases = cases();
    thread::scope(|scope| {
        for layout in cases.chunk_by(|one, other| one.layout == other.layout) {
            scope.spawn(|| layout.iter().for_each(check));
        }
    });
}

/// An attempt ends after its second save, of which no seal or only a doubtful one shows that it is complete. The next
/// attempt goes on from there and ends within its save.
#[test]
fn a_version_that_an_attempt_began_with_is_sealed_with_all_parts_or_not_at_all() {
    let parts = (0..NUMBERED).flat_map(|layout| (0..PARTS[layout]).map(move |part| (layout, part)));
    for (is_doubtful, (layout, first)) in
        [false, true].into_iter().flat_map(|one| parts.clone().map(move |it| (one, it)))
    {
        let mut bench = Bench::new(false);
        let all = || (0..PARTS[layout]).map(LAYOUTS[layout]);
        let content = |save| if is_doubtful { vec![0, save] } else { zip_of(&[save]) };
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        all().for_each(|path| bench.write(&path, &content(1)));
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        bench.clock += 600;
        all().for_each(|path| bench.write(&path, &content(2)));
        if is_doubtful {
            let now_ns = bench.now_ns(500);
            sealer.finish(&bench.disk(), &AtEnd::new(BTreeSet::new(), now_ns, true), &IN_TIME).unwrap();
        }
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        bench.clock += 600;
        bench.write(&LAYOUTS[layout](first), b"");
        let open = || BTreeSet::from([bench.at(&LAYOUTS[layout](first))]);
        let now_ns = bench.now_ns(500);
        sealer.seal_resting(&bench.disk(), QUIET, now_ns, &open).unwrap();
        all().for_each(|path| bench.write(&path, b""));
        bench.resume();
        let found: Vec<_> = all().map(|path| fs::read(bench.at(&path)).unwrap_or_default()).collect();
        let is_of = |save| found.iter().all(|found| *found == content(save));
        assert!(is_of(1) || is_of(2), "{is_doubtful}, {}: {found:?}", LAYOUTS[layout](first));
    }
}

/// No format shows that a part is cut off, and no version was sealed before the instance was lost.
#[test]
fn a_shorter_part_is_kept_with_all_parts_or_not_at_all() {
    let content = |save: u8| [vec![0xff], vec![save; 1500]].concat();
    let parts = (0..NUMBERED).flat_map(|layout| (0..PARTS[layout]).map(move |part| (layout, part)));
    for (layout, cut) in parts {
        let mut bench = Bench::new(false);
        for save in 1..=2 {
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            bench.clock += 600;
            for part in 0..PARTS[layout] {
                let bytes = if save == 2 && part == cut { 1000 } else { 1501 };
                bench.write(&LAYOUTS[layout](part), &content(save)[..bytes]);
            }
        }
        bench.resume();
        let found: Vec<_> = (0..PARTS[layout]).map(|part| fs::read(bench.at(&LAYOUTS[layout](part))).ok()).collect();
        let found: Vec<_> = found.into_iter().map(|found| found.map(|found| (found.len(), found[1]))).collect();
        // Without a number, the first version counts only once it is sealed.
        let expected = (layout == 0).then_some((1501, 1));
        assert!(found.iter().all(|found| *found == expected), "{}: {found:?}", LAYOUTS[layout](cut));
    }
}

/// The best model is saved now and then, together with the last one, and a table of words once.
#[test]
fn files_of_different_ages_do_not_hold_each_other_back() {
    let version = |name: &str, epoch: u8| zip_of(&[name.as_bytes(), &[epoch]].concat());
    for is_stopped in [false, true] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let all = ["words.pt", "best.pt", "last.pt"];
        for epoch in 1..=4 {
            let names = &all[[0, 1, 2, 1][usize::from(epoch) - 1]..];
            names.iter().for_each(|name| bench.write(name, &version(name, epoch)));
            // A later epoch shows that the best model is not part of each save, and so does time.
            let now_ns = bench.now_ns(6000);
            assert!(sealer.seal_resting(&bench.disk(), QUIET, now_ns, &BTreeSet::new).unwrap(), "{epoch}");
            bench.clock += 600;
        }
        let kept: Vec<_> =
            all.iter().map(|name| fs::read(bench.folder.path().join(OWN).join("kept").join(name)).unwrap()).collect();
        assert!(kept == [version(all[0], 1), version(all[1], 4), version(all[2], 4)]);
        bench.write("last.pt", &version("last.pt", 5));
        if is_stopped {
            let now_ns = bench.now_ns(500);
            sealer.finish(&bench.disk(), &AtEnd::new(BTreeSet::new(), now_ns, true), &IN_TIME).unwrap();
        }
        let (_, found) = bench.resume();
        assert_eq!((found.newest.as_deref(), found.torn.len()), (Some("last.pt"), 0), "{is_stopped}");
        let left: Vec<_> = all.iter().map(|name| fs::read(bench.at(name)).unwrap()).collect();
        assert!(left == [version(all[0], 1), version(all[1], 4), version(all[2], 5)]);
    }
}

/// Each save takes a second of every three, so nothing rests. The model is saved without its optimizer from some time
/// on.
#[test]
fn a_file_that_never_rests_is_sealed_without_one_that_is_not_rewritten_any_more() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let all = ["model.pt", "optim.pt"];
    all.iter().for_each(|name| bench.write(name, &zip_of(name.as_bytes())));
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
    for round in 1..=2 {
        bench.clock += 30;
        bench.write("model.pt", &zip_of(&[round]));
        let now_ns = bench.now_ns(100);
        let is_sealed = sealer.seal_resting(&bench.disk(), QUIET, now_ns, &BTreeSet::new).unwrap();
        assert_eq!(is_sealed, round == 2, "it was rewritten {round} times");
    }
}

/// Two places for the best models, whose first versions one epoch has saved.
#[test]
fn files_that_differ_in_a_number_are_sealed_although_they_are_saved_independently() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    for (round, names) in
        [&["best-0.pt", "best-1.pt"][..], &["best-0.pt", "best-1.pt"], &["best-0.pt"]].iter().enumerate()
    {
        for name in *names {
            bench.write(name, &zip_of(&[round as u8, name.as_bytes()[5]]));
            bench.clock += if round == 0 { 0 } else { 10 };
        }
        let now_ns = bench.now_ns(6000);
        let is_sealed = sealer.seal_resting(&bench.disk(), QUIET, now_ns, &BTreeSet::new).unwrap();
        // In the second round they may be parts of two saves, of which the newer one is cut.
        assert_eq!(is_sealed, round != 1);
        bench.clock += 30;
    }
    for (path, sealed) in &sealer.record.files {
        let modified = fs::metadata(bench.at(path)).unwrap().modified().unwrap();
        let modified_ns = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        assert_eq!((sealed.stamp.modified_ns as u128, sealed.is_part), (modified_ns, false), "{path}");
    }
}
