//! What runs on this machine, as /proc tells it.

use std::fs;
use std::path::Path;

/// A process or a thread, as `/proc/<pid>/stat` shows it (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number. Another process may have it later: only `started` says which one is meant.
    pub pid: i32,
    /// `R` running, `S` and `D` waiting, `T` stopped, `Z` and `X` dead.
    pub state: char,
    /// Who has started it, or whoever looks after it since that one's end.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// When it was started, in ticks of the clock since the machine was.
    pub started: u64,
}

impl Process {
    /// Reads one file `stat`; none where there is no such process any more.
    pub fn read(path: &Path) -> Option<Self> {
        // A process chooses its name, which need not be UTF-8.
        let text = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
        // The name stands in parentheses and may hold any characters.
        let (start, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some(Self {
            pid: start.split_once(' ')?.0.parse().ok()?,
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            // The 22nd field of all; the group is the fifth.
            started: fields.nth(16)?.parse().ok()?,
        })
    }

    /// All that there are.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes =
            entries.filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit));
        processes.filter_map(|entry| Self::read(&entry.path().join("stat"))).collect()
    }

    /// Whether it has ended, and only waits for its parent to notice.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_them() {
        let own = Process::all().into_iter().find(|process| process.pid.cast_unsigned() == std::process::id());
        let read = Process::read(Path::new("/proc/self/stat"));
        assert!(own.is_some_and(|own| !own.is_dead() && own.started > 0), "{own:?}");
        assert_eq!(own.map(|own| (own.pid, own.started)), read.map(|own| (own.pid, own.started)));
    }
}
