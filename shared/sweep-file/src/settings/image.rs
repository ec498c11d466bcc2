//! The container image of a sweep, which takes the place of the job definition's.

use crate::fields::{Fields, text};
use crate::problem::Report;
use crate::tree::Node;

/// The most characters of an image's name
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_ContainerProperties.html>).
const MAX_LETTERS: usize = 255;

/// Reads `image` below `spotsweep`, or W&B's `image_uri` at the top level.
pub(crate) fn read(own: Option<Fields<'_>>, fields: Fields<'_>, report: &mut Report<'_>) -> Option<String> {
    let of_own = own.and_then(|own| own.get("image")).and_then(|node| image(node, "image", report));
    let Some(node) = fields.get("image_uri") else { return of_own };
    let of_wandb = image(node, "image_uri", report)?;
    if of_own.as_ref().is_some_and(|own| *own != of_wandb) {
        report.add(node.place, "`image_uri` and `spotsweep: {image: …}` name two images", "delete one of the two");
    }
    Some(of_wandb)
}

fn image(node: &Node, key: &str, report: &mut Report<'_>) -> Option<String> {
    let name = text(node, key, report)?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() > MAX_LETTERS || !name.chars().all(is_allowed) || name.contains("://") {
        let help = "write it as for `docker pull`, for example pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime";
        report.add(node.place, format!("`{key}` is not the name of a container image: {name}"), help);
        return None;
    }
    // A colon before the last slash is that of a registry's port.
    let (tag, has_digest) = (name.rsplit('/').next().and_then(|last| last.split_once(':')), name.contains('@'));
    if !has_digest && tag.is_none_or(|(_, tag)| tag == "latest") {
        let message = format!("`{key}` names no version of the image: attempts of one trial may run different ones");
        report.warn(node.place, message, "add a tag, as in `python:3.13-slim`, or a digest, `@sha256:…`");
    }
    Some(name.to_owned())
}
