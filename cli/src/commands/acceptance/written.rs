//! Writes a judgement into its folder: the page, the document and the masked events.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use spotsweep_control_plane::event;

use super::checks::{Check, delays};
use super::mask::Masks;
use super::page::{self, About};
use super::recording::Recorded;
use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};

/// Writes these files, and prints each check's verdict.
pub(super) fn write(folder: &Path, checks: &[Check], recording: &[Recorded], about: &About) -> Result<(), Failure> {
    let mut masks = Masks::default();
    let checks: Vec<Check> = checks.iter().map(|check| masked(check, &mut masks)).collect();
    let about = about.masked(&mut masks);
    let delays = delays(recording);
    let cannot_write = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder.join("events")).context(cannot_write)?;
    let document = format!("{:#}\n", page::document(&checks, &delays, &about));
    fs::write(folder.join("acceptance.json"), document).context(cannot_write)?;
    fs::write(folder.join("acceptance.md"), page::markdown(&checks, &delays, &about)).context(cannot_write)?;
    keep(recording, &mut masks, &folder.join("events")).context(cannot_write)?;
    out::results(|to| {
        checks.iter().try_for_each(|check| show::row(to, &[14, 0], [check.verdict.name(), check.name].iter()))
    })?;
    out::note(format_args!("page: {}", folder.join("acceptance.md").display()));
    Ok(())
}

fn masked(check: &Check, masks: &mut Masks) -> Check {
    Check { recorded: check.recorded.iter().map(|line| masks.text(line)).collect(), ..*check }
}

/// Writes the first event of each kind and state. An event that the functions do not understand gets a name of its own.
fn keep(recording: &[Recorded], masks: &mut Masks, folder: &Path) -> std::io::Result<()> {
    let mut kept: BTreeMap<String, &Recorded> = BTreeMap::new();
    for recorded in recording {
        kept.entry(file_name(recorded)).or_insert(recorded);
    }
    kept.iter().try_for_each(|(name, recorded)| {
        fs::write(folder.join(format!("{name}.json")), format!("{:#}\n", masks.event(&recorded.event)))
    })
}

fn file_name(recorded: &Recorded) -> String {
    let detail = ["status", "event", "result", "state", "lastStatus"];
    let detail = detail.map(|field| recorded.text(&format!("/detail/{field}")).trim());
    let is_read = event::parse(recorded.event.clone()).is_ok();
    let words = std::iter::once(recorded.kind()).chain(detail).chain((!is_read).then_some("not understood"));
    let words = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    words.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }).collect()
}
