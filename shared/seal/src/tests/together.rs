//! Files that are rewritten in place and make up one checkpoint.

use std::cell::RefCell;
use std::fs;

use super::*;

const FILES: [&str; 3] = ["best.pt", "model.pt", "optimizer.npz"];

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(line: &str) {
    SAID.with_borrow_mut(|said| said.push(line.to_owned()));
}

/// The log lines about versions that may not belong together.
fn doubts() -> Vec<String> {
    let said = SAID.take();
    said.into_iter().filter(|line| line.contains("may belong to another")).collect()
}

fn version(name: &str, number: u8) -> Vec<u8> {
    zip_of(&[name.as_bytes(), &vec![number; 100 * usize::from(number)]].concat())
}

impl Bench {
    fn save_all(&mut self, sealer: &mut Sealer, names: &[&str], number: u8) {
        names.iter().for_each(|name| self.write(name, &version(name, number)));
        assert!(sealer.seal_resting(&self.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    }

    fn versions(&self) -> [Option<u8>; 3] {
        FILES.map(|name| {
            let now = fs::read(self.at(name)).ok()?;
            (1..9).find(|number| version(name, *number) == now)
        })
    }

    /// The versions after the instance is lost during the save `number`, while it writes the file at `place`.
    fn lose(&mut self, number: u8, place: usize) -> [Option<u8>; 3] {
        FILES[..place].iter().for_each(|name| self.write(name, &version(name, number)));
        self.write(FILES[place], &version(FILES[place], number)[..60]);
        self.attempt += 1;
        Sealer::resume(&self.disk(), self.folder.path(), self.attempt, true, note).unwrap();
        self.versions()
    }
}

#[test]
fn files_that_are_rewritten_together_go_back_together() {
    for place in 0..FILES.len() {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        (1..3).for_each(|number| bench.save_all(&mut sealer, &FILES, number));
        // One of them stays unchanged.
        bench.save_all(&mut sealer, &FILES[1..], 3);
        assert_eq!(bench.lose(4, place), [Some(2), Some(3), Some(3)], "in {}", FILES[place]);
        assert_eq!(doubts(), [""; 0]);
        let aside = bench.folder.path().join(OWN).join(TORN).join("2");
        assert!(FILES[..=place].iter().all(|name| aside.join(name).exists()), "nothing is lost");
    }
}

/// The model is sealed, but the instance is lost before the optimizer is. They were saved at different times before, so
/// they may be independent.
#[test]
fn versions_of_different_seals_are_said_to_be() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    for name in FILES {
        bench.save_all(&mut sealer, &[name], 1);
        bench.clock += 60;
    }
    bench.write(FILES[2], &version(FILES[2], 2)[..60]);
    bench.save_all(&mut sealer, &FILES[1..2], 2);
    assert_eq!(bench.lose(2, 2), [Some(1), Some(2), Some(1)]);
    let doubts = doubts();
    assert!(doubts.iter().any(|line| line.starts_with("model.pt ")), "{doubts:?}");
}

#[test]
fn a_rollback_takes_files_back_together() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    bench.save_all(&mut sealer, &FILES, 1);
    FILES.iter().for_each(|name| bench.write(name, &version(name, 2)));
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    assert_eq!(bench.versions(), [Some(2); 3]);
    let end = failure("it cannot be loaded");
    let rollback = sealer.roll_back(&bench.disk(), &end).unwrap().unwrap();
    assert_eq!(rollback.to.as_deref(), Some("its last sealed version"));
    assert_eq!(bench.versions(), [Some(1); 3]);
}

/// The best model is saved now and then, with its score. Only the newest version of each is there.
#[test]
fn a_text_stays_with_the_file_that_it_clearly_belongs_to() {
    for (text, is_left) in [("best_score.json", true), ("best.json", true), ("state.json", false), ("last.json", false)]
    {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.save_all(&mut sealer, &["last.pt"], 1);
        bench.clock += 60;
        bench.write("best.pt", &version("best.pt", 2));
        bench.write(text, b"{\"epoch\": 2}");
        bench.write("last.pt", &version("last.pt", 3)[..60]);
        bench.resume();
        assert!(fs::read(bench.at("last.pt")).unwrap() == version("last.pt", 1));
        assert!(bench.at("best.pt").exists());
        assert_eq!(bench.at(text).exists(), is_left, "{text}");
    }
}
