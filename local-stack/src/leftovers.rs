//! What a stack has not cleaned up: by the emulator's word, and by looking at the disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Volumes, snapshots and attachments that are still there, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    volumes: BTreeSet<String>,
    snapshots: BTreeSet<String>,
    attachments: BTreeSet<String>,
}

impl Leftovers {
    /// Looks. `state` is the emulator's, `folder` its own.
    pub fn find(state: &Value, folder: &Path) -> Self {
        let told = |kind: &str, field: &str| {
            let all = state.pointer(&format!("/leftovers/{kind}")).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(|one| one.get(field)?.as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
        };
        let mut found = Self {
            volumes: told("volumes", "id"),
            snapshots: told("snapshots", "id"),
            attachments: told("attachments", "volume"),
        };
        found.volumes.extend(names(&folder.join("volumes")));
        found.snapshots.extend(names(&folder.join("snapshots")));
        found.attachments.extend(devices(folder));
        found.attachments.extend(loops(folder));
        found.attachments.extend(mounts(folder));
        found
    }

    /// The same without snapshots that are kept on purpose.
    pub fn without(mut self, kept: &BTreeSet<&str>) -> Self {
        self.snapshots.retain(|snapshot| !kept.contains(snapshot.as_str()));
        self
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.snapshots.is_empty() && self.attachments.is_empty()
    }

    /// Counts, as the summary has them.
    pub fn json(&self) -> Value {
        json!({
            "volumes": self.volumes.len(),
            "snapshots": self.snapshots.len(),
            "attachments": self.attachments.len(),
        })
    }

    /// All names, for people.
    pub fn names(&self) -> String {
        let all = self.volumes.iter().chain(&self.snapshots).chain(&self.attachments);
        all.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// Names in a folder; none where there is no folder. A file's ending (of an image) is not part of its name.
fn names(folder: &Path) -> Vec<String> {
    entries(folder).iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
}

/// Devices of instances.
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
        let told = json!({ "leftovers": { "volumes": [{ "id": "vol-1" }], "snapshots": [],
            "attachments": [{ "volume": "vol-1" }] } });
        assert!(Leftovers::find(&json!({}), folder.path()).is_empty());
        for path in ["volumes/vol-1", "volumes/vol-2", "snapshots", "instances/i-1/dev/disk/by-id/nvme-vol1"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        fs::write(folder.path().join("snapshots/snap-1.img"), "").unwrap();
        let found = Leftovers::find(&told, folder.path());
        assert_eq!(found.json(), json!({ "volumes": 2, "snapshots": 1, "attachments": 2 }));
        assert_eq!(found.names(), "vol-1, vol-2, snap-1, nvme-vol1, vol-1");
    }
}
