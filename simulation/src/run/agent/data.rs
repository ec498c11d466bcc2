//! How a runner gets its data sets, between the mount of its workspace and the start of the command. What it does next
//! about a set, the runner's own code decides (`shared/data-cache`); the order of the steps is that of its driver.

mod acquiring;

use std::time::Duration;

use spotsweep_attempt::{Event, INTERRUPTED};
use spotsweep_data_cache::next::{Content, Hold, Step, View, next};
use spotsweep_protocol::claim::{DataObject, DataSet, Fetch, Reply, Request, UNAVAILABLE, listing_key};

pub(super) use self::acquiring::Acquiring;
use self::acquiring::{FETCH_EVERY, Work};
use super::{Agent, Next};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;
use crate::run::data::DataDisk;
use crate::run::training::nanoseconds;
use crate::run::watch::Seen;

/// The longest times of a step, of a look at a lock that another attempt holds, of an object, of a slow object, of a
/// pause, and of a look whether there is room. The real runner looks five times a second at a lock, and every ten
/// seconds for room.
const STEP: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(8);
const OBJECT: Duration = Duration::from_secs(25);
const SLOW_OBJECT: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_secs(60);
const ROOM_WAIT: Duration = Duration::from_secs(60);

/// What comes after a step.
enum Turn {
    After(Duration),
    /// The set can be used.
    Done,
    /// The attempt leaves, and another one may get the set.
    Breaks,
    /// No attempt can get the set.
    Fails,
}

impl Simulation {
    /// The runner has mounted its workspace, and turns to its data sets.
    pub(super) fn acquire_data(&mut self, agent: &mut Agent) -> Result<Next, String> {
        if agent.data.is_empty() {
            return self.set_up(agent);
        }
        agent.acquiring = Some(Box::new(Acquiring::new(self.harness.now)));
        Ok(Next::After(Duration::ZERO))
    }

    /// Takes the next step towards its data sets.
    pub(super) fn acquire(&mut self, agent: &mut Agent, mut acquiring: Acquiring) -> Result<Next, String> {
        if let Some(event) = self.report_fetch(agent, &mut acquiring) {
            return self.on(agent, event);
        }
        let Some(set) = agent.data.get(acquiring.set).cloned() else {
            agent.acquiring = None;
            self.report_data(agent, &acquiring);
            return self.set_up(agent);
        };
        match self.turn(agent, &set, &mut acquiring)? {
            Turn::After(wait) => {
                let pause = self.pause(&acquiring.work);
                agent.acquiring = Some(Box::new(acquiring));
                Ok(Next::After(wait + pause))
            }
            Turn::Done => {
                acquiring.go_on(&set, self.harness.now);
                agent.acquiring = Some(Box::new(acquiring));
                Ok(Next::After(self.some(STEP)))
            }
            Turn::Breaks => self.fails(agent, (INTERRUPTED, true)),
            Turn::Fails => self.on(agent, Event::SetupFailed { code: UNAVAILABLE }),
        }
    }

    fn turn(&mut self, agent: &Agent, set: &DataSet, acquiring: &mut Acquiring) -> Result<Turn, String> {
        let (id, key, bug) = (set.id(), &agent.container.key, self.harness.cloud.injected_bug());
        let disk = self.disks.on(&agent.container.instance);
        match std::mem::replace(&mut acquiring.work, Work::Deciding) {
            Work::Deciding => return Ok(self.decide(agent, set, acquiring)),
            Work::Taking(wanted) => {
                let skips_lock = bug == Some(InjectedBug::FetchUnlocked) && wanted == Hold::Exclusive;
                let has = disk.take(&id, key, wanted) || skips_lock;
                (acquiring.hold, acquiring.is_refused) = (if has { wanted } else { Hold::Nothing }, !has);
                let looks_once = bug == Some(InjectedBug::SkipSecondLook) && acquiring.hold == Hold::Shared;
                acquiring.mistaken = looks_once.then_some(acquiring.seen);
            }
            Work::Listing => acquiring.needed = Some(set.listing.bytes),
            Work::Removing(removed) => {
                let (user, is_left) = (disk.user(&removed).cloned(), disk.remove(&removed));
                if is_left {
                    acquiring.work = Work::Removing(removed);
                } else if removed != id {
                    disk.give_up(&removed, key);
                }
                if let Some(user) = user {
                    let what = format!("{key:?} removes a data set that {user:?} uses");
                    self.watch.is_wrong(Seen::Disturbed, what);
                }
            }
            Work::Fetching(objects) => return self.fetch(agent, (set, objects), acquiring),
        }
        Ok(Turn::After(self.some(STEP)))
    }

    /// Decides the next step about the set, and begins it.
    fn decide(&mut self, agent: &Agent, set: &DataSet, acquiring: &mut Acquiring) -> Turn {
        let (id, key, now, bug) = (set.id(), &agent.container.key, self.harness.now, self.harness.cloud.injected_bug());
        let disk = self.disks.on(&agent.container.instance);
        let view = View {
            hold: acquiring.hold,
            is_refused: std::mem::take(&mut acquiring.is_refused),
            content: acquiring.mistaken.take().unwrap_or_else(|| content(disk, &id, bug)),
            needed: acquiring.needed,
            disk: acquiring.has_room.then(|| shown(disk, &id, bug)),
        };
        acquiring.seen = view.content;
        let mut wait = None;
        match next(&view) {
            Step::TakeShared => acquiring.work = begin_taking(disk, (&id, agent), Hold::Shared),
            Step::TakeExclusive => acquiring.work = begin_taking(disk, (&id, agent), Hold::Exclusive),
            Step::LockRoom => {
                acquiring.has_room = disk.lock_room(key);
                acquiring.is_refused = !acquiring.has_room;
            }
            Step::Wait => {
                acquiring.note(disk.bytes(&id).min(set.listing.bytes), set, now);
                wait = Some(WAIT);
            }
            Step::Discard => acquiring.work = Work::Removing(id),
            Step::ReadListing => acquiring.work = Work::Listing,
            Step::Evict(other) => {
                disk.take(&other, key, Hold::Exclusive);
                acquiring.work = Work::Removing(other);
            }
            Step::Fetch => {
                let needed = acquiring.needed.take().unwrap_or_default();
                acquiring.has_room = false;
                let is_second = disk.begin_fetch(&id, key, needed);
                acquiring.work = Work::Fetching(self.listed(agent, set));
                if is_second {
                    let what = format!("{key:?} fetches a data set that another attempt fetches");
                    self.watch.is_wrong(Seen::FetchedTwice, what);
                }
                wait = Some(OBJECT);
            }
            Step::Use => {
                disk.begin_use(&id, key, nanoseconds(now));
                return Turn::Done;
            }
            Step::DoesNotFit(shortage) => {
                let own: u64 = agent.data.iter().take(acquiring.set).map(|set| disk.bytes(&set.id())).sum();
                self.note(agent, |_| format!("has no room for a data set: {shortage:?}, own {own}"));
                match shortage.is_caused_by_others(own) {
                    true if acquiring.has_waited(now) => return Turn::Breaks,
                    true => self.wait_for_room(agent, set, acquiring),
                    false => return Turn::Fails,
                }
                wait = Some(ROOM_WAIT);
            }
        }
        Turn::After(self.some(wait.unwrap_or(STEP)))
    }

    /// Gives up all locks on the way to a set until there may be room.
    fn wait_for_room(&mut self, agent: &Agent, set: &DataSet, acquiring: &mut Acquiring) {
        let disk = self.disks.on(&agent.container.instance);
        disk.give_up(&set.id(), &agent.container.key);
        disk.unlock_room(&agent.container.key);
        (acquiring.hold, acquiring.has_room) = (Hold::Nothing, false);
        acquiring.note(0, set, self.harness.now);
    }

    /// The next object arrives, or all are there and the set is marked as complete.
    fn fetch(
        &mut self,
        agent: &Agent,
        (set, mut objects): (&DataSet, Vec<DataObject>),
        acquiring: &mut Acquiring,
    ) -> Result<Turn, String> {
        let (id, key, now) = (set.id(), &agent.container.key, self.harness.now);
        if objects.is_empty() {
            self.disks.on(&agent.container.instance).conclude(&id, key);
            acquiring.note(set.listing.bytes, set, now);
            return Ok(Turn::After(self.some(STEP)));
        }
        if self.rng.occurs(self.chaos.data.broken) {
            return Ok(Turn::Breaks);
        }
        let object = objects.remove(0);
        if self.harness.cloud.etag(&set.key(&object)).as_ref() != Some(&object.etag) {
            self.watch.lacks_data(&agent.container.trial);
            return Ok(Turn::Fails);
        }
        let disk = self.disks.on(&agent.container.instance);
        let (is_overfull, user) = (disk.write(&id, object.size), disk.user(&id).cloned());
        acquiring.note(disk.bytes(&id), set, now);
        acquiring.work = Work::Fetching(objects);
        if is_overfull {
            self.watch.is_wrong(Seen::Overfull, format!("{key:?} fills the disk of {}", agent.container.instance));
        }
        if let Some(user) = user {
            self.watch.is_wrong(Seen::Disturbed, format!("{key:?} writes a data set that {user:?} uses"));
        }
        let is_slow = self.rng.occurs(self.chaos.data.slow);
        Ok(Turn::After(self.some(if is_slow { SLOW_OBJECT } else { OBJECT })))
    }

    /// The objects of a set's listing.
    fn listed(&self, agent: &Agent, set: &DataSet) -> Vec<DataObject> {
        let key = listing_key(agent.container.trial.sweep.as_str(), &set.name);
        let text = self.harness.cloud.get(&key).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Reports how far the sets are, if it is time and there is news. Returns the answer if another attempt has the
    /// trial.
    fn report_fetch(&mut self, agent: &mut Agent, acquiring: &mut Acquiring) -> Option<Event> {
        if self.harness.now < acquiring.reports_at {
            return None;
        }
        acquiring.reports_at = self.harness.now + FETCH_EVERY;
        let fetch = acquiring.now.filter(|_| std::mem::take(&mut acquiring.is_news))?;
        match self.ask_about(agent, fetch)? {
            Reply::Refused { reason } => Some(Event::Fenced(reason)),
            _taken => None,
        }
    }

    /// Reports once that all sets are there, if any had to be fetched. The runner does not look at the answer.
    fn report_data(&mut self, agent: &mut Agent, acquiring: &Acquiring) {
        if acquiring.before.of_bytes > 0 {
            self.ask_about(agent, acquiring.before);
        }
        self.watch.has_data(&agent.container.trial, agent.container.attempt);
    }

    fn ask_about(&mut self, agent: &mut Agent, fetch: Fetch) -> Option<Reply> {
        self.watch.fetches += 1;
        if !fetch.is_under_way() {
            self.watch.has_data(&agent.container.trial, agent.container.attempt);
        }
        let reply = self.ask(agent, Request::Fetching { fetch })?;
        if fetch.is_under_way() && matches!(reply, Reply::Accepted {}) {
            self.watch.fetches_data(&agent.container.trial, agent.container.attempt);
        }
        Some(reply)
    }

    /// The runner gives up its data sets.
    pub(in crate::run) fn give_up_data(&mut self, agent: &mut Agent) {
        agent.acquiring = None;
        let Agent { container, .. } = agent;
        self.disks.release(&container.instance, &container.key, nanoseconds(self.harness.now));
    }

    /// The command starts and reads the sets.
    pub(super) fn begin_reading(&mut self, agent: &Agent) {
        if self.harness.cloud.injected_bug() == Some(InjectedBug::DropSharedLocks) {
            let disk = self.disks.on(&agent.container.instance);
            agent.data.iter().for_each(|set| disk.give_up(&set.id(), &agent.container.key));
        }
        self.check_data(agent);
    }

    /// Records a violation if a training reads a set that it must not read.
    pub(super) fn check_data(&mut self, agent: &Agent) {
        for set in &agent.data {
            let disk = self.disks.on(&agent.container.instance);
            if let Some(why) = disk.unreadable(&set.id(), &agent.container.key) {
                let (trial, attempt, name) = (&agent.container.trial, agent.container.attempt, &set.name);
                let what = format!("{trial}: attempt {attempt} trains on the data set {name}, which {why}");
                self.watch.is_wrong(Seen::Unready, what);
            }
        }
    }

    /// A part of this time.
    fn some(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.rng.share())
    }

    /// The pause before a step, if the runner is stopped for a while. It is so more often where others may come in
    /// between.
    fn pause(&mut self, before: &Work) -> Duration {
        let times = if matches!(before, Work::Taking(_)) { 2.0 } else { 0.5 };
        if self.rng.occurs(self.chaos.data.paused * times) { self.some(PAUSE) } else { Duration::ZERO }
    }
}

/// flock(2) gives up one lock before it takes another one, so other attempts can act in between.
fn begin_taking(disk: &mut DataDisk, (id, agent): (&str, &Agent), wanted: Hold) -> Work {
    disk.give_up(id, &agent.container.key);
    Work::Taking(wanted)
}

fn content(disk: &DataDisk, id: &str, bug: Option<InjectedBug>) -> Content {
    match disk.content(id, bug == Some(InjectedBug::TrustEarlierBoot)) {
        Content::Leftovers if bug == Some(InjectedBug::TrustLeftovers) => Content::Complete,
        content => content,
    }
}

fn shown(disk: &DataDisk, id: &str, bug: Option<InjectedBug>) -> spotsweep_data_cache::next::Disk {
    let mut shown = disk.seen(id);
    for other in &mut shown.others {
        match bug {
            Some(InjectedBug::EvictUsed) => other.is_in_use = false,
            Some(InjectedBug::OverlookReserved) => other.to_come = 0,
            _other => {}
        }
    }
    shown
}
