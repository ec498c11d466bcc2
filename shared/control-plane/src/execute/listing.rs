//! Lists the objects of data sets, and stores the listings that pin them.

mod parts;

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};
use spotsweep_protocol::claim::{DataObject, DataSet, KeyCheck, Listing, listing_key};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::words::hexadecimal;
use spotsweep_sweep_file::DataSource;

use self::parts::Part;
use super::multipart::Writer;
use crate::calls::{CallError, ListObjects, ListedObject, Place, S3};
use crate::outcome::DataProblem;

/// The most objects of one part: its pages come one after the other, and the function has a minute.
const MOST_IN_PART: usize = 200_000;
/// S3's classes of objects that must be restored before they can be read
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>).
const ARCHIVED: [&str; 2] = ["GLACIER", "DEEP_ARCHIVE"];

/// Data sets by name, or what is wrong with some of them.
pub(super) type Pinned = Result<Vec<DataSet>, Vec<(String, DataProblem)>>;

/// Lists the objects of each data set, and puts the listings into the deployment's bucket.
pub(super) async fn pin(
    s3: &impl S3,
    (sweep, bucket): (&SweepId, &str),
    sources: &BTreeMap<String, DataSource>,
) -> Result<Pinned, CallError> {
    let (mut sets, mut problems) = (Vec::new(), Vec::new());
    for (name, source) in sources {
        let key = listing_key(&sweep.to_string(), name);
        let place = Place { bucket: bucket.to_owned(), key, content_type: "application/x-ndjson" };
        match list(s3, source, Some(Writer::new(s3, place))).await {
            Ok((prefix, listing)) => sets.push(DataSet {
                name: name.clone(),
                bucket: source.bucket.clone(),
                prefix,
                unpack: source.unpack,
                listing,
            }),
            Err(Unlisted::Problem(problem)) => problems.push((name.clone(), problem)),
            Err(Unlisted::Call(error)) => return Err(error),
        }
    }
    Ok(if problems.is_empty() { Ok(sets) } else { Err(problems) })
}

/// Lists the objects of a data set, and returns what they are in figures.
///
/// # Errors
/// If S3 gives no clear answer. What is wrong with the data set is the inner error.
pub async fn measure(s3: &impl S3, source: &DataSource) -> Result<Result<Listing, DataProblem>, CallError> {
    match list(s3, source, None).await {
        Ok((_, listing)) => Ok(Ok(listing)),
        Err(Unlisted::Problem(problem)) => Ok(Err(problem)),
        Err(Unlisted::Call(error)) => Err(error),
    }
}

/// Why there is no listing.
enum Unlisted {
    Problem(DataProblem),
    Call(CallError),
}

impl From<CallError> for Unlisted {
    /// Codes: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.
    fn from(error: CallError) -> Self {
        match error.refusal() {
            Some("NoSuchBucket" | "InvalidBucketName") => Self::Problem(DataProblem::NoBucket),
            Some("AccessDenied" | "AllAccessDisabled") => Self::Problem(DataProblem::Denied),
            Some("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
                Self::Problem(DataProblem::OtherRegion)
            }
            _ => Self::Call(error),
        }
    }
}

/// Lists one data set, and writes the listing if it is to be kept. Returns the prefix of its keys, and what the listing has.
async fn list<C: S3>(
    s3: &C,
    source: &DataSource,
    writer: Option<Writer<'_, C>>,
) -> Result<(String, Listing), Unlisted> {
    let mut lines = Lines::new(writer);
    if let Some(one) = single(s3, source).await? {
        let key = one.key.clone();
        let folder = key.rfind('/').map_or("", |slash| &key[..=slash]);
        lines.add(Listed::of(folder, [one])?).await?;
        return Ok((key, lines.finish().await?));
    }
    let is_prefix = source.key.is_empty() || source.key.ends_with('/');
    let prefix = if is_prefix { source.key.clone() } else { format!("{}/", source.key) };
    let parts = parts::of(s3, &source.bucket, &prefix).await?;
    let listed = parts.into_iter().map(|part| whole(s3, &source.bucket, part, &prefix));
    let mut listed = stream::iter(listed).buffered(parts::AT_ONCE);
    while let Some(part) = listed.try_next().await? {
        lines.add(part).await?;
    }
    drop(listed);
    Ok((prefix, lines.finish().await?))
}

/// Returns the object that the source names, if it names one. Of all keys that begin with it, its own is the first.
async fn single(s3: &impl S3, source: &DataSource) -> Result<Option<ListedObject>, Unlisted> {
    if source.key.is_empty() || source.key.ends_with('/') {
        return Ok(None);
    }
    let prefix = source.key.clone();
    let page = s3.list_objects(ListObjects { prefix, most: Some(1), ..ListObjects::of(&source.bucket) }).await?;
    Ok(page.objects.into_iter().next().filter(|object| object.key == source.key))
}

/// Lists all objects of a part.
async fn whole(s3: &impl S3, bucket: &str, part: Part, prefix: &str) -> Result<Listed, Unlisted> {
    let keys = match part {
        Part::Object(object) => return Listed::of(prefix, [object]),
        Part::Keys(keys) | Part::Undivided(keys) => keys,
    };
    let wanted = ListObjects { prefix: keys, ..ListObjects::of(bucket) };
    let mut found = Listed::default();
    let mut next_token = None;
    loop {
        let page = s3.list_objects(ListObjects { token: next_token, ..wanted.clone() }).await?;
        found.extend(prefix, page.objects)?;
        if found.0.len() > MOST_IN_PART {
            return Err(Unlisted::Problem(DataProblem::TooMany { prefix: wanted.prefix, most: MOST_IN_PART }));
        }
        next_token = page.next_token;
        if next_token.is_none() {
            return Ok(found);
        }
    }
}

/// The objects of one part.
#[derive(Default)]
struct Listed(Vec<DataObject>);

impl Listed {
    fn of(prefix: &str, objects: impl IntoIterator<Item = ListedObject>) -> Result<Self, Unlisted> {
        let mut listed = Self::default();
        listed.extend(prefix, objects)?;
        Ok(listed)
    }

    fn extend(&mut self, prefix: &str, objects: impl IntoIterator<Item = ListedObject>) -> Result<(), Unlisted> {
        for ListedObject { key, size, etag, class } in objects {
            // S3's console makes such an object for a folder.
            if key.ends_with('/') && size == 0 {
                continue;
            }
            if let Some(class) = class.filter(|class| ARCHIVED.contains(&class.as_str())) {
                return Err(Unlisted::Problem(DataProblem::Archived { key, class }));
            }
            let key = key.get(prefix.len()..).unwrap_or_default().to_owned();
            self.0.push(DataObject { key, size, etag });
        }
        Ok(())
    }
}

/// The lines of a listing, as they are written.
struct Lines<'a, C> {
    /// Absent if the listing is not kept.
    writer: Option<Writer<'a, C>>,
    keys: KeyCheck,
    digest: Sha256,
    objects: u64,
    bytes: u64,
}

impl<'a, C: S3> Lines<'a, C> {
    fn new(writer: Option<Writer<'a, C>>) -> Self {
        Self { writer, keys: KeyCheck::default(), digest: Sha256::new(), objects: 0, bytes: 0 }
    }

    async fn add(&mut self, Listed(objects): Listed) -> Result<(), Unlisted> {
        for object in objects {
            if let Err(problem) = self.keys.add(&object.key) {
                return Err(Unlisted::Problem(DataProblem::Key(problem)));
            }
            self.objects += 1;
            self.bytes = self.bytes.saturating_add(object.size);
            let mut line = serde_json::to_vec(&object).map_err(|error| CallError::Unclear(error.into()))?;
            line.push(b'\n');
            self.digest.update(&line);
            if let Some(writer) = &mut self.writer {
                writer.write(&line).await?;
            }
        }
        Ok(())
    }

    /// Completes the listing, unless it is empty.
    async fn finish(self) -> Result<Listing, Unlisted> {
        if self.objects == 0 {
            return Err(Unlisted::Problem(DataProblem::Empty));
        }
        if let Some(writer) = self.writer {
            writer.finish().await?;
        }
        let sha256 = hexadecimal(self.digest.finalize());
        Ok(Listing { sha256, objects: self.objects, bytes: self.bytes })
    }
}
