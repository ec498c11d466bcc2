//! S3: writes and reads the pages of a large sweep's trials.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::objects::{JSON, put, read};
use super::{BoxError, Executed};
use crate::calls::{GetObject, S3};
use crate::outcome::Outcome;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::pages::page_key;
use spotsweep_records::trial::Trial;

/// How many pages are read at the same time. Each has some MB.
const AT_A_TIME: usize = 4;

pub(super) async fn store(
    s3: &impl S3,
    (sweep, bucket): (SweepId, String),
    (page, has_ended): (u32, bool),
    trials: Vec<Trial>,
) -> Executed {
    let key = page_key(&sweep, page, has_ended);
    put(s3, &bucket, key, serde_json::to_vec(&trials)?, JSON).await?;
    Ok(vec![Outcome::PageStored { sweep, page, has_ended }])
}

pub(super) async fn read_all(s3: &impl S3, sweep: SweepId, bucket: String, pages: Vec<bool>) -> Executed {
    let keys: Vec<String> = (0..).zip(pages).map(|(page, has_ended)| page_key(&sweep, page, has_ended)).collect();
    let one = |key: String| {
        let wanted = GetObject::of(&bucket, key);
        async move {
            let trials: Vec<Trial> = serde_json::from_slice(&read(s3, wanted).await?)?;
            Ok::<_, BoxError>(trials)
        }
    };
    let read = stream::iter(keys).map(one).buffered(AT_A_TIME);
    let trials: Vec<Trial> = read
        .try_fold(Vec::new(), async |mut all, page| {
            all.extend(page);
            Ok(all)
        })
        .await?;
    Ok(vec![Outcome::PagesRead { sweep, trials: trials.into() }])
}
