//! Sums up the sizes of the kept versions. It does so once in a round, because a checkpoint may have ten thousand
//! files.

use std::collections::BTreeMap;

use crate::groups::Groups;

/// Sizes in bytes of the versions that are kept.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    each: BTreeMap<String, u64>,
    all: u64,
    unnumbered: u64,
    /// Sizes of numbered files, by the checkpoint that they belong to.
    by_checkpoint: BTreeMap<String, u64>,
}

/// The sizes of all kept versions, and of those that are copies, if they were needed in this round.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    pub(crate) groups: &'a Groups,
    pub(crate) every: Option<Sizes>,
    pub(crate) copies: Option<Sizes>,
    /// Whether the versions of removed files were dropped.
    pub(crate) has_dropped_removed: bool,
}

impl<'a> Room<'a> {
    pub(crate) fn of(groups: &'a Groups) -> Self {
        Self { groups, every: None, copies: None, has_dropped_removed: false }
    }

    /// Notes that a version of `path` is kept now, in place of the one before.
    pub(crate) fn put(&mut self, path: &str, bytes: u64, is_copy: bool) {
        if let Some(every) = &mut self.every {
            every.put(self.groups, path, bytes);
        }
        if let Some(copies) = &mut self.copies {
            copies.put(self.groups, path, if is_copy { bytes } else { 0 });
        }
    }
}

impl Sizes {
    pub(crate) fn of<'a>(groups: &Groups, files: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut sizes = Self::default();
        files.for_each(|(path, bytes)| sizes.put(groups, path, bytes));
        sizes
    }

    fn put(&mut self, groups: &Groups, path: &str, bytes: u64) {
        let before = self.each.insert(path.to_owned(), bytes).unwrap_or(0);
        let change = |sum: &mut u64| *sum = *sum + bytes - before;
        change(&mut self.all);
        if !groups.is_numbered(path) {
            return change(&mut self.unnumbered);
        }
        change(self.by_checkpoint.entry(groups.name(path).to_owned()).or_default());
    }

    /// The bytes of all files except `path`.
    pub(crate) fn others(&self, path: &str) -> u64 {
        self.all - self.each.get(path).unwrap_or(&0)
    }

    /// The bytes that stay when the checkpoint of the numbered file `path` replaces the one before: the other files of
    /// that checkpoint, and files without a number.
    pub(crate) fn staying(&self, groups: &Groups, path: &str) -> u64 {
        let own = self.by_checkpoint.get(groups.name(path));
        self.unnumbered + own.unwrap_or(&0) - self.each.get(path).unwrap_or(&0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Stamp;

    #[test]
    fn sums_are_those_of_the_files_that_stay() {
        let paths =
            ["step-1.pt", "step-1.json", "step-2.pt", "checkpoint-1/a", "checkpoint-1/b.2", "model.pt", "m/x-1"];
        let more = ["new.pt", "checkpoint-3/a"];
        let stamp = Stamp { bytes: 1, modified_ns: 0, inode: 1 };
        let groups = Groups::of(paths.into_iter().chain(more).map(|path| (path, stamp)));
        let mut sizes = Sizes::of(&groups, paths.into_iter().zip([1, 2, 4, 8, 16, 32, 64]));
        let staying =
            |sizes: &Sizes| paths.map(|path| if groups.is_numbered(path) { sizes.staying(&groups, path) } else { 0 });
        assert_eq!(sizes.others("model.pt"), 127 - 32);
        assert_eq!(sizes.others("new.pt"), 127);
        // Beside model.pt: what has the same number, or lies in the same folder of a checkpoint.
        assert_eq!(staying(&sizes), [32 + 2, 32 + 1, 32, 32 + 16, 32 + 8, 0, 32]);
        assert_eq!(sizes.staying(&groups, "checkpoint-3/a"), 32);
        sizes.put(&groups, "step-1.json", 0);
        assert_eq!(sizes.staying(&groups, "step-1.pt"), 32);
        assert_eq!(sizes.staying(&groups, "step-7.pt"), 32);
    }
}
