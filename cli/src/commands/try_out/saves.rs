//! When a training writes to its folder of checkpoints.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Unchanged for so many seconds, a checkpoint is complete.
const QUIET: f64 = 0.7;
/// A training whose checkpoints follow each other without such a pause has saved by now.
const NO_PAUSE: f64 = 3.0;
/// So many new files in that time are checkpoints; fewer may be one that takes long.
const SEVERAL: usize = 2;
/// Files that are looked at.
const MOST_FILES: usize = 10_000;

/// Files, bytes, and the newest change.
type State = (usize, u64, Option<SystemTime>);

/// Looks at the folder again and again.
#[derive(Debug, Default)]
pub(super) struct Saves {
    last: Option<State>,
    /// Since when it has changed without a pause, and what was there then.
    busy: Option<(f64, State)>,
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

    fn take(&mut self, state: State, now: f64) -> Look {
        let before = self.last.replace(state);
        if before.is_some_and(|before| before != state) && state.0 > 0 {
            self.changed = Some(now);
            return self.without_pause(state, now);
        }
        match self.changed {
            Some(changed) if now - changed >= QUIET => {
                (self.changed, self.busy) = (None, None);
                Look::Complete(changed)
            }
            Some(_) => Look::Writing,
            None => Look::Quiet,
        }
    }

    /// A change: a part of a checkpoint, or one of many that follow each other. Those are written again in place, or have
    /// new files, and one that takes long grows.
    fn without_pause(&mut self, state: State, now: f64) -> Look {
        let (since, then) = *self.busy.get_or_insert((now, state));
        if now - since < NO_PAUSE {
            return Look::Writing;
        }
        self.busy = Some((now, state));
        if state.1 <= then.1 || state.0 >= then.0 + SEVERAL { Look::Complete(now) } else { Look::Writing }
    }
}

fn add(folder: &Path, state: &mut State) {
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

    #[test]
    fn checkpoints_without_a_pause_between_them_are_seen() {
        let complete = |bytes: &dyn Fn(u32) -> (usize, u64)| {
            let mut saves = Saves::default();
            let looks = (0..100u32).map(|look| {
                let (files, bytes) = bytes(look);
                let changed = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(look.into());
                saves.take((files, bytes, Some(changed)), f64::from(look) / 10.0)
            });
            looks.filter(|look| matches!(look, Look::Complete(_))).count()
        };
        assert_eq!(complete(&|_| (1, 500)), 3, "one file, written again and again");
        assert_eq!(complete(&|look| (look as usize, u64::from(look) * 500)), 3, "a file for each epoch");
        assert_eq!(complete(&|look| (1, u64::from(look) * 500)), 0, "one large file");
    }
}
