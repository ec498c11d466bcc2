//! The disks of instances with their data sets: what lies there, and which attempts have locked it and use it. What a
//! runner does about a data set is in `agent/data.rs`.

use std::collections::{BTreeMap, BTreeSet};

use spotsweep_data_cache::next::{Content, Disk, Hold, Other};
use spotsweep_world::AttemptKey;

use super::{DataSets, Mixture, Scheduled, Simulation};

/// The disks, by instance. A disk goes with its instance, and no later instance has the same id.
#[derive(Debug, Default)]
pub(super) struct Disks {
    size: u64,
    of: BTreeMap<String, DataDisk>,
}

/// The disk of one instance.
#[derive(Debug, Default)]
pub(super) struct DataDisk {
    size: u64,
    /// The number of the instance's boot.
    boot: u32,
    /// The attempt that has the lock of the room.
    room: Option<AttemptKey>,
    sets: BTreeMap<String, Set>,
}

/// A data set on a disk.
#[derive(Debug, Default)]
struct Set {
    /// Bytes that are on the disk.
    bytes: u64,
    /// Bytes that its last fetch has not written.
    to_come: u64,
    /// The bytes of the whole set.
    needed: u64,
    /// The boot in which it was marked as complete, if it is.
    complete: Option<u32>,
    /// When it was last used, in nanoseconds since 1970.
    last_use: i64,
    shared: BTreeSet<AttemptKey>,
    exclusive: Option<AttemptKey>,
    /// The attempts that fetch it.
    fetching: BTreeSet<AttemptKey>,
    /// The attempts that rely on it.
    users: BTreeSet<AttemptKey>,
}

impl Disks {
    /// Disks of this size in bytes.
    pub(super) fn of_size(size: u64) -> Self {
        Self { size, of: BTreeMap::new() }
    }

    /// The disk of an instance.
    pub(super) fn on(&mut self, instance: &str) -> &mut DataDisk {
        let size = self.size;
        self.of.entry(instance.to_owned()).or_insert_with(|| DataDisk { size, ..DataDisk::default() })
    }

    /// The runner of an attempt has ended, or has no use for its data sets.
    pub(super) fn release(&mut self, instance: &str, key: &AttemptKey, now_ns: i64) {
        if let Some(disk) = self.of.get_mut(instance) {
            disk.release(key, now_ns);
        }
    }
}

impl DataDisk {
    /// The instance boots again.
    pub(super) fn reboot(&mut self) {
        self.boot += 1;
    }

    /// What the folder of a set has. A set that was completed before the last boot is trusted only with a bug injected.
    pub(super) fn content(&self, id: &str, trusts_boots: bool) -> Content {
        let Some(set) = self.sets.get(id) else { return Content::Nothing };
        match set.complete {
            Some(boot) if boot == self.boot || trusts_boots => Content::Complete,
            None if set.bytes == 0 && set.to_come == 0 => Content::Nothing,
            Some(_) | None => Content::Leftovers,
        }
    }

    /// Takes a lock on a set, if no other attempt has one that excludes it.
    pub(super) fn take(&mut self, id: &str, key: &AttemptKey, wanted: Hold) -> bool {
        let set = self.set(id);
        let is_free = set.exclusive.as_ref().is_none_or(|holder| holder == key);
        let is_alone = set.shared.iter().all(|holder| holder == key);
        match wanted {
            Hold::Shared if is_free => set.shared.insert(key.clone()),
            Hold::Exclusive if is_free && is_alone => set.exclusive.replace(key.clone()).is_none(),
            Hold::Nothing | Hold::Shared | Hold::Exclusive => false,
        }
    }

    /// Gives up the locks of an attempt on a set.
    pub(super) fn give_up(&mut self, id: &str, key: &AttemptKey) {
        let set = self.set(id);
        set.shared.remove(key);
        set.exclusive.take_if(|holder| holder == key);
    }

    /// Takes the lock of the room, if it is free.
    pub(super) fn lock_room(&mut self, key: &AttemptKey) -> bool {
        self.room.get_or_insert_with(|| key.clone()) == key
    }

    /// Gives up the lock of the room.
    pub(super) fn unlock_room(&mut self, key: &AttemptKey) {
        self.room.take_if(|holder| holder == key);
    }

    /// The disk, as the driver shows it to `next`.
    pub(super) fn seen(&self, own: &str) -> Disk {
        let other = |(id, set): (&String, &Set)| {
            let is_complete = match self.content(id, false) {
                Content::Nothing => return None,
                Content::Leftovers => false,
                Content::Complete => true,
            };
            let is_in_use = set.exclusive.is_some() || !set.shared.is_empty();
            let to_come = if is_in_use && !is_complete { set.to_come } else { 0 };
            let (id, bytes, last_use) = (id.clone(), set.bytes, set.last_use);
            Some(Other { id, bytes, to_come, last_use, is_complete, is_in_use })
        };
        let others = self.sets.iter().filter(|(id, _)| *id != own).filter_map(other).collect();
        Disk { size: self.size, free: self.size.saturating_sub(self.written()), others }
    }

    fn written(&self) -> u64 {
        self.sets.values().map(|set| set.bytes).sum()
    }

    fn set(&mut self, id: &str) -> &mut Set {
        self.sets.entry(id.to_owned()).or_default()
    }

    /// Reserves bytes for a set and begins to fetch it. Returns whether another attempt fetches it.
    pub(super) fn begin_fetch(&mut self, id: &str, key: &AttemptKey, needed: u64) -> bool {
        self.unlock_room(key);
        let set = self.set(id);
        (set.needed, set.to_come) = (needed, needed);
        set.fetching.insert(key.clone());
        set.fetching.len() > 1
    }

    /// Writes bytes of a set. Returns whether that is more than the disk has room for.
    pub(super) fn write(&mut self, id: &str, bytes: u64) -> bool {
        let set = self.set(id);
        set.bytes += bytes;
        set.to_come = set.to_come.saturating_sub(bytes);
        self.written() > self.size
    }

    /// Marks a set as complete.
    pub(super) fn conclude(&mut self, id: &str, key: &AttemptKey) {
        let boot = self.boot;
        let set = self.set(id);
        (set.complete, set.to_come) = (Some(boot), 0);
        set.fetching.remove(key);
    }

    /// Removes the next part of a set: the mark first, and then all else. Returns whether something is left.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let set = self.set(id);
        if set.complete.take().is_none() {
            (set.bytes, set.to_come) = (0, 0);
        }
        set.bytes > 0
    }

    /// The bytes of a set that are on the disk.
    pub(super) fn bytes(&self, id: &str) -> u64 {
        self.sets.get(id).map_or(0, |set| set.bytes)
    }

    /// From now on the attempt relies on a set.
    pub(super) fn begin_use(&mut self, id: &str, key: &AttemptKey, now_ns: i64) {
        let set = self.set(id);
        set.last_use = now_ns;
        set.users.insert(key.clone());
    }

    /// An attempt that relies on a set.
    pub(super) fn user(&self, id: &str) -> Option<&AttemptKey> {
        self.sets.get(id)?.users.first()
    }

    /// Why an attempt must not read a set.
    pub(super) fn unreadable(&self, id: &str, key: &AttemptKey) -> Option<&'static str> {
        let Some(set) = self.sets.get(id) else { return Some("is not there") };
        if set.complete.is_none() || set.bytes != set.needed {
            return Some("is not complete");
        }
        if set.complete != Some(self.boot) {
            return Some("was fetched before the last boot");
        }
        (!set.shared.contains(key)).then_some("is not locked by it")
    }

    fn release(&mut self, key: &AttemptKey, now_ns: i64) {
        self.unlock_room(key);
        for set in self.sets.values_mut() {
            set.shared.remove(key);
            set.exclusive.take_if(|holder| holder == key);
            set.fetching.remove(key);
            if set.users.remove(key) {
                set.last_use = now_ns;
            }
        }
    }
}

impl Simulation {
    /// Puts the data sets of a mixture into the bucket, and schedules the sweep that reads others.
    pub(super) fn give_data(&mut self, mixture: &Mixture) {
        let Some(data) = mixture.data else { return };
        DataSets::put(&self.harness);
        (self.data, self.disks) = (mixture.data, Disks::of_size(data.disk));
        // Two trials share an instance with GPUs, too.
        let gpus = if mixture.gpus { ", resources: {gpus: 1}" } else { "" };
        if let Some((file, later)) = data.beside(&format!("{}{gpus}", self.stalled())) {
            self.sweeps += 1;
            self.at(later, Scheduled::Drop(file));
        }
        if let Some(later) = mixture.chaos.data.changed_after {
            self.at(later, Scheduled::ChangeData);
        }
    }
}
