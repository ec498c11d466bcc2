//! Bucket and table, which outlive the stack.

use aws_config::SdkConfig;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};

use spotsweep_protocol::failure::{Context, Failure};

/// Deletes the bucket with all versions of its objects, and the table.
pub(super) async fn delete(config: &SdkConfig, bucket: &str, table: &str) -> Result<(), Failure> {
    empty(config, bucket).await?;
    let s3 = spotsweep_aws::path_style_s3(config);
    let gone = s3.delete_bucket().bucket(bucket).send().await;
    gone.context(|| format!("cannot delete the bucket {bucket} (s3:DeleteBucket)"))?;
    let tables = aws_sdk_dynamodb::Client::new(config);
    let open = tables.update_table().table_name(table).deletion_protection_enabled(false).send().await;
    open.context(|| format!("cannot end the protection of the table {table} (dynamodb:UpdateTable)"))?;
    let gone = tables.delete_table().table_name(table).send().await;
    gone.context(|| format!("cannot delete the table {table} (dynamodb:DeleteTable)")).map(drop)
}

/// Deletes all versions and delete markers. A page has up to a thousand, as many as one DeleteObjects takes.
async fn empty(config: &SdkConfig, bucket: &str) -> Result<(), Failure> {
    let s3 = spotsweep_aws::path_style_s3(config);
    loop {
        let page = s3.list_object_versions().bucket(bucket).send().await;
        let page = page.context(|| format!("cannot list the bucket {bucket} (s3:ListBucketVersions)"))?;
        let versions = page.versions().iter().map(|one| (one.key(), one.version_id()));
        let markers = page.delete_markers().iter().map(|one| (one.key(), one.version_id()));
        let object = |(key, version): (Option<&str>, Option<&str>)| {
            let object = ObjectIdentifier::builder().key(key?).set_version_id(version.map(str::to_owned));
            object.build().ok()
        };
        let objects: Vec<_> = versions.chain(markers).filter_map(object).collect();
        if objects.is_empty() {
            return Ok(());
        }
        let delete = Delete::builder().set_objects(Some(objects)).quiet(true).build();
        let delete = delete.context(|| "cannot delete objects")?;
        let deleted = s3.delete_objects().bucket(bucket).delete(delete).send().await;
        let deleted = deleted.context(|| format!("cannot empty the bucket {bucket} (s3:DeleteObjectVersion)"))?;
        if let Some(error) = deleted.errors().first() {
            let (key, why) = (error.key().unwrap_or_default(), error.message().unwrap_or_default());
            return Err(Failure::new(format!("cannot delete {key} in the bucket {bucket}: {why}")));
        }
    }
}
