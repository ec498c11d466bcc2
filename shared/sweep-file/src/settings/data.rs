//! `data:` under `spotsweep:`: the objects of S3 that the trainings read, at `/data/<name>`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use spotsweep_protocol::claim::{DATA_FOLDER, data_variable};

use crate::fields::{Fields, boolean, mismatch, text};
use crate::problem::{Place, Report};
use crate::scalar::Scalar;
use crate::tree::{Kind, Node};

mod url;

/// The most data sets of a sweep. Each is a tag of the session whose credentials read it, and the role names each tag
/// (TrialRole in infra/control-plane.yaml).
const MOST_DATA_SETS: usize = 5;

/// The most characters of all buckets and keys. STS packs all tags of a session into a binary format that has a limit of
/// its own, which no page states as a number: <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>.
const MOST_CHARS: usize = 600;

/// The most characters of a name.
const MOST_NAME_CHARS: usize = 40;

/// Keys of a data set that is a mapping.
const KEYS: [&str; 2] = ["from", "unpack"];

/// How the names of archives end that are unpacked.
const ARCHIVES: [&str; 3] = [".tar", ".tar.zst", ".zip"];

/// How the names of other compressed archives end.
const OTHER_ARCHIVES: [&str; 6] = [".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz"];

/// Objects of S3 that trainings read: one object, or all below a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSource {
    /// The bucket's name.
    pub bucket: String,
    /// The key of one object, or a prefix that ends with `/`. Empty for a whole bucket.
    pub key: String,
    /// Whether archives are unpacked: the object, or those below the prefix.
    pub unpack: bool,
}

impl DataSource {
    /// Whether these are all objects below a prefix, and not one object.
    pub fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// Returns the URL as a sweep file has it: `s3://bucket/key`.
    pub fn url(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.key)
    }
}

/// The written forms of a data set.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum DataSchema {
    /// `s3://bucket/prefix/` for all objects below a prefix, `s3://bucket/key` for one object.
    Url(String),
    Fields(DataFields),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) struct DataFields {
    /// `s3://bucket/prefix/` for all objects below a prefix, `s3://bucket/key` for one object.
    from: String,
    /// Whether archives are unpacked: `.tar`, `.tar.zst` and `.zip`.
    unpack: Option<bool>,
}

/// Reads the data sets by name. No parameter, and no variable of `env` and `secrets`, has the variable of a data set:
/// `HP_` is the prefix of the former, and the latter may not begin with `SPOTSWEEP_`.
pub(super) fn read(node: &Node, report: &mut Report<'_>) -> BTreeMap<String, DataSource> {
    let Kind::Mapping(_) = &node.kind else {
        let message = format!("`data` must be a mapping, and this is {}", node.describe());
        let help =
            "name each data set: `data: {imagenet: \"s3://bucket/imagenet/\", labels: \"s3://bucket/labels.csv\"}`";
        report.add(node.place, message, help);
        return BTreeMap::new();
    };
    let Some(fields) = Fields::any(node, "`data`", report) else { return BTreeMap::new() };
    let number = fields.entries().len();
    if number > MOST_DATA_SETS {
        let help = format!("at most {MOST_DATA_SETS} are possible: put several below one prefix");
        report.add(fields.place(), format!("the sweep has {number} data sets"), help);
    }
    let (mut sources, mut names) = (BTreeMap::new(), BTreeMap::new());
    for entry in fields.entries() {
        check_name(&entry.key, entry.key_place, &mut names, report);
        if let Some(source) = source(&entry.value, &entry.key, report) {
            sources.insert(entry.key.clone(), source);
        }
    }
    let chars: usize = sources.values().map(|source| source.bucket.len() + source.key.len()).sum();
    if chars > MOST_CHARS {
        let help = format!("at most {MOST_CHARS} are possible: use shorter prefixes, or put several below one prefix");
        report.add(fields.place(), format!("buckets and keys have {chars} characters in all"), help);
    }
    sources
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    name.len() <= MOST_NAME_CHARS && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_allowed)
}

/// Checks a name, and whether an earlier one has the same variable. `names` has the earlier names by variable.
fn check_name<'n>(name: &'n str, at: Place, names: &mut BTreeMap<String, &'n str>, report: &mut Report<'_>) {
    if !is_name(name) {
        let help = format!(
            "write 1 to {MOST_NAME_CHARS} lower-case letters, digits, `-` and `_`, the first one a letter: \
             trainings find the data set at `{DATA_FOLDER}/<name>`"
        );
        report.add(at, format!("`{name}` is no name of a data set"), help);
        return;
    }
    let variable = data_variable(name);
    if let Some(other) = names.get(&variable) {
        report.add(at, format!("`{other}` and `{name}` have one variable, `{variable}`"), "rename one of the two");
    }
    names.insert(variable, name);
}

fn source(node: &Node, name: &str, report: &mut Report<'_>) -> Option<DataSource> {
    let (from, what, unpack) = match &node.kind {
        Kind::Scalar(Scalar::Text { .. }) => (node, name, None),
        Kind::Mapping(_) => {
            let fields = Fields::known(node, &format!("data set `{name}`"), &KEYS, report)?;
            let Some(from) = fields.get("from") else {
                let help = format!("add where the objects are, for example `from: \"s3://bucket/{name}/\"`");
                report.add(fields.place(), format!("data set `{name}` has no `from`"), help);
                return None;
            };
            (from, "from", fields.get("unpack"))
        }
        Kind::Scalar(_) | Kind::List(_) => {
            mismatch(node, name, "an `s3://` URL, or a mapping with `from` and `unpack`", report);
            return None;
        }
    };
    let unpacks = unpack.and_then(|node| boolean(node, "unpack", report)).unwrap_or(false);
    let url = text(from, what, report)?;
    let folder = if is_name(name) { name } else { "<name>" };
    let (bucket, key) = match url::parse(url, folder) {
        Ok(place) => place,
        Err((message, help)) => {
            report.add(from.place, message, help);
            return None;
        }
    };
    let source = DataSource { bucket, key, unpack: unpacks };
    if let (Some(node), Some((message, help))) = (unpack, unpack_problem(&source)) {
        report.add(node.place, message, help);
    }
    Some(source)
}

/// Returns why an object cannot be unpacked, and what to do.
fn unpack_problem(source: &DataSource) -> Option<(&'static str, &'static str)> {
    let ends = |ends: &[&str]| ends.iter().any(|end| source.key.ends_with(end));
    if !source.unpack || source.is_prefix() || ends(&ARCHIVES) {
        return None;
    }
    Some(if ends(&OTHER_ARCHIVES) {
        let help = "repack it as .tar or .tar.zst, for example `gunzip -c x.tar.gz | zstd -o x.tar.zst`";
        ("this kind of compressed archive cannot be unpacked", help)
    } else {
        let help = "delete `unpack`, name an object that ends with .tar, .tar.zst or .zip, or write `/` after a prefix";
        ("`unpack` needs an archive, and the object's name is not that of one", help)
    })
}
