//! How training scripts save checkpoints. The habits are those of public code.

use std::time::Duration;

/// What a training script does when the runner asks it to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSignal {
    /// It saves and then ends by the signal.
    Saves,
    /// It saves and exits with 0, as if it had finished.
    ExitsZero,
    /// It goes on until it is killed, and loses what it has not saved.
    Ignores,
    /// It finishes if only the last epoch is missing, and reports that with the marker file.
    Finishes,
    /// It has no signal handler.
    NotHandled,
}

/// The files of a checkpoint, and how the script finds the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One file per checkpoint, with a number in its name.
    Numbered,
    /// One file that each checkpoint replaces.
    Single,
    /// One folder per checkpoint, with several files.
    Folder,
    /// A folder per checkpoint, with an empty file that marks the checkpoint as complete.
    Marked,
    /// A folder per checkpoint, whose name also has another number.
    TwoNumbers,
    /// Several files side by side, with the numbers of the checkpoint and of the part in their names.
    Shards,
    /// Several files side by side with the number of the part in their names, which each checkpoint rewrites.
    Ranks,
    /// Numbered files, and a text file that names the newest.
    Pointer,
    /// Numbered files, and a symbolic link to the newest.
    Link,
}

/// How a reader of the file format finds damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// By checksums: gzip.
    Checked,
    /// By the end of the file, without checksums: pickle.
    Ending,
    /// Not at all: raw numbers, of a length that the script checks.
    Raw,
    /// By the end of the file: LightGBM's text, in a file with the name of a log.
    Text,
}

/// How the script writes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacing {
    /// It opens the file with `wb`.
    Truncates,
    /// It opens an existing file with `r+b`, or maps it into memory.
    WritesOver,
    /// It writes a file under another name and renames it.
    Renames,
    /// It removes the files of the old checkpoint of that name first, as with `shutil.rmtree`.
    Removes,
    /// It writes a folder under another name, removes the old folder and renames the new one.
    RenamesFolder,
}

/// The process that has started a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// None: the training is the container's first process.
    Itself,
    /// `sh -c` or a script.
    Shell,
    /// A script that traps the signal.
    ShellWithTrap,
    /// `timeout`, which passes the signal on to its process group.
    Forwarder,
    /// A launcher that waits for the training in the kernel.
    Launcher,
    /// A launcher that polls the training or reads its output.
    PollingLauncher,
    /// A script that has started a server before the training.
    ShellWithHelper,
    /// A launcher that has started a server before the training.
    LauncherWithHelper,
}

/// The habits of one sweep's training script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habits {
    /// What it does when the runner asks it to stop.
    pub on_signal: OnSignal,
    /// The files of a checkpoint.
    pub layout: Layout,
    /// The format of the files.
    pub format: Format,
    /// How the files are written.
    pub replacing: Replacing,
    /// The number of checkpoints that stay; `None` means all.
    pub keeps: Option<u32>,
    /// The time from the first to the last byte of a checkpoint.
    pub save: Duration,
    /// Whether its handler abandons an unfinished save and starts another one.
    pub abandons_save: bool,
    /// The process that starts it.
    pub started_by: StartedBy,
    /// Whether copies of its process load its data.
    pub has_loaders: bool,
}

impl Layout {
    /// Whether a checkpoint has several files.
    pub(super) fn has_parts(self) -> bool {
        self.has_folders() || matches!(self, Self::Shards | Self::Ranks)
    }

    /// Whether each checkpoint has a folder of its own.
    pub(super) fn has_folders(self) -> bool {
        matches!(self, Self::Folder | Self::Marked | Self::TwoNumbers)
    }
}

impl Habits {
    /// The habits of the example scripts: they save on the signal and write numbered files.
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

    /// Whether saves write over files that do not show whether they mix two of them.
    pub(in crate::run) fn may_mix(&self) -> bool {
        self.format == Format::Raw && !self.layout.has_folders()
    }

    /// Random habits. `choose` returns a number less than its argument.
    pub(in crate::run) fn mixed(mut choose: impl FnMut(usize) -> usize) -> Self {
        use Layout::{Folder, Link, Marked, Numbered, Pointer, Ranks, Shards, Single, TwoNumbers};
        use OnSignal::{ExitsZero, Finishes, Ignores, NotHandled, Saves};
        let on_signal = [Saves, ExitsZero, Ignores, Finishes, NotHandled, NotHandled][choose(6)];
        let layout = [Numbered, Single, Folder, Marked, TwoNumbers, Shards, Ranks, Pointer, Link][choose(9)];
        let format = [Format::Checked, Format::Ending, Format::Raw, Format::Text][choose(4)];
        let replacing = match (choose(3), layout, format) {
            (0, _, _) => Replacing::Renames,
            // Other formats and layouts are overwritten in place by `with_replacing` only.
            (1, Single, Format::Raw) => Replacing::WritesOver,
            (_, _, _) => Replacing::Truncates,
        };
        let keeps = [Some(1), Some(2), Some(2), None][choose(4)];
        let save = [0, 4, 15, 150][choose(4)];
        // Only the file times show which files one save has written, and only if saves are fast.
        let save = if matches!(layout, TwoNumbers | Shards | Ranks) { save.min(4) } else { save };
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

    /// The same habits, and in some sweeps the script removes the old checkpoint of a name, renames whole folders, or
    /// writes over several files in place.
    pub(in crate::run) fn with_replacing(self, mut choose: impl FnMut(usize) -> usize) -> Self {
        let replacing = match choose(4) {
            0 if self.replacing == Replacing::Truncates => Replacing::Removes,
            1 if self.layout.has_folders() => Replacing::RenamesFolder,
            2 if self.layout == Layout::Ranks && self.format == Format::Raw => Replacing::WritesOver,
            _most => self.replacing,
        };
        Self { replacing, ..self }
    }

    /// The same habits with random processes.
    pub(in crate::run) fn with_processes(self, mut choose: impl FnMut(usize) -> usize) -> Self {
        use StartedBy::{
            Forwarder, Itself, Launcher, LauncherWithHelper, PollingLauncher, Shell, ShellWithHelper, ShellWithTrap,
        };
        let all =
            [Itself, Shell, ShellWithTrap, Forwarder, Launcher, PollingLauncher, ShellWithHelper, LauncherWithHelper];
        Self { started_by: all[choose(all.len())], has_loaders: choose(2) == 0, ..self }
    }
}
