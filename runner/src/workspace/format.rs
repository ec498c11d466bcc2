//! Detects what a block device contains, and makes a file system if it is blank.
#![expect(
    clippy::disallowed_methods,
    reason = "a device of the host's: a training has no capability to open it, and none has run in this container yet"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::WorkspaceError;

/// How many bytes are read. Every file system, partition table and volume manager writes something there.
const PROBE_BYTES: u64 = 1024 * 1024;
/// `s_magic` of ext2, ext3 and ext4; ext4's driver mounts all three
/// (<https://docs.kernel.org/filesystems/ext4/super.html>).
const EXT_MAGIC: ([u8; 2], usize) = ([0x53, 0xef], 1024 + 0x38);
/// XFS's magic: <https://docs.kernel.org/filesystems/xfs/xfs-self-describing-metadata.html>
const XFS_MAGIC: ([u8; 4], usize) = (*b"XFSB", 0);

/// The place of the mark: among data blocks, which mkfs.ext4 does not write. It writes only the start of block groups
/// and the last 64 KiB.
const MARK_FROM_END: i64 = 1024 * 1024;

const MKFS: &str = "mkfs.ext4";
/// The folder of the instance's mkfs.ext4, which the launch template's script makes.
const OF_INSTANCE: &str = "e2fsprogs";

/// What a device contains, according to its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Ext4,
    Xfs,
    /// Nothing but zeros, which is how EBS creates a new volume.
    Blank,
    /// Anything else.
    Unknown,
}

pub(super) fn probe(device: &Path) -> io::Result<Content> {
    let mut bytes = Vec::new();
    File::open(device)?.take(PROBE_BYTES).read_to_end(&mut bytes)?;
    let holds = |magic: &[u8], at: usize| bytes.get(at..at + magic.len()) == Some(magic);
    Ok(if holds(&EXT_MAGIC.0, EXT_MAGIC.1) {
        Content::Ext4
    } else if holds(&XFS_MAGIC.0, XFS_MAGIC.1) {
        Content::Xfs
    } else if bytes.iter().all(|byte| *byte == 0) {
        Content::Blank
    } else {
        Content::Unknown
    })
}

/// Makes an ext4 file system, without blocks reserved for root, because the command may run as any user. A mark is on
/// the device until the file system is complete. If the attempt ends before that, the next one detects it by the mark.
pub(super) fn make(device: &Path, volume: &str) -> Result<(), WorkspaceError> {
    let mark = mark(volume);
    write_mark(device, &mark).map_err(WorkspaceError::Format)?;
    // Discarding would remove the mark; a blank volume has nothing to discard.
    let options = ["-q", "-m", "0", "-E", "nodiscard"];
    let mut mkfs = std::env::current_exe().ok().and_then(|runner| of_instance(&runner));
    let mkfs = mkfs.get_or_insert_with(|| Command::new(MKFS));
    match mkfs.args(options).arg(device).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(WorkspaceError::Format(io::Error::other(format!("{}: {text}", output.status))));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            write_mark(device, &vec![0; mark.len()]).map_err(WorkspaceError::Format)?;
            return Err(WorkspaceError::NoFormatter);
        }
        Err(error) => return Err(WorkspaceError::Format(error)),
    }
    write_mark(device, &vec![0; mark.len()]).map_err(WorkspaceError::Format)
}

/// The instance's mkfs.ext4, which lies next to its runner with its libraries and their loader: the image may have
/// another C library, or none. `None` if the runner is the image's.
fn of_instance(runner: &Path) -> Option<Command> {
    let folder = runner.parent()?.join(OF_INSTANCE);
    folder.join(MKFS).exists().then(|| {
        let mut loader = Command::new(folder.join("ld.so"));
        loader.arg("--library-path").arg(&folder).arg(folder.join(MKFS));
        loader
    })
}

/// Whether an attempt has died while it made this volume's file system. Then nothing was ever mounted.
pub(super) fn is_half_made(device: &Path, volume: &str) -> io::Result<bool> {
    let mark = mark(volume);
    let mut found = vec![0; mark.len()];
    let mut device = File::open(device)?;
    device.seek(SeekFrom::End(-MARK_FROM_END))?;
    device.read_exact(&mut found)?;
    Ok(found == mark)
}

fn mark(volume: &str) -> Vec<u8> {
    format!("spotsweep makes a file system on {volume}\n").into_bytes()
}

fn write_mark(device: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut device = OpenOptions::new().write(true).open(device)?;
    device.seek(SeekFrom::End(-MARK_FROM_END))?;
    device.write_all(bytes)?;
    device.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_zeros_are_blank() {
        // Byte strings with their offsets, the number of zeros they are in, and the result.
        type Case<'a> = (&'a [(usize, &'a [u8])], usize, Content);
        let cases: [Case<'_>; 7] = [
            (&[], 2 << 20, Content::Blank),
            (&[(1080, &[0x53, 0xef])], 2 << 20, Content::Ext4),
            (&[(0, b"XFSB")], 2 << 20, Content::Xfs),
            (&[(510, &[0x55, 0xaa])], 2 << 20, Content::Unknown),
            (&[((1 << 20) - 1, &[1])], 2 << 20, Content::Unknown),
            (&[(1080, &[0x53])], 1081, Content::Unknown),
            (&[(0, b"XF")], 2, Content::Unknown),
        ];
        for (marks, bytes, expected) in cases {
            let mut content = vec![0; bytes];
            for (at, mark) in marks {
                content[*at..at + mark.len()].copy_from_slice(mark);
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), content).unwrap();
            assert_eq!(probe(file.path()).unwrap(), expected, "{marks:?}");
        }
    }
}
