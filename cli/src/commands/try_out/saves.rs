//! When a training writes to its folder of checkpoints.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Unchanged for so many seconds, a checkpoint is complete.
const QUIET: f64 = 0.7;
/// Files that are looked at.
const MOST_FILES: usize = 10_000;

/// Looks at the folder again and again.
#[derive(Debug, Default)]
pub(super) struct Saves {
    /// Files, bytes, and the newest change.
    last: Option<(usize, u64, Option<SystemTime>)>,
    /// When the last change was seen, of a checkpoint that is not complete yet.
    changed: Option<f64>,
}

/// What a look has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Look {
    Quiet,
    Writing,
    /// Complete since this time.
    Complete(f64),
}

impl Saves {
    /// Looks `now`, in seconds.
    pub(super) fn look(&mut self, folders: &[PathBuf], now: f64) -> Look {
        let mut state = (0, 0, None);
        folders.iter().for_each(|folder| add(folder, &mut state));
        self.take(state, now)
    }

    fn take(&mut self, state: (usize, u64, Option<SystemTime>), now: f64) -> Look {
        let before = self.last.replace(state);
        if before.is_some_and(|before| before != state) && state.0 > 0 {
            self.changed = Some(now);
            return Look::Writing;
        }
        match self.changed {
            Some(changed) if now - changed >= QUIET => {
                self.changed = None;
                Look::Complete(changed)
            }
            Some(_) => Look::Writing,
            None => Look::Quiet,
        }
    }
}

fn add(folder: &Path, state: &mut (usize, u64, Option<SystemTime>)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        if state.0 >= MOST_FILES {
            return;
        }
        if found.is_dir() {
            add(&entry.path(), state);
        } else {
            state.0 += 1;
            state.1 += found.len();
            state.2 = state.2.max(found.modified().ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_complete_when_nothing_changes() {
        let mut saves = Saves::default();
        let looks = [(0, 0.0), (0, 0.1), (5, 0.2), (9, 0.3), (9, 0.4), (9, 1.1), (9, 1.2)];
        let seen = looks.map(|(bytes, now)| saves.take((usize::from(bytes > 0), bytes, None), now));
        use Look::{Complete, Quiet, Writing};
        assert_eq!(seen, [Quiet, Quiet, Writing, Writing, Writing, Complete(0.3), Quiet]);
    }
}
