//! A mount namespace of the process's own.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

/// By what right the process mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// It is privileged on this machine.
    OfTheMachine,
    /// Only in a user namespace of its own.
    OfAUserNamespace,
}

/// Makes the namespace, with a user namespace around it where the process is not privileged. Its user and group keep
/// their numbers.
pub(super) fn own() -> io::Result<Rights> {
    let rights = match unshare(UnshareFlags::NEWNS) {
        Ok(()) => Rights::OfTheMachine,
        // The latter is what a limit of 0 namespaces answers (namespaces(7)).
        Err(Errno::PERM | Errno::NOSPC) => {
            own_user_namespace()?;
            Rights::OfAUserNamespace
        }
        Err(errno) => return Err(errno.into()),
    };
    // What is mounted here stays here; what is unmounted outside goes here too.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(rights)
}

/// A process without privileges may map its own user and group only, and the group only once it has given up
/// setgroups(2) (user_namespaces(7)).
fn own_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The hazard for which the call is deprecated is that of another flag, `UnshareFlags::FILES`.
#[expect(deprecated, reason = "its replacement is an unsafe function, which no crate of this workspace may call")]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}
