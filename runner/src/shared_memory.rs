//! `/dev/shm` of the size that the sweep file asks for. PyTorch's data loaders pass their batches on through it.
//!
//! AWS Batch cannot override `sharedMemorySize` of a job (ContainerOverrides has no such member:
//! <https://docs.aws.amazon.com/batch/latest/APIReference/API_ContainerOverrides.html>). So the runner mounts another
//! one over that of its container. It is memory of the container, too.

use std::ffi::CString;

use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::exit::Failure;
use crate::log::say;

const SHARED_MEMORY: &str = "/dev/shm";

/// Mounts it, for the runner and all programs that it starts. Without privileges, the container's own has to do.
pub(crate) fn mount_of(mib: u32) -> Result<(), Failure> {
    let failed = |source| Failure::System("mount /dev/shm with the size of `shared_memory`", source);
    let options = CString::new(format!("size={mib}m,mode=1777")).map_err(|error| failed(error.into()))?;
    match mount("shm", SHARED_MEMORY, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options.as_c_str())) {
        Ok(()) => Ok(()),
        Err(Errno::PERM | Errno::ACCESS) => {
            let found = statvfs(SHARED_MEMORY).map_err(|errno| failed(errno.into()))?;
            let found_mib = found.f_blocks.saturating_mul(found.f_frsize) >> 20;
            say(&format!("without privileges {SHARED_MEMORY} keeps its {found_mib} MiB, instead of {mib} MiB"));
            Ok(())
        }
        Err(errno) => Err(failed(errno.into())),
    }
}
