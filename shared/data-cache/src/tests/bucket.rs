//! A bucket in memory, of which answers can fail.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::ops::Range;
use std::sync::Mutex;

use bytes::Bytes;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use spotsweep_protocol::claim::{DataObject, DataSet, Listing};
use spotsweep_protocol::words::hexadecimal;

use crate::source::{Answer, Body, Check, GetError, Objects, Wanted};

/// How one answer fails.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The request itself fails.
    Refused(GetError),
    /// After so many bytes there is an error.
    Broken(usize),
    /// After so many bytes the answer ends.
    Cut(usize),
    /// After so many bytes nothing comes any more.
    Stalled(usize),
    /// This byte of the answer is another one.
    Flipped(usize),
    /// A byte follows that was not asked for.
    Long,
}

#[derive(Debug, Default)]
pub(crate) struct Bucket {
    objects: BTreeMap<String, Bytes>,
    /// The lines of the listing.
    lines: Vec<DataObject>,
    pub(crate) is_kms: bool,
    pub(crate) has_checksums: bool,
    /// The faults of the next answers for a key.
    pub(crate) faults: Mutex<Vec<(String, Fault)>>,
    /// The requests for bytes of objects.
    pub(crate) requests: Mutex<Vec<(String, Option<Range<u64>>)>>,
    pub(crate) listings: Mutex<u64>,
}

impl Bucket {
    pub(crate) fn of(objects: BTreeMap<String, Vec<u8>>) -> Self {
        let line = |(key, content): (&String, &Vec<u8>)| {
            let etag = format!("\"{}\"", hexadecimal(Md5::digest(content)));
            DataObject { key: key.clone(), size: content.len() as u64, etag }
        };
        let lines = objects.iter().map(line).collect();
        let objects = objects.into_iter().map(|(key, content)| (key, content.into())).collect();
        Self { objects, lines, ..Self::default() }
    }

    pub(crate) fn one(key: &str, content: Vec<u8>) -> Self {
        Self::of(BTreeMap::from([(key.to_owned(), content)]))
    }

    pub(crate) fn failing(self, key: &str, faults: &[Fault]) -> Self {
        self.faults.lock().unwrap().extend(faults.iter().map(|fault| (key.to_owned(), fault.clone())));
        self
    }

    /// Changes the listing, and not the objects.
    pub(crate) fn listed(mut self, change: impl FnOnce(&mut Vec<DataObject>)) -> Self {
        change(&mut self.lines);
        self
    }

    fn text(&self) -> Vec<u8> {
        let line = |object| serde_json::to_string(object).unwrap() + "\n";
        self.lines.iter().map(line).collect::<String>().into_bytes()
    }

    pub(crate) fn set(&self, unpack: bool) -> DataSet {
        DataSet {
            name: "set".to_owned(),
            bucket: "bucket".to_owned(),
            prefix: "prefix/".to_owned(),
            unpack,
            listing: Listing {
                sha256: hexadecimal(Sha256::digest(self.text())),
                objects: self.lines.len() as u64,
                bytes: self.lines.iter().map(|object| object.size).sum(),
            },
        }
    }

    /// The requests for a key, in their order.
    pub(crate) fn asked(&self, key: &str) -> Vec<Option<Range<u64>>> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|(of, _)| of == key).map(|(_, range)| range.clone()).collect()
    }
}

impl Objects for Bucket {
    type Body = Pieces;

    async fn listing(&self) -> Result<File, GetError> {
        *self.listings.lock().unwrap() += 1;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&self.text()).unwrap();
        file.rewind().unwrap();
        Ok(file)
    }

    async fn get(&self, wanted: &Wanted<'_>) -> Result<Answer<Pieces>, GetError> {
        self.requests.lock().unwrap().push((wanted.key.to_owned(), wanted.range.clone()));
        let content = self.objects.get(wanted.key).ok_or(GetError::Gone)?;
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            let next = faults.iter().position(|(key, _)| key == wanted.key);
            next.map(|at| faults.remove(at).1)
        };
        let range = wanted.range.clone().unwrap_or(0..content.len() as u64);
        let mut content = content.slice(range.start as usize..range.end as usize);
        let mut end = End::Whole;
        match fault {
            None => {}
            Some(Fault::Refused(error)) => return Err(error),
            Some(Fault::Broken(at)) => (content, end) = (content.slice(..at), End::Error),
            Some(Fault::Cut(at)) => content = content.slice(..at),
            Some(Fault::Stalled(at)) => (content, end) = (content.slice(..at), End::Never),
            Some(Fault::Flipped(at)) => {
                let mut changed = content.to_vec();
                changed[at] ^= 1;
                content = changed.into();
            }
            Some(Fault::Long) => content = [&content[..], b"!"].concat().into(),
        }
        let check = match (self.has_checksums && wanted.range.is_none(), self.is_kms) {
            (true, _) => Check::Source,
            (false, true) => Check::Nothing,
            (false, false) => Check::Md5,
        };
        Ok(Answer { body: Pieces { content, end }, check })
    }
}

#[derive(Debug)]
enum End {
    Whole,
    Error,
    Never,
}

#[derive(Debug)]
pub(crate) struct Pieces {
    content: Bytes,
    end: End,
}

impl Body for Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, GetError>> {
        let piece = self.content.split_to(self.content.len().min(100_003));
        if !piece.is_empty() {
            return Some(Ok(piece));
        }
        match self.end {
            End::Whole => None,
            End::Error => Some(Err(GetError::Broken("reset".to_owned()))),
            End::Never => std::future::pending().await,
        }
    }
}
