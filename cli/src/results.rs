//! Copies out of the control plane: objects to files, the table's records to lines of JSON.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use aws_config::SdkConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::failure::{Context, Failure};
use crate::out;

/// Objects that are copied at once.
const CONCURRENT_COPIES: usize = 8;

/// Copies every object under the prefix into the folder; returns how many.
pub(crate) async fn copy(client: &Client, bucket: &str, prefix: &str, folder: &Path) -> Result<u64, Failure> {
    let cannot_list = || format!("cannot list s3://{bucket}/{prefix}");
    let mut pages = client.list_objects_v2().bucket(bucket).prefix(prefix).into_paginator().send();
    let (mut copies, mut files) = (JoinSet::new(), 0);
    while let Some(page) = pages.next().await {
        for object in page.context(cannot_list)?.contents.unwrap_or_default() {
            let key = object.key.unwrap_or_default();
            let Some(name) = safe_name(key.strip_prefix(prefix).unwrap_or(&key)) else {
                out::note(format_args!("not copied: the key {key} is no file name here"));
                continue;
            };
            if copies.len() >= CONCURRENT_COPIES {
                finish_one(&mut copies).await?;
            }
            copies.spawn(copy_one(client.clone(), bucket.to_owned(), key, folder.join(name)));
            files += 1;
        }
    }
    while !copies.is_empty() {
        finish_one(&mut copies).await?;
    }
    Ok(files)
}

async fn finish_one(copies: &mut JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    match copies.join_next().await {
        Some(copied) => copied.context(|| "copying was cut off")?,
        None => Ok(()),
    }
}

/// Copies one object, never holding more than a part of it.
async fn copy_one(client: Client, bucket: String, key: String, path: PathBuf) -> Result<(), Failure> {
    let cannot_write = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await.context(cannot_write)?;
    }
    let got = client.get_object().bucket(bucket).key(&key).send().await.context(|| format!("cannot read {key}"))?;
    let mut file = tokio::fs::File::create(&path).await.context(cannot_write)?;
    let mut body = got.body.into_async_read();
    tokio::io::copy(&mut body, &mut file).await.context(|| format!("cannot copy {key} to {}", path.display()))?;
    tokio::io::AsyncWriteExt::flush(&mut file).await.context(cannot_write)
}

/// The key as a path that stays inside the folder it is joined to.
fn safe_name(key: &str) -> Option<PathBuf> {
    let path = Path::new(key);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_file = !key.is_empty() && !key.ends_with('/') && !key.contains("//") && !key.contains('\0');
    (plain && is_file).then(|| path.to_owned())
}

/// Writes every record of the table, one JSON object per line.
pub(crate) async fn dump_table(config: &SdkConfig, table: &str, path: &Path) -> Result<(), Failure> {
    let cannot_write = || format!("cannot write {}", path.display());
    let mut file = std::io::BufWriter::new(fs::File::create(path).context(cannot_write)?);
    let client = aws_sdk_dynamodb::Client::new(config);
    let mut records = client.scan().table_name(table).consistent_read(true).into_paginator().items().send();
    while let Some(record) = records.next().await {
        let record = record.context(|| format!("cannot read the table {table}"))?;
        let fields: BTreeMap<&String, Value> = record.iter().map(|(name, value)| (name, plain(value))).collect();
        writeln!(file, "{}", json!(fields)).context(cannot_write)?;
    }
    file.flush().context(cannot_write)
}

/// A DynamoDB value as plain JSON; numbers that JSON cannot hold exactly stay text.
fn plain(value: &AttributeValue) -> Value {
    let texts = |texts: &[String]| Value::from(texts.to_vec());
    match value {
        AttributeValue::S(text) => Value::from(text.as_str()),
        AttributeValue::N(number) => serde_json::from_str(number).unwrap_or_else(|_| Value::from(number.as_str())),
        AttributeValue::Bool(truth) => Value::from(*truth),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::L(values) => values.iter().map(plain).collect(),
        AttributeValue::M(fields) => fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        AttributeValue::Ss(values) | AttributeValue::Ns(values) => texts(values),
        AttributeValue::B(bytes) => Value::from(bytes.as_ref()),
        AttributeValue::Bs(values) => values.iter().map(|bytes| Value::from(bytes.as_ref())).collect(),
        // The SDK's enum is open; a kind of value that it learns later is shown as it debugs.
        other => Value::from(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_never_leave_the_folder() {
        for key in ["a", "trials/0/model/model.joblib", "a b", "..a"] {
            assert_eq!(safe_name(key), Some(PathBuf::from(key)), "{key}");
        }
        for key in ["", "a/", "../a", "a/../../b", "/a", "a//b", "./a", "a\0b"] {
            assert_eq!(safe_name(key), None, "{key:?}");
        }
    }
}
