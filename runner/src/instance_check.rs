//! Checks before the claim whether this instance is unfit. ECS does not see a GPU that has failed, and Batch places the
//! next trial on the instance that has just become free (fact 60).
//!
//! These checks do not depend on the trial, so a defect costs an attempt and no trial: see `decide/unfit_instance.rs`.
//! The clock is not checked, because the SDK compares it with AWS's answers and corrects its signatures.
#![expect(clippy::disallowed_methods, reason = "/proc and /dev are the host's, and no training runs yet")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{StatVfsMountFlags, statvfs};
use tokio::process::Command;
use tokio::time::timeout;

use crate::config::Config;
use crate::gpu_activity::PROGRAM;
use crate::gpus;
use crate::launch::Launcher;

/// If less is free on a container's disk, other containers have filled it.
const LEAST_BYTES: u64 = 256 << 20;
const LEAST_FILES: u64 = 1_000;
/// A file system up to this size is small on purpose, and not checked.
const SMALL_BYTES: u64 = 1 << 30;

const ARGUMENTS: [&str; 2] = ["--query-gpu=uuid,memory.total,memory.used", "--format=csv,noheader,nounits"];
/// Unless it is kept initialized, the driver first initializes each GPU: some seconds each, for at most sixteen GPUs.
const LIMIT: Duration = Duration::from_secs(90);
/// The driver's folder, with its list of GPUs.
const DRIVER: &str = "proc/driver/nvidia";
/// The number of characters of an answer that a defect quotes.
const QUOTED: usize = 120;

/// The instance's defect; `None` if there is none.
pub(crate) async fn defect(config: &Config) -> Option<String> {
    let folders = [Path::new("/"), &config.root];
    if let Some(full) = folders.into_iter().find_map(full) {
        return Some(full);
    }
    if config.gpus == 0 {
        return None;
    }
    let present = gpus::device_files(&config.root.join("dev")).len();
    match ask(config).await {
        Some(Ok(answer)) => unanswered(&answer, config.gpus, present),
        Some(Err(problem)) => Some(problem),
        None => unlisted(&config.root.join(DRIVER), config.gpus),
    }
}

/// The defect if the disk has no room for the files of a training and its libraries.
fn full(folder: &Path) -> Option<String> {
    let found = statvfs(folder).ok()?;
    let (size, free) = (found.f_blocks.saturating_mul(found.f_frsize), found.f_bavail.saturating_mul(found.f_frsize));
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) || size < SMALL_BYTES {
        return None;
    }
    let folder = folder.display();
    if free < LEAST_BYTES {
        return Some(format!("the disk of {folder} is full: {} MiB of {} are free", free >> 20, size >> 20));
    }
    // Some file systems have no fixed number of files.
    let lacks_files = found.f_files > 0 && found.f_favail < LEAST_FILES;
    lacks_files.then(|| format!("the disk of {folder} is full: it takes {} more files", found.f_favail))
}

/// The answer of `nvidia-smi`, or why there is none. `None` if the image does not have it.
async fn ask(config: &Config) -> Option<Result<Answer, String>> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder.join(PROGRAM).exists()) {
        return None;
    }
    let words: Vec<String> = [PROGRAM].into_iter().chain(ARGUMENTS).map(str::to_owned).collect();
    let output = async {
        let mut command = Command::from(Launcher::before_claim(config).command(&words)?);
        command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).output().await
    };
    Some(match timeout(LIMIT, output).await {
        Ok(Ok(output)) => Ok(Answer {
            rows: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaint: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
        Ok(Err(error)) => Err(format!("{PROGRAM} cannot be started: {error}")),
        Err(_elapsed) => Err(format!("{PROGRAM} does not answer within {LIMIT:?}")),
    })
}

/// The output of `nvidia-smi`.
struct Answer {
    rows: String,
    complaint: String,
}

/// The defect if fewer GPUs answer than the job asks for, or than have device files here: only the grant names the
/// trial's own. If all GPUs of the instance are the trial's, used memory is a defect too.
fn unanswered(answer: &Answer, asked: usize, present: usize) -> Option<String> {
    let rows: Vec<Gpu<'_>> = answer.rows.lines().filter_map(Gpu::read).collect();
    let wanted = asked.max(present);
    if rows.len() < wanted {
        let is_other = |line: &&str| !line.trim().is_empty() && Gpu::read(line).is_none();
        let said = answer.rows.lines().chain(answer.complaint.lines()).find(is_other);
        let said = said.map(|line| format!(": {}", line.trim().chars().take(QUOTED).collect::<String>()));
        return Some(format!("{} of {wanted} GPUs answer{}", rows.len(), said.unwrap_or_default()));
    }
    let taken = rows.iter().find(|gpu| rows.len() == asked && gpu.is_taken());
    taken.map(|Gpu { uuid, total, used }| {
        let [total, used] = [total, used].map(|mib| mib.unwrap_or_default());
        format!("{used} of {total} MiB of {uuid} are in use, and nothing runs here yet")
    })
}

/// A GPU that answers, and its memory in MiB. GPUs that share the host's memory have no figures.
#[derive(Debug, PartialEq, Eq)]
struct Gpu<'a> {
    uuid: &'a str,
    total: Option<u64>,
    used: Option<u64>,
}

impl<'a> Gpu<'a> {
    /// Reads a line such as `GPU-5a2c…, 15360, 3`. A lost GPU has no UUID, or `[Unknown Error]` or `[GPU is lost]` as
    /// figures.
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.split(',').map(str::trim);
        let (uuid, total, used) = (fields.next()?, fields.next()?, fields.next()?);
        let is_known = |figure: &str| figure.parse::<u64>().is_ok_and(|mib| mib > 0) || figure == "[N/A]";
        let gpu = Self { uuid, total: total.parse().ok(), used: used.parse().ok() };
        (uuid.starts_with("GPU-") && is_known(total)).then_some(gpu)
    }

    /// Whether more than half of its memory is in use.
    fn is_taken(&self) -> bool {
        self.total.zip(self.used).is_some_and(|(total, used)| used > total / 2)
    }
}

/// The defect if the driver lists too few GPUs. It is used if the image has no `nvidia-smi`.
fn unlisted(driver: &Path, asked: usize) -> Option<String> {
    if !driver.exists() {
        return Some("there is no NVIDIA driver".to_owned());
    }
    let listed = fs::read_dir(driver.join("gpus")).into_iter().flatten().flatten().count();
    (listed < asked).then(|| format!("the driver lists {listed} of {asked} GPUs"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_do_not_answer_are_counted() {
        let lost = "Unable to determine the device handle for GPU 0000:00:1E.0: GPU is lost.  Reboot the system";
        // The rows and errors of `nvidia-smi`, the GPUs asked for, the device files, and a part of the defect.
        let cases = [
            ("GPU-a, 15360, 3\n", "", 1, 1, None),
            // A container without privileges has only its own device files.
            ("GPU-a, 15360, 3\n", "", 1, 0, None),
            ("GPU-a, [N/A], [N/A]\n", "", 1, 1, None),
            ("", lost, 1, 1, Some("0 of 1 GPUs answer: Unable to determine")),
            ("GPU-a, [Unknown Error], [Unknown Error]\n", "", 1, 1, Some("0 of 1 GPUs answer: GPU-a, [Unknown")),
            ("No devices were found\n", "", 1, 0, Some("0 of 1 GPUs answer: No devices")),
            ("GPU-a, 15360, 3\n", "", 2, 1, Some("1 of 2 GPUs answer")),
            // The third one may be this trial's.
            ("GPU-a, 15360, 3\nGPU-b, 15360, 3\n", lost, 1, 3, Some("2 of 3 GPUs answer: Unable")),
            ("GPU-a, 15360, 14000\n", "", 1, 1, Some("14000 of 15360 MiB of GPU-a are in use")),
            // GPU-a may be another trial's.
            ("GPU-a, 15360, 14000\nGPU-b, 15360, 3\n", "", 1, 2, None),
        ];
        for (rows, complaint, asked, present, expected) in cases {
            let answer = Answer { rows: rows.to_owned(), complaint: complaint.to_owned() };
            let found = unanswered(&answer, asked, present);
            match expected {
                Some(part) => assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{rows}: {found:?}"),
                None => assert_eq!(found, None, "{rows}"),
            }
        }
    }

    #[test]
    fn the_driver_is_asked_where_the_image_has_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let driver = folder.path().join("nvidia");
        assert_eq!(unlisted(&driver, 1).unwrap(), "there is no NVIDIA driver");
        fs::create_dir_all(driver.join("gpus/0000:00:1e.0")).unwrap();
        assert_eq!(unlisted(&driver, 1), None);
        assert_eq!(unlisted(&driver, 2).unwrap(), "the driver lists 1 of 2 GPUs");
    }
}
