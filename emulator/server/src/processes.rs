//! Reads the processes of this machine from /proc.

use std::fs;
use std::path::Path;

/// A process or a thread, as `/proc/<pid>/stat` shows it (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// The process's number. Another process may get it later, so only `started` identifies the process.
    pub pid: i32,
    /// `R` running, `S` and `D` waiting, `T` stopped, `Z` and `X` dead.
    pub state: char,
    /// The process that has started it, or its successor after that one's end.
    pub parent: i32,
    /// The process group.
    pub group: i32,
    /// The time of its start, in clock ticks since the machine's start.
    pub started: u64,
}

impl Process {
    /// Reads a file `stat`; `None` if the process no longer exists.
    pub fn read(path: &Path) -> Option<Self> {
        // A process chooses its name, which need not be UTF-8.
        let text = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
        // The name is in parentheses and may have any characters.
        let (start, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some(Self {
            pid: start.split_once(' ')?.0.parse().ok()?,
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            // This is the 22nd field of all, and the group is the fifth.
            started: fields.nth(16)?.parse().ok()?,
        })
    }

    /// Returns all processes.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes =
            entries.filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit));
        processes.filter_map(|entry| Self::read(&entry.path().join("stat"))).collect()
    }

    /// Whether it has ended, and its parent has not waited for it yet.
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
