//! Finds what a stack has not cleaned up, in the emulator's state and on the disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Names of volumes, snapshots and attachments that still exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    volumes: BTreeSet<String>,
    snapshots: BTreeSet<String>,
    attachments: BTreeSet<String>,
}

impl Leftovers {
    /// Finds them. `state` is the emulator's state, and `folder` is its folder.
    pub fn find(state: &Value, folder: &Path) -> Self {
        let listed = |kind: &str, field: &str| {
            let all = state.pointer(&format!("/leftovers/{kind}")).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(|one| one.get(field)?.as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
        };
        let mut found = Self {
            volumes: listed("volumes", "id"),
            snapshots: listed("snapshots", "id"),
            attachments: listed("attachments", "volume"),
        };
        found.volumes.extend(names(&folder.join("volumes")));
        found.snapshots.extend(names(&folder.join("snapshots")));
        found.attachments.extend(devices(folder));
        found.attachments.extend(loops(folder));
        found.attachments.extend(mounts(folder));
        found
    }

    /// Leaves out the snapshots that are kept on purpose.
    pub fn without(mut self, kept: &BTreeSet<&str>) -> Self {
        self.snapshots.retain(|snapshot| !kept.contains(snapshot.as_str()));
        self
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.snapshots.is_empty() && self.attachments.is_empty()
    }

    /// The counts as the summary has them.
    pub fn json(&self) -> Value {
        json!({
            "volumes": self.volumes.len(),
            "snapshots": self.snapshots.len(),
            "attachments": self.attachments.len(),
        })
    }

    /// All names, as text for people.
    pub fn names(&self) -> String {
        let all = self.volumes.iter().chain(&self.snapshots).chain(&self.attachments);
        all.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The names in a folder, without the extension of images. Returns none if there is no folder.
fn names(folder: &Path) -> Vec<String> {
    entries(folder).iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
}

/// The attached devices of all instances.
fn devices(folder: &Path) -> Vec<String> {
    let instances = entries(&folder.join("instances"));
    instances.iter().flat_map(|instance| names(&instance.join("dev/disk/by-id"))).collect()
}

/// Loop devices whose image lies in the folder, as `/sys/block/<name>`.
pub(crate) fn loops(folder: &Path) -> Vec<String> {
    let all = entries(Path::new("/sys/block"));
    let backed = all.iter().filter(|device| {
        fs::read_to_string(device.join("loop/backing_file"))
            .is_ok_and(|file| Path::new(file.trim()).starts_with(folder))
    });
    backed.map(|device| device.display().to_string()).collect()
}

/// Mount points in the folder.
pub(crate) fn mounts(folder: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    points.filter(|point| Path::new(point).starts_with(folder)).map(str::to_owned).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_and_the_state_are_both_believed() {
        let folder = tempfile::tempdir().unwrap();
        let state = json!({ "leftovers": { "volumes": [{ "id": "vol-1" }], "snapshots": [],
            "attachments": [{ "volume": "vol-1" }] } });
        assert!(Leftovers::find(&json!({}), folder.path()).is_empty());
        for path in ["volumes/vol-1", "volumes/vol-2", "snapshots", "instances/i-1/dev/disk/by-id/nvme-vol1"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        fs::write(folder.path().join("snapshots/snap-1.img"), "").unwrap();
        let found = Leftovers::find(&state, folder.path());
        assert_eq!(found.json(), json!({ "volumes": 2, "snapshots": 1, "attachments": 2 }));
        assert_eq!(found.names(), "vol-1, vol-2, snap-1, nvme-vol1, vol-1");
    }
}
