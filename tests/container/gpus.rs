//! Makes the device files and the driver's list of an instance's two GPUs. ECS has assigned one of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::Value;

/// Two GPUs. Dropping this removes them.
pub(crate) struct Gpus {
    /// The device files' numbers. The trial's own is first.
    numbers: [u32; 2],
    /// The folder that stands for `/proc/driver`.
    pub(crate) driver: PathBuf,
}

impl Gpus {
    /// Makes GPUs with the number `first` and the next one, which no GPU of this machine has.
    pub(crate) fn make(folder: &Path, first: u32) -> Self {
        let gpus = Self { numbers: [first, first + 1], driver: folder.join("driver") };
        for (number, uuid) in gpus.numbers.into_iter().zip(["GPU-own", "GPU-other"]) {
            let described = gpus.driver.join(format!("nvidia/gpus/0000:00:{uuid}"));
            fs::create_dir_all(&described).unwrap();
            let text = format!("Model: \t\t NVIDIA A10G\nGPU UUID: \t {uuid}\nDevice Minor: \t {number}\n");
            fs::write(described.join("information"), text).unwrap();
            // The device answers as /dev/null does.
            mknodat(CWD, file(number), FileType::CharacterDevice, Mode::empty(), makedev(1, 3)).unwrap();
            fs::set_permissions(file(number), fs::Permissions::from_mode(0o666)).unwrap();
        }
        gpus
    }

    /// Name of the trial's own device file.
    pub(crate) fn own(&self) -> String {
        name(self.numbers[0])
    }

    /// Those of the names that belong to these two GPUs. Tests that run at the same time have theirs in the same
    /// `/dev`, and may make them after the runner has listed it.
    pub(crate) fn among(&self, names: &Value) -> Vec<String> {
        let is_listed = |name: &String| names.as_array().unwrap().iter().any(|listed| listed == name);
        self.numbers.map(name).into_iter().filter(is_listed).collect()
    }
}

impl Drop for Gpus {
    fn drop(&mut self) {
        for number in self.numbers {
            if let Err(problem) = fs::remove_file(file(number)) {
                eprintln!("{} is left: {problem}", file(number).display());
            }
        }
    }
}

fn file(number: u32) -> PathBuf {
    Path::new("/dev").join(name(number))
}

fn name(number: u32) -> String {
    format!("nvidia{number}")
}
