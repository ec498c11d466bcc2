//! `tags:` under `spotsweep:`: tags for everything that the sweep creates.

use std::collections::BTreeMap;

use crate::fields::{Fields, written};
use crate::problem::Report;
use crate::tree::Node;

/// Reads the tags. AWS allows 50 tags, keys up to 128 and values up to 256 characters, and reserves `aws:`
/// (<https://docs.aws.amazon.com/batch/latest/userguide/using-tags.html>). All services allow letters, digits, spaces
/// and `_ . : / = + - @` (<https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html>).
pub(super) fn read(node: &Node, report: &mut Report<'_>) -> BTreeMap<String, String> {
    let Some(fields) = Fields::any(node, "`tags`", report) else { return BTreeMap::new() };
    // The control plane adds its own tags, so fewer are left for the file.
    if fields.entries().len() > 40 {
        report.add(fields.place(), "more than 40 tags", "AWS allows 50, and spotsweep adds some of its own");
    }
    let mut tags = BTreeMap::new();
    for entry in fields.entries() {
        let Some(value) = written(&entry.value, &entry.key, report) else { continue };
        let reserved =
            entry.key.to_lowercase().starts_with("aws:") || entry.key.to_lowercase().starts_with("spotsweep");
        if reserved {
            report.add(entry.key_place, format!("the tag name `{}` is reserved", entry.key), "choose another name");
        }
        if entry.key.chars().count() > 128 || value.chars().count() > 256 {
            report.add(entry.key_place, "AWS allows 128 characters in a tag's name and 256 in its value", "shorten it");
        }
        if entry.key.is_empty() {
            report.add(entry.key_place, "a tag without a name", "give it a name");
        }
        let is_allowed = |c: &char| c.is_alphanumeric() || *c == ' ' || "_.:/=+-@".contains(*c);
        if let Some(strange) = entry.key.chars().chain(value.chars()).find(|c| !is_allowed(c)) {
            report.add(
                entry.key_place,
                format!("AWS takes no {strange:?} in a tag"),
                "use letters, digits, spaces and _ . : / = + - @",
            );
        }
        tags.insert(entry.key.clone(), value);
    }
    tags
}
