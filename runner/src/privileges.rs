//! What the training command may not do: gain privileges, use capabilities, be another user.
//!
//! The runner itself may need a privileged container, to mount the workspace; the command never
//! does. Runs in the child between fork and exec, where it has one thread, so that what the
//! kernel keeps per thread is the process's.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::user::User;

/// Gives up, for good, everything that the command does not need; becomes `user` where one is
/// given, which only root can.
pub(crate) fn drop(user: Option<&User>) -> io::Result<()> {
    // First of all: from here on no program file can give anything back, not even to root.
    set_no_new_privs(true)?;
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            // The kernel has no more capabilities.
            Err(Errno::INVAL) => break,
            // Without CAP_SETPCAP the set stays; without new privileges nothing comes of it.
            Ok(()) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    if let Some(user) = user {
        // In this order: each step needs the capabilities that the last one takes away.
        set_thread_groups(&user.groups)?;
        set_thread_res_gid(user.gid, user.gid, user.gid)?;
        set_thread_res_uid(user.uid, user.uid, user.uid)?;
    }
    match clear_ambient_capability_set() {
        // Kernels before 4.3 have no such set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(errno.into()),
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}
