//! What a runner does next about a data set, without the clock, the disk and the network.
//!
//! A set has one lock. Who reads the set holds it shared, who changes its folder holds it exclusively. The disk has one
//! lock for its room. It is held while room is counted, made and reserved, so no two runners count on the same bytes.

use std::time::Duration;

/// The lock on the data set that the runner holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// None.
    Nothing,
    /// One that others can hold as well.
    Shared,
    /// One that no other can hold.
    Exclusive,
}

/// What the data set's folder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Nothing,
    /// Something that cannot be trusted: a part of the set, or a set that was fetched before the instance's last boot.
    Leftovers,
    /// The whole set.
    Complete,
}

/// What a runner knows when it decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The lock on the set that the runner holds.
    pub hold: Hold,
    /// Whether the last step was to take a lock that another runner holds. It counts for one decision.
    pub is_refused: bool,
    /// What the set's folder has. Without a lock it may change at any time.
    pub content: Content,
    /// The bytes that the set takes up on the disk; absent until its listing is read.
    pub needed: Option<u64>,
    /// The disk; absent unless the runner holds the lock of its room.
    pub disk: Option<Disk>,
}

/// A disk with its data sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its size in bytes.
    pub size: u64,
    /// The bytes that can still be written.
    pub free: u64,
    /// The data sets on it, without the one that the decision is about.
    pub others: Vec<Other>,
}

/// Another data set on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Its name.
    pub id: String,
    /// The bytes that it takes up.
    pub bytes: u64,
    /// The bytes that the runner that fetches it will still write.
    pub to_come: u64,
    /// When it was last used, in nanoseconds since 1970.
    pub last_use: i64,
    /// Whether it can be used. Leftovers cannot.
    pub is_complete: bool,
    /// Whether another runner holds its lock.
    pub is_in_use: bool,
}

/// What the runner does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Try to take the shared lock, without waiting. Another lock on the set is given up.
    TakeShared,
    /// Try to take the exclusive lock, without waiting. Another lock on the set is given up.
    TakeExclusive,
    /// Try to take the lock of the disk's room, without waiting.
    LockRoom,
    /// Wait for a moment, and look again.
    Wait,
    /// Remove what the set's folder has.
    Discard,
    /// Read the listing.
    ReadListing,
    /// Remove this other set.
    Evict(String),
    /// Reserve the bytes, give up the lock of the room, and fetch the set.
    Fetch,
    /// Read the set, and keep the shared lock as long as that takes.
    Use,
    /// The set cannot be fetched.
    DoesNotFit(Shortage),
}

/// Why a data set does not fit. All figures are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// What the set takes up.
    pub needed: u64,
    /// What is free, without the margin and without what others have reserved.
    pub free: u64,
    /// What sets that are not in use take up.
    pub evictable: u64,
    /// What sets that are in use take up, with what is still to come.
    pub in_use: u64,
}

impl Shortage {
    /// Whether there would be room if no other runner used a set. `own` is what this runner's own sets take up.
    pub fn is_caused_by_others(&self, own: u64) -> bool {
        let of_others = self.in_use.saturating_sub(own);
        self.needed <= self.free.saturating_add(self.evictable).saturating_add(of_others)
    }
}

/// How to get room for so many bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// There is enough.
    Enough,
    /// Remove this set first.
    Evict(String),
    /// There will not be enough.
    Lacking(Shortage),
}

/// How long a runner waits for room that other runners' sets take up. Two runners may wait for each other's room, so
/// one has to leave.
pub const ROOM_PATIENCE: Duration = Duration::from_secs(600);

/// The largest margin in bytes.
const MOST_MARGIN: u64 = 1 << 30;
/// The margin's part of a small disk.
const MARGIN_PART: u64 = 20;

/// Returns the bytes of a disk that data sets leave free. Containers, logs and the caches of packages are on the same
/// disk, and a file system that is almost full gets slow.
pub fn margin(size: u64) -> u64 {
    MOST_MARGIN.min(size / MARGIN_PART)
}

/// Returns the next step. A lock that is shared is never relied on before the content is looked at again, because
/// another runner can get in between when a lock is converted: <https://man7.org/linux/man-pages/man2/flock.2.html>.
pub fn next(view: &View) -> Step {
    if view.is_refused {
        return Step::Wait;
    }
    match (view.hold, view.content) {
        (Hold::Shared, Content::Complete) => Step::Use,
        (Hold::Nothing | Hold::Exclusive, Content::Complete) => Step::TakeShared,
        (Hold::Nothing | Hold::Shared, Content::Nothing | Content::Leftovers) => Step::TakeExclusive,
        (Hold::Exclusive, Content::Leftovers) => Step::Discard,
        (Hold::Exclusive, Content::Nothing) => match (view.needed, &view.disk) {
            (None, _) => Step::ReadListing,
            (Some(_), None) => Step::LockRoom,
            (Some(needed), Some(disk)) => match room(disk, needed) {
                Room::Enough => Step::Fetch,
                Room::Evict(id) => Step::Evict(id),
                Room::Lacking(shortage) => Step::DoesNotFit(shortage),
            },
        },
    }
}

/// Returns how to get room for so many bytes. Leftovers go first, then the sets that were not used for longest. None
/// goes that is in use, that need not go, or in vain.
pub fn room(disk: &Disk, needed: u64) -> Room {
    let (in_use, idle): (Vec<&Other>, Vec<&Other>) = disk.others.iter().partition(|other| other.is_in_use);
    let to_come = in_use.iter().map(|other| other.to_come).fold(0, u64::saturating_add);
    let free = disk.free.saturating_sub(margin(disk.size)).saturating_sub(to_come);
    let Some(lacking) = needed.checked_sub(free).filter(|lacking| *lacking > 0) else { return Room::Enough };
    let evictable = sum(&idle);
    if evictable < lacking {
        let in_use = sum(&in_use).saturating_add(to_come);
        return Room::Lacking(Shortage { needed, free, evictable, in_use });
    }
    let mut oldest_first = idle;
    oldest_first.sort_by_key(|other| (other.is_complete, other.last_use, &other.id));
    let mut going: Vec<&Other> = Vec::new();
    for other in oldest_first {
        if sum(&going) >= lacking {
            break;
        }
        going.push(other);
    }
    // One that was used later may be so large that an earlier one can stay.
    for at in (0..going.len()).rev() {
        if sum(&going) - going[at].bytes >= lacking {
            going.remove(at);
        }
    }
    going.first().map_or(Room::Enough, |first| Room::Evict(first.id.clone()))
}

fn sum(sets: &[&Other]) -> u64 {
    sets.iter().map(|other| other.bytes).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
