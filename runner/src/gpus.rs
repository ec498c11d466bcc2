//! The GPUs that the command may use: those that ECS has assigned to the container.
//!
//! ECS names them in `NVIDIA_VISIBLE_DEVICES`, by UUID. A privileged container, as one that mounts needs to be, has the
//! device files of all GPUs of its instance all the same (fact 45,
//! <https://github.com/NVIDIA/nvidia-docker/issues/764>).
#![expect(
    clippy::disallowed_methods,
    reason = "/proc and /dev are the host's: a training has no capability to change them"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::kernel;
use crate::log::say;

/// The driver's own list: a folder per GPU, by PCI address, with a file `information`
/// (<https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/kernel-open/nvidia/nv-procfs.c>).
const LIST: &str = "proc/driver/nvidia/gpus";

/// Reads a variable of the runner's own environment.
type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `CUDA_VISIBLE_DEVICES` where the job does not set it: without it, all trials of an instance use its first GPU.
pub(crate) fn variable(inherited: Inherited<'_>) -> Option<(String, String)> {
    let gpus = assigned(inherited)?;
    inherited("CUDA_VISIBLE_DEVICES").is_none().then(|| ("CUDA_VISIBLE_DEVICES".to_owned(), gpus))
}

/// The UUIDs, separated by commas. `all` and `none` are NVIDIA's words for images, and assign nothing.
pub(crate) fn assigned(inherited: Inherited<'_>) -> Option<String> {
    inherited("NVIDIA_VISIBLE_DEVICES").filter(|gpus| gpus.starts_with("GPU-"))
}

/// Whether the container was given GPUs, by UUID or as `all`.
pub(crate) fn is_given(inherited: Inherited<'_>) -> bool {
    inherited("NVIDIA_VISIBLE_DEVICES").is_some_and(|gpus| !["", "none", "void"].contains(&gpus.as_str()))
}

/// The device files of GPUs that are other trials', in `/dev` and where the job mounts the host's.
pub(crate) fn of_others(config: &Config, inherited: Inherited<'_>) -> Vec<PathBuf> {
    let Some(assigned) = assigned(inherited) else { return Vec::new() };
    let assigned: Vec<&str> = assigned.split(',').map(str::trim).collect();
    let folders = BTreeSet::from([config.root.join("dev"), config.devices.clone()]);
    let present: Vec<PathBuf> = folders.iter().flat_map(|folder| device_files(folder)).collect();
    let minors = minors(&config.root.join(LIST));
    choose(&present, &assigned, &minors).unwrap_or_else(|unknown| {
        say(&format!(
            "the driver does not list {unknown}: the command sees the device files of all GPUs of the instance, and \
             only CUDA_VISIBLE_DEVICES keeps it to its own"
        ));
        Vec::new()
    })
}

/// Those of `present` that belong to no assigned GPU; an assigned GPU that the driver does not list as the error.
fn choose<'a>(
    present: &[PathBuf],
    assigned: &[&'a str],
    minors: &BTreeMap<String, u32>,
) -> Result<Vec<PathBuf>, &'a str> {
    let numbers: BTreeSet<u32> = present.iter().filter_map(|path| number(path)).collect();
    // Where the container has no other device files, nothing has to be known about them.
    if numbers.len() <= assigned.len() {
        return Ok(Vec::new());
    }
    let own = assigned.iter().map(|uuid| minors.get(*uuid).ok_or(*uuid)).collect::<Result<BTreeSet<_>, _>>()?;
    let is_foreign = |path: &&PathBuf| number(path).is_some_and(|number| !own.contains(&number));
    Ok(present.iter().filter(is_foreign).cloned().collect())
}

/// The device files of GPUs in a folder.
pub(crate) fn device_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| number(path).is_some()).collect()
}

/// `3` for `/dev/nvidia3`: the device's minor number. `nvidiactl` and `nvidia-uvm` serve all GPUs.
fn number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("nvidia")?.parse().ok()
}

/// Minor numbers by UUID.
fn minors(list: &Path) -> BTreeMap<String, u32> {
    let folders = fs::read_dir(list).into_iter().flatten().flatten();
    folders.filter_map(|folder| described(&kernel::text(folder.path().join("information")).ok()?)).collect()
}

/// Lines such as `GPU UUID: GPU-5a2c…` and `Device Minor: 0`, with tabs before the values.
fn described(text: &str) -> Option<(String, u32)> {
    let field = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
    };
    Some((field("GPU UUID")?.to_owned(), field("Device Minor")?.parse().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_assigned_gpus_stay() {
        let text = "Model: \t\t Tesla T4\nIRQ:   \t\t 10\nGPU UUID: \t GPU-b\nBus Location: \t 0000:00:1e.0\nDevice Minor: \t 1\n";
        assert_eq!(described(text), Some(("GPU-b".to_owned(), 1)));
        assert_eq!(described("GPU UUID: GPU-b\n"), None);

        let minors = BTreeMap::from([("GPU-a".to_owned(), 0), ("GPU-b".to_owned(), 1), ("GPU-c".to_owned(), 12)]);
        let files = |names: &[&str]| names.iter().map(|name| Path::new("/dev").join(name)).collect::<Vec<_>>();
        let all = ["nvidia0", "nvidia1", "nvidia12"];
        // Device files, assigned GPUs, and the files of others; an error is a GPU that the driver does not list.
        let cases = [
            (&all[..], vec!["GPU-b"], Ok(files(&["nvidia0", "nvidia12"]))),
            (&all, vec!["GPU-c", "GPU-a"], Ok(files(&["nvidia1"]))),
            (&all, vec!["GPU-a", "GPU-b", "GPU-c"], Ok(Vec::new())),
            (&all, vec!["GPU-x"], Err("GPU-x")),
            // As a container without privileges has it: its own alone.
            (&["nvidia1"], vec!["GPU-x"], Ok(Vec::new())),
            (&[], vec!["GPU-x"], Ok(Vec::new())),
        ];
        for (present, assigned, expected) in cases {
            assert_eq!(choose(&files(present), &assigned, &minors), expected, "{present:?} {assigned:?}");
        }
        assert_eq!(["nvidiactl", "nvidia-uvm", "nvidia", "sda"].map(|name| number(Path::new(name))), [None; 4]);
    }
}
