//! Gets one object, or one range of a large one.

use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use md5::{Digest as _, Md5};
use rustix::io::{pwritev, retry_on_intr};
use tokio::time::sleep;

use crate::blocking::blocking;
use crate::error::DataError;
use crate::source::{Answer, Body as _, Check, GetError, Objects, Wanted};
use crate::target::Target;

const WRITE: &str = "write a file of the data set";
/// What is gathered in memory before it is written: a blocking thread for each piece of an answer would cost more
/// than the writing.
const GATHERED_BYTES: usize = 512 << 10;
/// The most pieces that are written at once. Linux takes 1 024 (`IOV_MAX`).
const GATHERED_PIECES: usize = 512;

/// A range of an object on its way to the disk.
#[derive(Debug)]
pub(crate) struct Part {
    target: Arc<Target>,
    range: Range<u64>,
    /// How much of the range is written.
    written: Written,
}

/// What a blocking thread works on.
#[derive(Debug, Default)]
struct Written {
    /// The position in the object of the next byte that is to be written.
    at: u64,
    /// What has arrived and is not written yet, as it came. It is not copied.
    pieces: Vec<Bytes>,
    /// Of all bytes of the object up to `at`, if its MD5 is to be compared.
    hash: Option<Md5>,
}

impl Written {
    fn write(&mut self, target: &Target) -> Result<(), DataError> {
        let file = target.open()?;
        if let Some(hash) = &mut self.hash {
            self.pieces.iter().for_each(|piece| hash.update(piece));
        }
        let mut slices: Vec<IoSlice<'_>> = self.pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut slices = &mut slices[..];
        while !slices.is_empty() {
            let written = retry_on_intr(|| pwritev(file, slices, self.at)).map_err(io::Error::from);
            let written =
                written.and_then(|count| if count > 0 { Ok(count) } else { Err(ErrorKind::WriteZero.into()) });
            let count = written.map_err(DataError::disk(WRITE))?;
            self.at += count as u64;
            IoSlice::advance_slices(&mut slices, count);
        }
        self.pieces.clear();
        Ok(())
    }

    /// Keeps a piece. Returns whether it is time to write.
    fn gather(&mut self, piece: Bytes) -> bool {
        // Linux writes nothing of an empty piece, which would look like a full disk.
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
        self.pieces.len() >= GATHERED_PIECES || self.pieces.iter().map(Bytes::len).sum::<usize>() >= GATHERED_BYTES
    }
}

impl Part {
    pub(crate) fn new(target: Arc<Target>, range: Range<u64>) -> Self {
        let written = Written { at: range.start, ..Written::default() };
        Self { target, range, written }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Gets the range. What breaks off is repeated from where it broke off. When the last range of an object is there,
    /// the object is checked, and unpacked if it is an archive.
    pub(crate) async fn run<O: Objects>(mut self, objects: &O) -> Result<(), DataError> {
        let check = self.get(objects).await?;
        let target = self.target;
        if !target.has_all() {
            return Ok(());
        }
        let size = target.object.size;
        if check == Check::Md5 && target.md5().is_some() {
            let checked = Arc::clone(&target);
            match blocking(move || checked.compare_file()).await {
                Err(DataError::Damaged { .. }) => {
                    target.site.meter.take_back(size);
                    Self::new(Arc::clone(&target), 0..size).get(objects).await?;
                }
                checked => checked?,
            }
        }
        crate::unpack::unpack(target).await
    }

    /// Gets the range, and returns how its object is still to be checked.
    async fn get<O: Objects>(&mut self, objects: &O) -> Result<Check, DataError> {
        let mut pauses = self.target.site.pace.pauses.into_iter();
        loop {
            let failed = match self.pull(objects).await {
                Ok(check) => match self.written.hash.take().map(|hash| self.target.compare(hash)) {
                    None => return Ok(check),
                    Some(Ok(())) => return Ok(Check::Nothing),
                    Some(Err(damaged)) => {
                        self.restart();
                        damaged
                    }
                },
                Err(broken @ DataError::Broken { .. }) => broken,
                Err(error) => return Err(error),
            };
            let Some(pause) = pauses.next() else { return Err(failed) };
            sleep(pause).await;
        }
    }

    /// Makes one request for what is missing, and writes all that arrives.
    async fn pull<O: Objects>(&mut self, objects: &O) -> Result<Check, DataError> {
        let target = Arc::clone(&self.target);
        let (key, end) = (&target.object.key, self.range.end);
        let missing = self.written.at..end;
        let range = (missing != (0..target.object.size)).then(|| missing.clone());
        let wanted = Wanted { key, etag: &target.object.etag, range };
        let answer = ask(objects, &wanted, target.site.pace.pauses).await;
        let Answer { mut body, check } = answer.map_err(|error| DataError::get(key, error))?;
        let is_whole = missing == (0..target.object.size);
        if is_whole && check == Check::Md5 && target.md5().is_some() {
            self.written.hash = Some(Md5::new());
        }
        let mut left = missing.end - missing.start;
        while let Some(piece) = body.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => {
                    self.flush().await?;
                    if left == 0 {
                        // All is there, but its checksum is wrong.
                        self.restart();
                    }
                    return Err(DataError::get(key, error));
                }
            };
            left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
                let why = format!("the answer for bytes {missing:?} has more than these");
                DataError::Damaged { key: key.clone(), why }
            })?;
            target.site.meter.arrive(piece.len());
            if self.written.gather(piece) {
                self.flush().await?;
            }
        }
        self.flush().await?;
        if left == 0 {
            return Ok(check);
        }
        Err(DataError::Broken { key: key.clone(), message: format!("the answer ended {left} bytes early") })
    }

    fn restart(&mut self) {
        self.target.site.meter.take_back(self.written.at - self.range.start);
        (self.written.at, self.written.hash) = (self.range.start, None);
    }

    async fn flush(&mut self) -> Result<(), DataError> {
        let mut written = std::mem::take(&mut self.written);
        let target = Arc::clone(&self.target);
        self.written = blocking(move || written.write(&target).map(|()| written)).await?;
        Ok(())
    }
}

/// Repeats a request for as long as the service is busy. Many instances may fetch at once, so that is no failure; the
/// fetch ends if nothing of its set arrives any more.
async fn ask<O: Objects>(objects: &O, wanted: &Wanted<'_>, pauses: [Duration; 3]) -> Result<Answer<O::Body>, GetError> {
    let [.., longest] = pauses;
    let mut pauses = pauses.into_iter();
    loop {
        match objects.get(wanted).await {
            Err(GetError::Busy(_)) => sleep(pauses.next().unwrap_or(longest)).await,
            answered => return answered,
        }
    }
}
