//! Creates a mount namespace for the process.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

/// The right by which the process mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// The process is privileged on this machine.
    OfTheMachine,
    /// The process is only privileged in a user namespace of its own.
    OfAUserNamespace,
}

/// Creates the namespace, inside a new user namespace if the process is not privileged. Its user and group keep their
/// numbers.
pub(super) fn own() -> io::Result<Rights> {
    let rights = match unshare(UnshareFlags::NEWNS) {
        Ok(()) => Rights::OfTheMachine,
        // A limit of 0 namespaces gives ENOSPC (namespaces(7)).
        Err(Errno::PERM | Errno::NOSPC) => {
            own_user_namespace()?;
            Rights::OfAUserNamespace
        }
        Err(errno) => return Err(errno.into()),
    };
    // Mounts in the namespace stay there, but an unmount outside also reaches it.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(rights)
}

/// Creates a user namespace. A process without privileges may only map its own user and group, and the group only after
/// it has given up setgroups(2) (user_namespaces(7)).
fn own_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Calls unshare. The call is deprecated because of another flag, `UnshareFlags::FILES`, which is not used here.
#[expect(deprecated, reason = "its replacement is an unsafe function, which no crate of this workspace may call")]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}
