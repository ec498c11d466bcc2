//! Reads a folder of windows: `window-00/us-east-1a.json` and so on.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use spotsweep_world::trace::Trace;

use super::ReplayError;

/// The selected windows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows(Option<Vec<String>>);

impl FromStr for Windows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err("write the windows' numbers with commas between them, such as 0,2,14".into());
        }
        Ok(Self(Some(names)))
    }
}

pub(super) fn read(folder: &Path, wanted: &Windows) -> Result<Vec<(String, Trace)>, ReplayError> {
    let there = names(folder)?;
    let chosen = match &wanted.0 {
        None => there,
        Some(wanted) => {
            let mut chosen = wanted.iter().map(|name| choose(name, &there)).collect::<Result<Vec<_>, _>>()?;
            chosen.sort();
            chosen.dedup();
            chosen
        }
    };
    let read = |name: String| match Trace::read(&folder.join(&name)) {
        Ok(trace) => Ok((name, trace)),
        Err(source) => Err(ReplayError::Trace(name, source)),
    };
    chosen.into_iter().map(read).collect()
}

/// Returns the names of the folders in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, ReplayError> {
    let failed = |source| ReplayError::Folder { folder: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    if names.is_empty() {
        let folder = folder.display();
        let problem = format!("{folder} holds no windows: give a folder of folders, each with a <zone>.json per zone");
        return Err(ReplayError::Asked(problem));
    }
    Ok(names)
}

/// Returns the folder that `wanted` names: `2`, `02` and `window-02` name `window-02`.
fn choose(wanted: &str, there: &[String]) -> Result<String, ReplayError> {
    let number = |name: &str| name.rsplit('-').next().and_then(|digits| digits.parse::<u32>().ok());
    let same =
        |name: &&String| name.as_str() == wanted || (wanted.parse::<u32>().is_ok() && number(wanted) == number(name));
    there
        .iter()
        .find(same)
        .cloned()
        .ok_or_else(|| ReplayError::Asked(format!("there is no window {wanted}; there are {}", there.join(", "))))
}
