//! Writes a judgement into its folder: the page and the document.

use std::fs;
use std::path::Path;

use super::checks::{Check, delays};
use super::page::{self, About};
use super::recording::Recorded;
use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};

/// Writes these files, and prints each check's verdict.
pub(super) fn write(folder: &Path, checks: &[Check], recording: &[Recorded], about: &About) -> Result<(), Failure> {
    let delays = delays(recording);
    let cannot_write = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder).context(cannot_write)?;
    let document = format!("{:#}\n", page::document(checks, &delays, about));
    fs::write(folder.join("acceptance.json"), document).context(cannot_write)?;
    fs::write(folder.join("acceptance.md"), page::markdown(checks, &delays, about)).context(cannot_write)?;
    out::results(|to| {
        checks.iter().try_for_each(|check| show::row(to, &[14, 0], [check.verdict.name(), check.name].iter()))
    })?;
    out::note(format_args!("page: {}", folder.join("acceptance.md").display()));
    Ok(())
}
