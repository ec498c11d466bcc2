//! Copies objects of a local stack to files, and the table's records to lines of JSON.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::Client;
use serde_json::{Value, json};

use crate::download::{Arrival, Listed, Present, fetch, list};
use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};

/// Copies the bucket's newest objects and the table's records into the folder, where `explain --kept` reads them.
pub(crate) async fn all(config: &SdkConfig, bucket: &str, table: &str, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).context(|| format!("cannot make the folder {}", folder.display()))?;
    copy(&spotsweep_aws::path_style_s3(config), bucket, "", &folder.join("bucket")).await?;
    dump_table(config, table, &folder.join("table.jsonl")).await?;
    out::note(format_args!("kept the bucket and the table in {}", folder.display()));
    Ok(())
}

/// Copies every object under the prefix into the folder, and reports those that cannot be copied.
pub(crate) async fn copy(client: &Client, bucket: &str, prefix: &str, folder: &Path) -> Result<(), Failure> {
    let Listed { objects, mut troubles } = list(client, bucket, prefix, prefix).await?;
    let tell = |arrival| match arrival {
        Arrival::Fetched(_) | Arrival::WasThere(_) => {}
        Arrival::Failed(trouble) => troubles.push(trouble),
    };
    let outcome = fetch(client, bucket, objects, folder, Present::Replace, tell).await;
    for trouble in troubles {
        out::note(format_args!("not copied: {}", show::line(trouble)));
    }
    outcome
}

/// Writes every record of the table, one JSON object per line.
async fn dump_table(config: &SdkConfig, table: &str, path: &Path) -> Result<(), Failure> {
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

/// Converts a DynamoDB value to plain JSON. Numbers that JSON cannot hold exactly stay texts.
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
        // The SDK's enum may get more variants. These are shown in their debug form.
        other => Value::from(format!("{other:?}")),
    }
}
