//! What a script loads at its start.

use spotsweep_world::ebs::{File, View};

use super::content::{Loaded, decode, said_step};
use super::habits::{Format, Habits, Layout};

/// The folder of the checkpoints.
pub(in crate::run) const CHECKPOINTS: &str = "checkpoints/";
const MARK: &str = "COMPLETE";
pub(super) const LATEST: &str = "checkpoints/latest";
pub(super) const LINK: &str = "checkpoints/last";
/// The ending of the name of a file or a folder that is renamed when it is complete.
pub(super) const UNFINISHED: &str = ".tmp";
/// The number of files in a checkpoint folder.
pub(super) const PARTS: u32 = 2;

/// The result of loading the newest checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) enum Start {
    /// There is no checkpoint.
    Fresh,
    /// It starts from a checkpoint.
    From(Loaded),
    /// It ends with this error. The error names a missing file, but not a file that cannot be decoded.
    Fails(String),
}

/// Loads the newest checkpoint of `view` as the script does.
pub(in crate::run) fn start(habits: &Habits, trial: u32, view: &View) -> Start {
    let newest = || view.files.keys().filter(|path| !is_unfinished(path)).filter_map(|path| step_of(path)).max();
    let read = |path: &str| load(habits, trial, view, path, 0);
    let from = |loaded: Result<Loaded, String>| loaded.map_or_else(Start::Fails, Start::From);
    match habits.layout {
        Layout::Single => match view.files.get(&single(habits.format)) {
            None => Start::Fresh,
            Some(_) => from(read(&single(habits.format))),
        },
        Layout::Numbered => newest().map_or(Start::Fresh, |step| from(read(&file(step, habits.format)))),
        Layout::Pointer => match view.files.get(LATEST) {
            None => Start::Fresh,
            Some(text) => from(read(&String::from_utf8_lossy(&text.bytes))),
        },
        // `os.path.exists` returns false for a link without a target.
        Layout::Link => match view.links.get(LINK).filter(|target| view.files.contains_key(*target)) {
            None => Start::Fresh,
            Some(target) => from(read(target)),
        },
        Layout::Folder | Layout::TwoNumbers | Layout::Shards => {
            newest().map_or(Start::Fresh, |step| from(folder(habits, trial, view, step)))
        }
        Layout::Ranks => {
            let parts = || (0..PARTS).map(|number| (part(habits, 0, number), number));
            let found = parts().find(|(path, _)| view.files.contains_key(path));
            let loaded = |(path, number): (String, u32)| {
                folder(habits, trial, view, load(habits, trial, view, &path, number)?.step)
            };
            found.map_or(Start::Fresh, |found| from(loaded(found)))
        }
        Layout::Marked => {
            let marked = |path: &&String| path.ends_with(MARK) && !is_unfinished(path);
            let newest = view.files.keys().filter(marked).filter_map(|path| step_of(path)).max();
            newest.map_or(Start::Fresh, |step| from(folder(habits, trial, view, step)))
        }
    }
}

/// The step of the checkpoint that the script's pointer names and loads.
pub(in crate::run) fn named_step(habits: &Habits, view: &View) -> Option<u32> {
    match habits.layout {
        Layout::Pointer => view.files.get(LATEST).and_then(|text| step_of(std::str::from_utf8(&text.bytes).ok()?)),
        Layout::Link => view.links.get(LINK).and_then(|target| step_of(target)),
        Layout::Numbered
        | Layout::Single
        | Layout::Folder
        | Layout::Marked
        | Layout::TwoNumbers
        | Layout::Shards
        | Layout::Ranks => None,
    }
}

/// Whether the script's pointer is too short to name a checkpoint, because its writer was killed during the write.
pub(in crate::run) fn is_pointer_cut(habits: &Habits, view: &View) -> bool {
    let length = file(0, habits.format).len();
    habits.layout == Layout::Pointer && view.files.get(LATEST).is_some_and(|text| text.bytes.len() < length)
}

/// Loads one file of a checkpoint.
fn load(habits: &Habits, trial: u32, view: &View, path: &str, part: u32) -> Result<Loaded, String> {
    let file = view.files.get(path).ok_or_else(|| format!("no such file: {path}"))?;
    decode(habits.format, &file.bytes, trial, part).ok_or_else(|| "the file cannot be decoded".to_owned())
}

/// Loads a checkpoint of several files. It is intact only if one run has saved all of them after one step.
fn folder(habits: &Habits, trial: u32, view: &View, step: u32) -> Result<Loaded, String> {
    let parts = (0..PARTS).map(|number| load(habits, trial, view, &part(habits, step, number), number));
    let parts: Vec<Loaded> = parts.collect::<Result<_, _>>()?;
    let run = parts[0].run;
    let is_intact = parts.iter().all(|part| part.is_intact && (part.step, part.run) == (step, run));
    Ok(Loaded { step, run, is_intact })
}

/// The content of a file with this name, in any folder.
pub(in crate::run) fn content_of(habits: &Habits, trial: u32, path: &str, file: &File) -> Option<Loaded> {
    let part = (0..PARTS).find(|number| path.ends_with(&part_name(*number, habits.format))).unwrap_or(0);
    decode(habits.format, &file.bytes, trial, part)
}

/// The newest step that has a whole checkpoint in the folder `within`.
pub(in crate::run) fn newest_whole(habits: &Habits, trial: u32, view: &View, within: &str) -> Option<u32> {
    let intact = |(path, file): (&String, &File)| {
        let loaded = content_of(habits, trial, path, file).filter(|loaded| loaded.is_intact)?;
        let is_marked = || view.files.contains_key(&mark(loaded.step));
        let has_mark = || habits.layout != Layout::Marked || is_marked();
        let whole = || has_mark() && folder(habits, trial, view, loaded.step).is_ok_and(|loaded| loaded.is_intact);
        let is_whole = !habits.layout.has_parts() || !path.starts_with(CHECKPOINTS) || whole();
        is_whole.then_some(loaded.step)
    };
    let counts = |(path, _): &(&String, &File)| path.starts_with(within) && !is_unfinished(path);
    let mut newest = None;
    // The newest file is usually the last. Files of older steps need not be read.
    for (path, file) in view.files.iter().rev().filter(counts) {
        if said_step(habits.format, &file.bytes) > newest {
            newest = newest.max(intact((path, file)));
        }
    }
    newest
}

/// The same in the checkpoint folder, if one save has written all files of that checkpoint. An instance may be lost
/// within a save that writes a checkpoint again, with the same content. Only the times of the files show that.
pub(in crate::run) fn newest_of_one_save(habits: &Habits, trial: u32, view: &View) -> Option<u32> {
    let mut view = view.clone();
    loop {
        let newest = newest_whole(habits, trial, &view, CHECKPOINTS)?;
        let parts: Vec<String> = (0..PARTS).map(|number| part(habits, newest, number)).collect();
        let written: Vec<i64> = parts.iter().filter_map(|path| Some(view.files.get(path)?.modified_ns)).collect();
        let took = written.iter().max().zip(written.iter().min()).map_or(0, |(last, first)| last.abs_diff(*first));
        if u128::from(took) <= habits.save.as_nanos() {
            return Some(newest);
        }
        view.files.retain(|path, _| !parts.contains(path));
    }
}

fn is_unfinished(path: &str) -> bool {
    path.split('/').any(|name| name.ends_with(UNFINISHED))
}

/// The step in a path such as `checkpoints/step-000030.gz`.
pub(super) fn step_of(path: &str) -> Option<u32> {
    let rest = path.strip_prefix(CHECKPOINTS)?.strip_prefix("step-")?;
    rest.get(..6)?.parse().ok()
}

pub(super) fn stem(step: u32) -> String {
    format!("step-{step:06}")
}

pub(super) fn file(step: u32, format: Format) -> String {
    format!("{CHECKPOINTS}{}{}", stem(step), ending(format))
}

pub(super) fn single(format: Format) -> String {
    format!("{CHECKPOINTS}model{}", ending(format))
}

pub(super) fn part(habits: &Habits, step: u32, number: u32) -> String {
    let (stem, name) = (stem(step), part_name(number, habits.format));
    match habits.layout {
        Layout::TwoNumbers => format!("{CHECKPOINTS}{stem}-run-1/{name}"),
        Layout::Shards => format!("{CHECKPOINTS}{stem}-{name}"),
        Layout::Ranks => format!("{CHECKPOINTS}{name}"),
        Layout::Numbered | Layout::Single | Layout::Folder | Layout::Marked | Layout::Pointer | Layout::Link => {
            format!("{CHECKPOINTS}{stem}/{name}")
        }
    }
}

pub(super) fn mark(step: u32) -> String {
    format!("{CHECKPOINTS}{}/{MARK}", stem(step))
}

fn part_name(number: u32, format: Format) -> String {
    format!("part-{number}{}", ending(format))
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Checked => ".gz",
        Format::Ending => ".pkl",
        Format::Raw => ".bin",
        Format::Text => ".txt",
    }
}
