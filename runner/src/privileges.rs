//! Drops the training command's rights to gain privileges, to use capabilities and to be another user.
//!
//! The runner itself may need a privileged container to mount the workspace; the command never does. This code runs in
//! the child between fork and exec. The child has one thread, so the kernel's settings of the thread hold for the whole
//! process.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::user::User;

/// Permanently drops everything that the command does not need. Becomes `user` if one is given, which needs root.
pub(crate) fn drop(user: Option<&User>) -> io::Result<()> {
    // This comes first: after it no program file can give a privilege back, not even to root.
    set_no_new_privs(true)?;
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            // The kernel has no more capabilities.
            Err(Errno::INVAL) => break,
            // Without CAP_SETPCAP the set stays, but it has no effect without new privileges.
            Ok(()) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    if let Some(user) = user {
        // The order matters: each step needs capabilities that the last one removes.
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
