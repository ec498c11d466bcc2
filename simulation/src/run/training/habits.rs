//! How training scripts save: what public code does.

use std::time::Duration;

/// What a training script does when the runner asks it to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSignal {
    /// It saves and ends by the signal.
    Saves,
    /// It saves and exits with 0, as if it had finished.
    ExitsZero,
    /// It goes on until it is killed: what it has not saved is lost.
    Ignores,
    /// It finishes where only the last epoch is missing, and says so by the marker.
    Finishes,
    /// It has no handler.
    NotHandled,
}

/// Which files make up a checkpoint, and how the script finds the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A file for each checkpoint, with a number in its name.
    Numbered,
    /// One file, which each checkpoint replaces.
    Single,
    /// A folder for each checkpoint, with several files.
    Folder,
    /// The same, with an empty file as a mark that the checkpoint is complete.
    Marked,
    /// A folder for each checkpoint, whose name has another number, too.
    TwoNumbers,
    /// Several files beside each other, with the numbers of their checkpoint and of their part.
    Shards,
    /// Numbered files, and a text file that names the newest.
    Pointer,
    /// Numbered files, and a symbolic link to the newest.
    Link,
}

/// What the files' format shows of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Checksums: gzip.
    Checked,
    /// Its end, and no checksums: pickle.
    Ending,
    /// Nothing: raw numbers, of a length that the script knows.
    Raw,
    /// Its end: LightGBM's text, in a file that is named like a log.
    Text,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacing {
    /// Opened with `wb`.
    Truncates,
    /// Opened with `r+b`, or mapped into memory, where it exists.
    WritesOver,
    /// Written under another name and renamed.
    Renames,
}

/// What has started a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// Nothing: it is the container's first process.
    Itself,
    /// `sh -c` or a script.
    Shell,
    /// A script with a trap for the signal.
    ShellWithTrap,
    /// `timeout`, which passes the signal on to its group.
    Forwarder,
    /// A launcher that waits for it in the kernel.
    Launcher,
    /// A launcher that polls it, or reads what it prints.
    PollingLauncher,
    /// A script that has started a server before it.
    ShellWithHelper,
    /// A launcher that has started a server before it.
    LauncherWithHelper,
}

/// How one sweep's training script is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habits {
    /// What it does when it is asked to stop.
    pub on_signal: OnSignal,
    /// Which files make up a checkpoint.
    pub layout: Layout,
    /// Their format.
    pub format: Format,
    /// How they are written.
    pub replacing: Replacing,
    /// So many checkpoints stay; all of them where absent.
    pub keeps: Option<u32>,
    /// From the first byte of a checkpoint to its last.
    pub save: Duration,
    /// Whether its handler starts another save in the middle of one, which is never finished.
    pub abandons_save: bool,
    /// What starts it.
    pub started_by: StartedBy,
    /// Whether processes load its data, which are copies of it.
    pub has_loaders: bool,
}

impl Layout {
    /// Whether a checkpoint has several files.
    pub(super) fn has_parts(self) -> bool {
        matches!(self, Self::Folder | Self::Marked | Self::TwoNumbers | Self::Shards)
    }
}

impl Habits {
    /// The habits of the example scripts: they save on the signal, and write numbered files.
    pub const PLAIN: Self = Self {
        on_signal: OnSignal::Saves,
        layout: Layout::Numbered,
        format: Format::Checked,
        replacing: Replacing::Renames,
        keeps: Some(2),
        save: Duration::from_secs(4),
        abandons_save: false,
        started_by: StartedBy::Itself,
        has_loaders: false,
    };

    /// Habits that the dice decide: `choose` answers one of so many, from 0.
    pub(in crate::run) fn mixed(mut choose: impl FnMut(usize) -> usize) -> Self {
        use Layout::{Folder, Link, Marked, Numbered, Pointer, Shards, Single, TwoNumbers};
        use OnSignal::{ExitsZero, Finishes, Ignores, NotHandled, Saves};
        let on_signal = [Saves, ExitsZero, Ignores, Finishes, NotHandled, NotHandled][choose(6)];
        let layout = [Numbered, Single, Folder, Marked, TwoNumbers, Shards, Pointer, Link][choose(8)];
        let format = [Format::Checked, Format::Ending, Format::Raw, Format::Text][choose(4)];
        let replacing = match (choose(3), layout, format) {
            (0, _, _) => Replacing::Renames,
            // Other formats and layouts are never written over in place.
            (1, Single, Format::Raw) => Replacing::WritesOver,
            (_, _, _) => Replacing::Truncates,
        };
        let keeps = [Some(1), Some(2), Some(2), None][choose(4)];
        let save = [0, 4, 15, 150][choose(4)];
        // Only times show which of their numbers are those of checkpoints, and only where saves are fast.
        let save = if matches!(layout, TwoNumbers | Shards) { save.min(4) } else { save };
        Self {
            on_signal,
            layout,
            format,
            replacing,
            keeps,
            save: Duration::from_secs(save),
            abandons_save: choose(2) == 0,
            ..Self::PLAIN
        }
    }

    /// The same with processes that the dice decide.
    pub(in crate::run) fn with_processes(self, mut choose: impl FnMut(usize) -> usize) -> Self {
        use StartedBy::{
            Forwarder, Itself, Launcher, LauncherWithHelper, PollingLauncher, Shell, ShellWithHelper, ShellWithTrap,
        };
        let all =
            [Itself, Shell, ShellWithTrap, Forwarder, Launcher, PollingLauncher, ShellWithHelper, LauncherWithHelper];
        Self { started_by: all[choose(all.len())], has_loaders: choose(2) == 0, ..self }
    }
}
