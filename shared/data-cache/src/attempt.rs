//! The steps of one runner to one data set, as [`crate::next`] decides them.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use spotsweep_protocol::claim::DataSet;

use crate::disk::{Idle, Place, evict};
use crate::error::DataError;
use crate::folder::{Noted, SetFolder, open_lock, try_lock};
use crate::listing::Checked;
use crate::next::{Content, Disk, Hold, Step, View, next};

const LOOK: &str = "look at the folder of the data set";
const CHANGE: &str = "change the folder of the data set";

/// What a runner does and has until it can use the set.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) folder: Arc<SetFolder>,
    pub(crate) place: Place,
    of_bytes: u64,
    hold: Hold,
    is_refused: bool,
    listing: Option<Checked>,
    /// The lock of the disk's room.
    room: Option<File>,
    idle: Idle,
}

/// What needs more than the disk.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Wait, and look again. How far another runner is, if it fetches the set.
    Wait(Option<Noted>),
    /// Get the listing.
    Listing,
    /// Fetch the objects of the listing.
    Fetch(Checked),
    /// The set can be used.
    Use,
}

impl Attempt {
    pub(crate) fn new(place: Place, set: &DataSet) -> Result<Self, DataError> {
        let folder = Arc::new(SetFolder::make(&place.root, &place.id).map_err(DataError::disk(CHANGE))?);
        let (hold, of_bytes) = (Hold::Nothing, set.listing.bytes);
        Ok(Self { folder, place, of_bytes, hold, is_refused: false, listing: None, room: None, idle: Idle::new() })
    }

    pub(crate) fn know(&mut self, listing: Checked) {
        self.listing = Some(listing);
    }

    /// Takes steps until one needs more than the disk.
    pub(crate) fn advance(&mut self) -> Result<Turn, DataError> {
        let failed = DataError::disk(CHANGE);
        loop {
            match next(&self.look()?) {
                Step::TakeShared => self.take(Hold::Shared)?,
                Step::TakeExclusive => self.take(Hold::Exclusive)?,
                Step::LockRoom => self.lock_room()?,
                Step::Wait => return Ok(Turn::Wait(self.folder.progress())),
                Step::Discard => self.folder.clear().map_err(&failed)?,
                Step::ReadListing => return Ok(Turn::Listing),
                Step::Evict(id) => evict(std::mem::take(&mut self.idle), &id).map_err(&failed)?,
                Step::Fetch => {
                    let Some(listing) = self.listing.take() else { continue };
                    let to_come = listing.needed;
                    self.folder.note(Noted { bytes: 0, of_bytes: self.of_bytes, to_come }).map_err(&failed)?;
                    (self.room, self.idle) = (None, Idle::new());
                    return Ok(Turn::Fetch(listing));
                }
                Step::Use => {
                    self.folder.mark_used().map_err(&failed)?;
                    return Ok(Turn::Use);
                }
                Step::DoesNotFit(shortage) => return Err(DataError::DoesNotFit(shortage)),
            }
        }
    }

    fn look(&mut self) -> Result<View, DataError> {
        let mut disk: Option<Disk> = None;
        if self.room.is_some() {
            // The locks go before they are tried again.
            self.idle.clear();
            let (found, idle) = self.place.look().map_err(DataError::disk(LOOK))?;
            (disk, self.idle) = (Some(found), idle);
        }
        let content: Content = self.folder.content(&self.place.boot);
        let needed = self.listing.as_ref().map(|listing| listing.needed);
        let is_refused = std::mem::take(&mut self.is_refused);
        Ok(View { hold: self.hold, is_refused, content, needed, disk })
    }

    fn take(&mut self, wanted: Hold) -> Result<(), DataError> {
        self.hold = self.folder.take(wanted).map_err(DataError::disk("lock the folder of the data set"))?;
        self.is_refused = self.hold != wanted;
        Ok(())
    }

    fn lock_room(&mut self) -> Result<(), DataError> {
        let failed = DataError::disk("lock the cache of data sets");
        let lock = open_lock(&self.place.root).map_err(&failed)?;
        self.is_refused = !try_lock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(&failed)?;
        self.room = (!self.is_refused).then_some(lock);
        Ok(())
    }
}
