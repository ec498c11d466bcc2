//! S3: the trials of a large sweep, page by page.

use aws_sdk_s3::Client;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::BoxError;
use super::s3::{bytes, put};
use spotsweep_control_plane::execute::Executed;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::sweep::pages::page_key;
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::ids::SweepId;

/// Pages that are read at a time: each has some MB.
const AT_A_TIME: usize = 4;

pub(super) async fn store(
    s3: &Client,
    (sweep, bucket): (SweepId, String),
    (page, has_ended): (u32, bool),
    trials: Vec<Trial>,
) -> Executed {
    let key = page_key(&sweep, page, has_ended);
    put(s3, &bucket, key, serde_json::to_vec(&trials)?, "application/json").await?;
    Ok(vec![Outcome::PageStored { sweep, page, has_ended }])
}

pub(super) async fn read(s3: &Client, sweep: SweepId, bucket: String, pages: Vec<bool>) -> Executed {
    let keys: Vec<String> = (0..).zip(pages).map(|(page, has_ended)| page_key(&sweep, page, has_ended)).collect();
    let one = |key: String| {
        let request = s3.get_object().bucket(&bucket).key(key);
        async move {
            let read = bytes(request.send().await?).await?;
            let trials: Vec<Trial> = serde_json::from_slice(&read)?;
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
