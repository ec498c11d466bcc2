//! How a script writes a checkpoint, write by write.

use spotsweep_world::ebs::{FileSystem, Opened};

use super::content::encode;
use super::habits::{Habits, Layout, Replacing};
use super::load::{self, LATEST, LINK, PARTS, UNFINISHED, mark, part, single, step_of};

/// The number of pieces in which a file's content is written.
const PIECES: usize = 3;

/// One step of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    Open(String, Opened),
    Bytes(String, usize, Vec<u8>),
    Close,
    Rename(String, String),
    Link(String, String),
    Remove(String),
}

/// The writes of the checkpoint of `trial` that `run` saves after `step`, in order, followed by the removal of old
/// checkpoints from `files`.
pub(super) fn writes(habits: &Habits, trial: u32, (step, run): (u32, u32), files: &FileSystem) -> Vec<Write> {
    let paths = paths(habits, step);
    let mark = (habits.layout == Layout::Marked).then(|| mark(step));
    let old = paths.iter().chain(&mark).filter(|path| files.content(path).is_some());
    let remove_old: Vec<Write> = old.map(|path| Write::Remove(path.clone())).collect();
    let folder = paths[0].rsplit_once('/').map_or("", |(folder, _)| folder);
    let unfinished = format!("{folder}{UNFINISHED}");
    let is_renamed = habits.replacing == Replacing::RenamesFolder;
    let place = |path: &str| if is_renamed { path.replacen(folder, &unfinished, 1) } else { path.to_owned() };

    let mut writes = Vec::new();
    if habits.replacing == Replacing::Removes {
        writes.extend(remove_old.clone());
    }
    for (number, path) in (0..).zip(&paths) {
        let content = encode(habits.format, trial, (step, run), number);
        put(habits.replacing, &place(path), &content, &mut writes);
    }
    if let Some(mark) = &mark {
        writes.extend([Write::Open(place(mark), Opened::Truncated), Write::Close]);
    }
    if is_renamed {
        writes.extend(remove_old);
        writes.push(Write::Rename(unfinished, folder.to_owned()));
    }
    match habits.layout {
        Layout::Pointer => put(Replacing::Truncates, LATEST, paths[0].as_bytes(), &mut writes),
        Layout::Link => writes.push(Write::Link(LINK.to_owned(), paths[0].clone())),
        Layout::Numbered
        | Layout::Single
        | Layout::Folder
        | Layout::Marked
        | Layout::TwoNumbers
        | Layout::Shards
        | Layout::Ranks => {}
    }
    writes.extend(removals(habits, step, files));
    writes
}

/// The files with the content of the checkpoint after `step`.
fn paths(habits: &Habits, step: u32) -> Vec<String> {
    match habits.layout {
        Layout::Single => vec![single(habits.format)],
        Layout::Numbered | Layout::Pointer | Layout::Link => vec![load::file(step, habits.format)],
        Layout::Folder | Layout::Marked | Layout::TwoNumbers | Layout::Shards | Layout::Ranks => {
            (0..PARTS).map(|number| part(habits, step, number)).collect()
        }
    }
}

fn put(replacing: Replacing, path: &str, content: &[u8], writes: &mut Vec<Write>) {
    let target = if replacing == Replacing::Renames { format!("{path}{UNFINISHED}") } else { path.to_owned() };
    let opened = if replacing == Replacing::WritesOver { Opened::Kept } else { Opened::Truncated };
    writes.push(Write::Open(target.clone(), opened));
    let length = content.len().div_ceil(PIECES).max(1);
    for (number, piece) in content.chunks(length).enumerate() {
        writes.push(Write::Bytes(target.clone(), number * length, piece.to_vec()));
    }
    writes.push(Write::Close);
    if replacing == Replacing::Renames {
        writes.push(Write::Rename(target, path.to_owned()));
    }
}

/// Removes the files of all steps except the newest that the script keeps.
fn removals(habits: &Habits, step: u32, files: &FileSystem) -> Vec<Write> {
    let Some(keeps) = habits.keeps.filter(|_| habits.layout != Layout::Single) else { return Vec::new() };
    let mut steps: Vec<u32> = files.seen().files.keys().filter_map(|path| step_of(path)).collect();
    steps.push(step);
    steps.sort_unstable();
    steps.dedup();
    let stay = steps.split_off(steps.len().saturating_sub(keeps as usize));
    let is_old = |path: &&String| step_of(path).is_some_and(|of| of != step && !stay.contains(&of));
    files.seen().files.keys().filter(is_old).map(|path| Write::Remove(path.clone())).collect()
}
