//! Fetches all objects of a data set, many at once.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use spotsweep_protocol::claim::DataObject;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use crate::archive::Kind;
use crate::blocking::blocking;
use crate::error::DataError;
use crate::listing::Checked;
use crate::part::Part;
use crate::settings::{RANGE_BYTES, Settings};
use crate::site::{Folders, Site};
use crate::source::Objects;
use crate::target::Target;
use crate::unpack::unpack_here;

/// The parts that are ready before there is a connection for them.
const READY: usize = 64;

/// Fetches the objects of the listing into the site. If one fails, the others are given up.
pub(crate) async fn fetch<O: Objects>(
    site: Arc<Site>,
    mut listing: Checked,
    objects: Arc<O>,
    settings: Settings,
) -> Result<(), DataError> {
    let (ready, mut parts) = mpsc::channel(READY);
    let feeding = blocking(move || {
        let mut folders = Folders::below(site.part());
        listing.each(|object, archive| feed(&site, &mut folders, (object, archive), &ready))
    });
    let mut feeding = std::pin::pin!(feeding);
    let (mut is_fed, mut running, mut bytes) = (false, JoinSet::new(), 0);
    let Settings { at_once, bytes_at_once } = settings;
    loop {
        tokio::select! {
            fed = &mut feeding, if !is_fed => {
                fed?;
                is_fed = true;
            }
            Some(done) = running.join_next() => bytes -= done.map_err(broken)??,
            Some(part) = parts.recv(), if running.len() < at_once && bytes < bytes_at_once => {
                let (part, objects): (Part, _) = (part, Arc::clone(&objects));
                let own = part.bytes();
                bytes += own;
                running.spawn(async move { part.run(&*objects).await.map(|()| own) });
            }
            else => return Ok(()),
        }
    }
}

fn broken(error: JoinError) -> DataError {
    DataError::disk("end a request")(io::Error::from(error))
}

/// Makes the folder of an object, and passes on its parts.
fn feed(
    site: &Arc<Site>,
    folders: &mut Folders,
    (object, archive): (DataObject, Option<Kind>),
    ready: &mpsc::Sender<Part>,
) -> Result<ControlFlow<()>, DataError> {
    let names = object.key.rsplit_once('/').map_or("", |(folder, _)| folder).split('/').filter(|name| !name.is_empty());
    let folder = folders.open(site, names.map(OsStr::new)).map_err(DataError::disk("make a folder of the data set"))?;
    let size = object.size;
    let target = Arc::new(Target::new(site, folder, object, archive, size.div_ceil(RANGE_BYTES).max(1)));
    // There is nothing to ask for in an empty object, and a large one is written by many at once.
    if size == 0 || size > RANGE_BYTES {
        target.open()?;
    }
    if let (0, Some(kind)) = (size, archive) {
        unpack_here(&target, kind)?;
    }
    let mut start = 0;
    while start < size {
        let range = start..size.min(start + RANGE_BYTES);
        start = range.end;
        // It fails if the fetch has failed or is given up.
        if ready.blocking_send(Part::new(Arc::clone(&target), range)).is_err() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
