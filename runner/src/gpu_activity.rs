//! Whether the training's GPUs are busy, from `nvidia-smi`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use spotsweep_attempt::stall::Gpu;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::config::Config;
use crate::gpus::Gpus;
use crate::launch::Launcher;

/// NVIDIA's program that queries the driver.
pub(crate) const PROGRAM: &str = "nvidia-smi";
/// The share of the last sample period (at most a second) in which a kernel ran (`nvidia-smi --help-query-gpu`).
const ARGUMENTS: [&str; 2] = ["--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits"];
/// A device that each program with a GPU opens.
const CONTROL: &str = "dev/nvidiactl";
/// The limit for its output. It takes some seconds if no other program has the driver open.
const LIMIT: Duration = Duration::from_secs(10);
/// The limit for its end after its output.
const END_LIMIT: Duration = Duration::from_secs(1);
/// A machine has sixteen GPUs at most, with a line of 50 bytes each.
const MOST_BYTES: u64 = 64 * 1024;

/// Runs `nvidia-smi`, one process at a time.
#[derive(Debug)]
pub(crate) struct Activity {
    /// UUIDs of the trial's GPUs; absent if the trial may use all GPUs.
    own: Option<Vec<String>>,
    has_gpu: bool,
    launcher: Launcher,
    /// Whether the container has GPUs. If so, a training may use one even though `nvidia-smi` is missing.
    are_given: bool,
    /// A process that has not answered. It may be impossible to kill.
    stuck: Option<Child>,
}

impl Activity {
    /// Queries the trial's GPUs through `launcher`.
    #[expect(clippy::disallowed_methods, reason = "/dev is the host's: a training has no capability to change it")]
    pub(crate) fn new(config: &Config, gpus: &Gpus, launcher: Launcher) -> Self {
        let has_device = || config.root.join(CONTROL).exists() || Path::new("/").join(CONTROL).exists();
        let own = gpus.own().map(<[String]>::to_vec);
        let has_gpu = own.as_ref().map_or_else(has_device, |own| !own.is_empty());
        Self { own, has_gpu, launcher, are_given: gpus.are_given(), stuck: None }
    }

    /// The present activity of the GPUs. A GPU without a figure is unknown, and not idle.
    pub(crate) async fn look(&mut self) -> Gpu {
        if !self.has_gpu {
            return Gpu::Absent;
        }
        if let Some(stuck) = &mut self.stuck {
            // On an error, the runner has reaped it with its other children.
            if matches!(stuck.try_wait(), Ok(None)) {
                return Gpu::Unknown;
            }
            self.stuck = None;
        }
        match self.ask().await {
            Ok(Some(text)) => read(&text, self.own.as_deref()),
            Ok(None) => Gpu::Unknown,
            // A privileged container has the device files of its instance, but without this program it has no driver.
            Err(error) if error.kind() == ErrorKind::NotFound && !self.are_given => Gpu::Absent,
            Err(_) => Gpu::Unknown,
        }
    }

    /// Its output; `None` if there is none in time.
    async fn ask(&mut self) -> std::io::Result<Option<String>> {
        if !is_installed() {
            return Err(ErrorKind::NotFound.into());
        }
        // A training may write to a folder of `PATH`, so this program gets no more rights than the training.
        let words: Vec<String> = [PROGRAM].into_iter().chain(ARGUMENTS).map(str::to_owned).collect();
        let mut command = Command::from(self.launcher.command(&words)?);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let Some(output) = child.stdout.take() else { return Ok(None) };
        let mut text = String::new();
        match timeout(LIMIT, output.take(MOST_BYTES).read_to_string(&mut text)).await {
            Ok(Ok(_)) => {
                // The runner waits for its end only so that no process is left.
                let _ = timeout(END_LIMIT, child.wait()).await;
                Ok(Some(text))
            }
            Ok(Err(_)) | Err(_) => {
                // Fails only if the process has just ended.
                let _ = child.start_kill();
                self.stuck = Some(child);
                Ok(None)
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "what is found is run as the training's user")]
fn is_installed() -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(PROGRAM).exists())
}

/// Reads lines such as `GPU-5a2c…, 37`. Some GPUs have no figure (`[N/A]`), such as those that are shared by MIG.
fn read(text: &str, own: Option<&[String]>) -> Gpu {
    let rows = text.lines().filter_map(|line| line.split_once(','));
    let rows = rows.map(|(uuid, percent)| (uuid.trim(), percent.trim().parse::<f64>().ok()));
    let is_own = |uuid: &str| own.is_none_or(|own| own.iter().any(|own| own == uuid));
    let figures: Vec<Option<f64>> = rows.filter(|(uuid, _)| is_own(uuid)).map(|(_, percent)| percent).collect();
    if figures.iter().flatten().any(|percent| *percent >= 1.0) {
        return Gpu::Busy;
    }
    let is_whole = figures.len() >= own.map_or(1, <[String]>::len) && figures.iter().all(Option::is_some);
    if is_whole { Gpu::Idle } else { Gpu::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_figures_of_all_own_gpus_mean_that_they_are_idle() {
        let own: Option<&[&str]> = Some(&["GPU-a", "GPU-b"]);
        let any: Option<&[&str]> = None;
        let cases = [
            ("GPU-a, 0\nGPU-b, 0\n", own, Gpu::Idle),
            ("GPU-a, 0\nGPU-b, 1\n", own, Gpu::Busy),
            ("GPU-a, 0\nGPU-b, 0\nGPU-c, 100\n", own, Gpu::Idle),
            ("GPU-a, 0\n", own, Gpu::Unknown),
            ("GPU-a, 0\nGPU-b, [N/A]\n", own, Gpu::Unknown),
            ("GPU-a, 3\nGPU-b, [N/A]\n", own, Gpu::Busy),
            ("GPU-x, 0\n", any, Gpu::Idle),
            ("GPU-x, 100\n", any, Gpu::Busy),
            ("GPU-x, [Unknown Error]\n", any, Gpu::Unknown),
            ("No devices were found\n", any, Gpu::Unknown),
            ("", any, Gpu::Unknown),
        ];
        for (text, own, expected) in cases {
            let own: Option<Vec<String>> = own.map(|own| own.iter().map(|uuid| (*uuid).to_owned()).collect());
            assert_eq!(read(text, own.as_deref()), expected, "{text:?} {own:?}");
        }
    }
}
