//! Several runners on one instance, one step at a time, any of which may be killed at any step.

use proptest::prelude::*;

use crate::next::{Content, Disk, Hold, Other, Room, Shortage, Step, View, margin, next, room};

const SIZE: u64 = 1_000;
const RUNNERS: usize = 4;
/// The bytes of each set.
const SETS: [u64; 3] = [300, 450, 600];

#[derive(Debug, Clone, Default)]
struct Set {
    /// The bytes on the disk, and which of them are the set's own content.
    bytes: u64,
    /// Whether it is marked as complete, since the last boot.
    is_marked: bool,
    last_use: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Deciding,
    Fetching,
    /// Removes the set, of which the mark goes first.
    Removing(usize),
    Using,
}

#[derive(Debug, Clone)]
struct Runner {
    set: usize,
    hold: Hold,
    is_refused: bool,
    is_listed: bool,
    has_room: bool,
    reserved: u64,
    work: Work,
    shortage: Option<Shortage>,
}

#[derive(Debug, Clone)]
struct Instance {
    sets: Vec<Set>,
    /// Absent if none runs.
    runners: Vec<Option<Runner>>,
    clock: i64,
}

#[derive(Debug, Clone)]
enum Event {
    Start(usize, usize),
    Step(usize),
    Kill(usize),
    Reboot,
}

impl Instance {
    fn new() -> Self {
        Self { sets: vec![Set::default(); SETS.len()], runners: vec![None; RUNNERS], clock: 0 }
    }

    fn others(&self, me: usize) -> impl Iterator<Item = &Runner> {
        self.runners.iter().enumerate().filter(move |(at, _)| *at != me).filter_map(|(_, runner)| runner.as_ref())
    }

    fn holder(&self, set: usize, me: usize) -> Hold {
        let holds = self.others(me).filter(|runner| runner.set == set).map(|runner| runner.hold);
        // An evicted set is held exclusively, too.
        let removed = self.others(me).any(|runner| runner.work == Work::Removing(set));
        holds.fold(if removed { Hold::Exclusive } else { Hold::Nothing }, |worst, hold| match (worst, hold) {
            (Hold::Exclusive, _) | (_, Hold::Exclusive) => Hold::Exclusive,
            (Hold::Shared, _) | (_, Hold::Shared) => Hold::Shared,
            (Hold::Nothing, Hold::Nothing) => Hold::Nothing,
        })
    }

    fn free(&self) -> u64 {
        SIZE.checked_sub(self.sets.iter().map(|set| set.bytes).sum()).expect("the disk is overfull")
    }

    fn disk(&self, me: usize, own: usize) -> Disk {
        let other = |(at, set): (usize, &Set)| {
            let fetching = self.others(me).find(|runner| runner.set == at && runner.work == Work::Fetching);
            Other {
                id: at.to_string(),
                bytes: set.bytes,
                to_come: fetching.map_or(0, |runner| runner.reserved),
                last_use: set.last_use,
                is_complete: set.is_marked,
                is_in_use: self.holder(at, me) != Hold::Nothing,
            }
        };
        let others = self.sets.iter().enumerate().filter(|(at, _)| *at != own).map(other).collect();
        Disk { size: SIZE, free: self.free(), others }
    }

    fn step(&mut self, me: usize) {
        let Some(mut runner) = self.runners[me].clone() else { return };
        self.clock += 1;
        let own = runner.set;
        match runner.work {
            Work::Deciding => self.decide(me, &mut runner),
            Work::Fetching => {
                let part = runner.reserved.min(100);
                runner.reserved -= part;
                self.sets[own].bytes += part;
                if runner.reserved == 0 {
                    self.sets[own].is_marked = true;
                    runner.work = Work::Deciding;
                }
            }
            Work::Removing(set) => {
                assert_eq!(self.holder(set, me), Hold::Nothing, "a set is removed that others use");
                if self.sets[set].is_marked {
                    self.sets[set].is_marked = false;
                } else {
                    self.sets[set].bytes = self.sets[set].bytes.saturating_sub(250);
                }
                if self.sets[set].bytes == 0 {
                    runner.work = Work::Deciding;
                }
            }
            Work::Using => return,
        }
        self.runners[me] = Some(runner);
        self.check();
    }

    fn decide(&mut self, me: usize, runner: &mut Runner) {
        let set = &self.sets[runner.set];
        let content = match (set.is_marked, set.bytes) {
            (true, _) => Content::Complete,
            (false, 0) => Content::Nothing,
            (false, _) => Content::Leftovers,
        };
        let view = View {
            hold: runner.hold,
            is_refused: std::mem::take(&mut runner.is_refused),
            content,
            needed: runner.is_listed.then_some(SETS[runner.set]),
            disk: runner.has_room.then(|| self.disk(me, runner.set)),
        };
        let held = self.holder(runner.set, me);
        match next(&view) {
            Step::TakeShared | Step::TakeExclusive if held == Hold::Exclusive => self.refuse(runner),
            Step::TakeExclusive if held == Hold::Shared => self.refuse(runner),
            Step::TakeShared => runner.hold = Hold::Shared,
            Step::TakeExclusive => runner.hold = Hold::Exclusive,
            Step::LockRoom if self.others(me).any(|other| other.has_room) => runner.is_refused = true,
            Step::LockRoom => runner.has_room = true,
            Step::Wait => {}
            Step::Discard => runner.work = Work::Removing(runner.set),
            Step::ReadListing => runner.is_listed = true,
            Step::Evict(id) => runner.work = Work::Removing(id.parse().unwrap()),
            Step::Fetch => {
                assert_eq!(self.sets[runner.set].bytes, 0, "a part of an earlier fetch is still there");
                (runner.reserved, runner.has_room, runner.work) = (SETS[runner.set], false, Work::Fetching);
            }
            Step::Use => {
                self.sets[runner.set].last_use = self.clock;
                runner.work = Work::Using;
            }
            Step::DoesNotFit(shortage) => {
                assert!(shortage.free + shortage.evictable < shortage.needed);
                runner.shortage = Some(shortage);
            }
        }
    }

    /// A lock that cannot be converted is lost.
    fn refuse(&self, runner: &mut Runner) {
        (runner.hold, runner.is_refused) = (Hold::Nothing, true);
    }

    fn check(&self) {
        let mut to_come = 0;
        for (at, runner) in self.runners.iter().enumerate() {
            let Some(runner) = runner else { continue };
            match runner.work {
                Work::Using => {
                    let set = &self.sets[runner.set];
                    assert!(set.is_marked && set.bytes == SETS[runner.set], "an incomplete set is used: {self:?}");
                    assert_eq!(runner.hold, Hold::Shared);
                }
                Work::Fetching => {
                    to_come += runner.reserved;
                    assert_eq!(self.holder(runner.set, at), Hold::Nothing, "a set is fetched twice at once");
                }
                Work::Deciding | Work::Removing(_) => {}
            }
        }
        assert!(self.free() >= to_come + margin(SIZE), "the disk gets too full: {self:?}");
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::Start(at, set) => {
                let new = Runner {
                    set,
                    hold: Hold::Nothing,
                    is_refused: false,
                    is_listed: false,
                    has_room: false,
                    reserved: 0,
                    work: Work::Deciding,
                    shortage: None,
                };
                self.runners[at].get_or_insert(new);
            }
            Event::Step(at) if self.runners[at].as_ref().is_some_and(|runner| runner.shortage.is_some()) => {
                self.runners[at] = None;
            }
            Event::Step(at) => self.step(at),
            Event::Kill(at) => self.runners[at] = None,
            Event::Reboot => {
                self.runners.fill(None);
                self.sets.iter_mut().for_each(|set| set.is_marked = false);
            }
        }
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..RUNNERS, 0..SETS.len()).prop_map(|(at, set)| Event::Start(at, set)),
        60 => (0..RUNNERS).prop_map(Event::Step),
        2 => (0..RUNNERS).prop_map(Event::Kill),
        1 => Just(Event::Reboot),
    ];
    prop::collection::vec(event, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// [`Instance::check`] holds after each step. Whoever is left in the end uses its set, or does not find room for
    /// it, whatever the others were doing when they were killed.
    #[test]
    fn runners_never_disturb_each_other(events in events(), left in 0..RUNNERS, set in 0..SETS.len()) {
        let mut instance = Instance::new();
        events.iter().for_each(|event| instance.apply(event));
        let users: Vec<usize> = (0..RUNNERS)
            .filter(|at| *at != left && instance.runners[*at].as_ref().is_some_and(|runner| runner.work == Work::Using))
            .collect();
        for at in (0..RUNNERS).filter(|at| *at != left && !users.contains(at)) {
            instance.apply(&Event::Kill(at));
        }
        if instance.runners[left].as_ref().is_some_and(|runner| runner.shortage.is_some()) {
            instance.apply(&Event::Kill(left));
        }
        instance.apply(&Event::Start(left, set));
        for _ in 0..60 {
            instance.step(left);
        }
        let runner = instance.runners[left].as_ref().unwrap();
        let mut used: Vec<usize> = users.iter().map(|at| instance.runners[*at].as_ref().unwrap().set).collect();
        used.sort_unstable();
        used.dedup();
        let taken: u64 = used.iter().map(|set| SETS[*set]).sum();
        let fits = used.contains(&runner.set) || SIZE - margin(SIZE) >= taken + SETS[runner.set];
        prop_assert_eq!((runner.work == Work::Using, runner.shortage.is_none()), (fits, fits), "{:?}", instance);
    }

    #[test]
    fn room_is_made_with_as_little_as_possible(
        sets in prop::collection::vec((0..200_u64, 0..9_i64, any::<bool>(), any::<bool>()), 0..8),
        free in 0..400_u64,
        needed in 0..800_u64,
    ) {
        let other = |(at, (bytes, last_use, is_complete, is_in_use)): (usize, (u64, i64, bool, bool))| {
            Other { id: at.to_string(), bytes, to_come: 0, last_use, is_complete, is_in_use }
        };
        let mut disk = Disk { size: 0, free, others: sets.into_iter().enumerate().map(other).collect() };
        let idle: u64 = disk.others.iter().filter(|other| !other.is_in_use).map(|other| other.bytes).sum();
        let mut gone = Vec::new();
        let is_enough = loop {
            match room(&disk, needed) {
                Room::Enough => break true,
                Room::Lacking(_) => break false,
                Room::Evict(id) => {
                    let at = disk.others.iter().position(|other| other.id == id).unwrap();
                    let other = disk.others.remove(at);
                    prop_assert!(!other.is_in_use);
                    disk.free += other.bytes;
                    gone.push(other.bytes);
                }
            }
        };
        prop_assert_eq!(is_enough, free + idle >= needed);
        prop_assert!(is_enough || gone.is_empty());
        prop_assert!(gone.iter().all(|bytes| disk.free - bytes < needed), "{:?} of {:?}", gone, disk);
    }
}
