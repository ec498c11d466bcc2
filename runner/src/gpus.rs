//! The GPUs that the command may use: those that ECS has assigned to the container.
//!
//! `trial-claim` asks ECS for them. `NVIDIA_VISIBLE_DEVICES` has their UUIDs only if NVIDIA's runtime is in mode
//! `legacy`; on today's images it is `void` (fact 57). A privileged container, which is needed to mount, has the device
//! files of all GPUs of its instance (fact 45, <https://github.com/NVIDIA/nvidia-docker/issues/764>).
#![expect(
    clippy::disallowed_methods,
    reason = "/proc and /dev are the host's: a training has no capability to change them"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::exit::Failure;
use crate::kernel;
use crate::log::say;

/// The driver's own list: a folder per GPU, by PCI address, with a file `information`
/// (<https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/kernel-open/nvidia/nv-procfs.c>).
const LIST: &str = "proc/driver/nvidia/gpus";
/// The variable that NVIDIA's runtime sets.
const GIVEN: &str = "NVIDIA_VISIBLE_DEVICES";
/// Its value if the runtime has chosen the container's GPUs by other means than this variable.
const CHOSEN: &str = "void";
/// Its value if an image or a job requests all GPUs.
const ALL: &str = "all";

/// Reads a variable of the runner's own environment.
type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The trial's GPUs, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpus {
    /// Their UUIDs; absent if they are not known.
    own: Option<Vec<String>>,
    /// `NVIDIA_VISIBLE_DEVICES`; empty if it is not set.
    given: String,
}

impl Gpus {
    /// Takes the UUIDs from the environment, or else those that ECS has `assigned`.
    pub(crate) fn find(inherited: Inherited<'_>, assigned: Option<Vec<String>>) -> Self {
        let given = inherited(GIVEN).unwrap_or_default();
        Self { own: named(&given).or(assigned), given }
    }

    /// Their UUIDs; absent if the trial may use all GPUs.
    pub(crate) fn own(&self) -> Option<&[String]> {
        self.own.as_deref()
    }

    /// Whether the container has GPUs, as far as is known.
    pub(crate) fn are_given(&self) -> bool {
        let by_runtime = || [CHOSEN, ALL].contains(&self.given.as_str());
        self.own.as_ref().map_or_else(by_runtime, |own| !own.is_empty())
    }

    /// `CUDA_VISIBLE_DEVICES`, unless the job sets it. Without it, all trials of an instance use its first GPU.
    pub(crate) fn variable(&self, inherited: Inherited<'_>) -> Option<(String, String)> {
        let own = self.own.as_ref()?.join(",");
        inherited("CUDA_VISIBLE_DEVICES").is_none().then(|| ("CUDA_VISIBLE_DEVICES".to_owned(), own))
    }

    /// The device files of other trials' GPUs, in `/dev` and where the job mounts the host's.
    ///
    /// # Errors
    /// If it is not known which GPUs are this trial's: it would train on another trial's GPU.
    pub(crate) fn of_others(&self, config: &Config) -> Result<Vec<PathBuf>, Failure> {
        let present = present(config);
        let minors = minors(&config.root.join(LIST));
        let others = self.choose(&present, &minors).map_err(Failure::Interrupted)?;
        if self.own.as_ref().is_some_and(Vec::is_empty) && !others.is_empty() {
            say("the trial asks for no GPU, and sees none of those of its instance");
        }
        Ok(others)
    }

    /// The files of `present` that belong to no GPU of this trial, or why they are not known.
    fn choose(&self, present: &[PathBuf], minors: &BTreeMap<String, u32>) -> Result<Vec<PathBuf>, String> {
        let numbers: BTreeSet<u32> = present.iter().filter_map(|path| number(path)).collect();
        let count = numbers.len();
        let own = match &self.own {
            // Only one trial can use a single GPU.
            None if count <= 1 => return Ok(Vec::new()),
            None => return Err(self.unknown(count, "ECS does not say which GPUs it has assigned to this container")),
            Some(own) if own.is_empty() && count > 0 && self.given == CHOSEN => {
                return Err(self.unknown(count, "ECS says that it has assigned no GPU to this container"));
            }
            // The container has no device files of other trials, so there is nothing to hide.
            Some(own) if count <= own.len() => return Ok(Vec::new()),
            Some(own) => own,
        };
        let listed = |uuid: &String| {
            minors.get(uuid).ok_or_else(|| self.unknown(count, &format!("the driver does not list {uuid}")))
        };
        let own = own.iter().map(listed).collect::<Result<BTreeSet<_>, _>>()?;
        let is_foreign = |path: &&PathBuf| number(path).is_some_and(|number| !own.contains(&number));
        Ok(present.iter().filter(is_foreign).cloned().collect())
    }

    fn unknown(&self, count: usize, why: &str) -> String {
        format!(
            "the instance shows {count} GPUs, and which are this trial's is not known: {why}, and {GIVEN}={:?} names none. \
             Update the control plane and the ECS agent, ask for GPUs with `resources`, or use instances with one GPU",
            self.given
        )
    }
}

/// Whether `trial-claim` has to ask ECS for the trial's GPUs.
pub(crate) fn are_to_be_asked_for(config: &Config, inherited: Inherited<'_>) -> bool {
    named(&inherited(GIVEN).unwrap_or_default()).is_none() && !present(config).is_empty()
}

/// The UUIDs in the variable, separated by commas.
fn named(given: &str) -> Option<Vec<String>> {
    given.starts_with("GPU-").then(|| given.split(',').map(|uuid| uuid.trim().to_owned()).collect())
}

/// The device files of all GPUs.
fn present(config: &Config) -> Vec<PathBuf> {
    let folders = BTreeSet::from([config.root.join("dev"), config.devices.clone()]);
    folders.iter().flat_map(|folder| device_files(folder)).collect()
}

/// The device files of GPUs in a folder.
pub(crate) fn device_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| number(path).is_some()).collect()
}

/// The device's minor number, such as `3` for `/dev/nvidia3`. `nvidiactl` and `nvidia-uvm` have none: they serve all
/// GPUs.
fn number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("nvidia")?.parse().ok()
}

/// Minor numbers by UUID.
fn minors(list: &Path) -> BTreeMap<String, u32> {
    let folders = fs::read_dir(list).into_iter().flatten().flatten();
    folders.filter_map(|folder| described(&kernel::text(folder.path().join("information")).ok()?)).collect()
}

/// Reads lines such as `GPU UUID: GPU-5a2c…` and `Device Minor: 0`, with tabs before the values.
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
    fn the_driver_describes_a_gpu() {
        let text = "Model: \t\t Tesla T4\nIRQ:   \t\t 10\nGPU UUID: \t GPU-b\nBus Location: \t 0000:00:1e.0\nDevice Minor: \t 1\n";
        assert_eq!(described(text), Some(("GPU-b".to_owned(), 1)));
        assert_eq!(described("GPU UUID: GPU-b\n"), None);
        assert_eq!(["nvidiactl", "nvidia-uvm", "nvidia", "sda"].map(|name| number(Path::new(name))), [None; 4]);
    }

    /// NVIDIA_VISIBLE_DEVICES, what ECS has assigned, and the trial's GPUs.
    #[test]
    fn the_environment_names_the_gpus_or_ecs_does() {
        type Uuids<'a> = Option<&'a [&'a str]>;
        let cases: [(Option<&str>, Uuids<'_>, Uuids<'_>, bool); 9] = [
            (Some("GPU-a, GPU-b"), None, Some(&["GPU-a", "GPU-b"]), true),
            (Some("GPU-a"), Some(&["GPU-b"]), Some(&["GPU-a"]), true),
            (Some("void"), Some(&["GPU-b"]), Some(&["GPU-b"]), true),
            (Some("all"), Some(&["GPU-b"]), Some(&["GPU-b"]), true),
            (None, Some(&[]), Some(&[]), false),
            (Some("void"), None, None, true),
            (Some("all"), None, None, true),
            (Some("none"), None, None, false),
            (None, None, None, false),
        ];
        let list = |uuids: &[&str]| uuids.iter().map(|uuid| (*uuid).to_owned()).collect::<Vec<_>>();
        for (given, assigned, own, are_given) in cases {
            let inherited = |name: &str| given.filter(|_| name == GIVEN).map(str::to_owned);
            let gpus = Gpus::find(&inherited, assigned.map(list));
            assert_eq!((gpus.own.clone(), gpus.are_given()), (own.map(list), are_given), "{given:?} {assigned:?}");
            assert_eq!(gpus.variable(&inherited).map(|(_, uuids)| uuids), own.map(|own| own.join(",")));
            assert_eq!(gpus.variable(&|_| Some("0".to_owned())), None, "the job's own stays");
        }
    }

    #[test]
    fn only_the_files_of_the_trials_own_gpus_stay() {
        let minors = BTreeMap::from([("GPU-a".to_owned(), 0), ("GPU-b".to_owned(), 1), ("GPU-c".to_owned(), 12)]);
        let files = |names: &[&str]| names.iter().map(|name| Path::new("/dev").join(name)).collect::<Vec<_>>();
        let all: &[&str] = &["nvidia0", "nvidia1", "nvidia12"];
        // Device files, the trial's GPUs, NVIDIA_VISIBLE_DEVICES, and the files of other trials or a part of the error.
        type Case<'a> = (&'a [&'a str], Option<&'a [&'a str]>, &'a str, Result<&'a [&'a str], &'a str>);
        let cases: [Case<'_>; 12] = [
            (all, Some(&["GPU-b"]), "void", Ok(&["nvidia0", "nvidia12"])),
            (all, Some(&["GPU-c", "GPU-a"]), "GPU-c,GPU-a", Ok(&["nvidia1"])),
            (all, Some(&["GPU-a", "GPU-b", "GPU-c"]), "void", Ok(&[])),
            (all, Some(&["GPU-x"]), "void", Err("the driver does not list GPU-x")),
            // A container without privileges has only its own device file.
            (&["nvidia1"], Some(&["GPU-x"]), "void", Ok(&[])),
            (&[], Some(&["GPU-x"]), "void", Ok(&[])),
            // The trial asks for no GPU, but the image or NVIDIA's runtime would give it all.
            (all, Some(&[]), "all", Ok(all)),
            (all, Some(&[]), "void", Err("it has assigned no GPU")),
            (all, None, "void", Err("the instance shows 3 GPUs")),
            (all, None, "", Err("the instance shows 3 GPUs")),
            (&["nvidia0"], None, "void", Ok(&[])),
            (&[], None, "", Ok(&[])),
        ];
        for (present, own, given, expected) in cases {
            let own = own.map(|own| own.iter().map(|uuid| (*uuid).to_owned()).collect());
            let found = Gpus { own, given: given.to_owned() }.choose(&files(present), &minors);
            match expected {
                Ok(others) => assert_eq!(found, Ok(files(others)), "{present:?} {given}"),
                Err(reason) => assert!(found.as_ref().is_err_and(|said| said.contains(reason)), "{found:?}"),
            }
        }
    }
}
