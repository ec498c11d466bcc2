//! What every measurement needs: programs, the peers' Python, a place for files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use spotsweep_tests::local::Binaries;
use tokio::process::Command;

/// Made once, before the first measurement.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Folder of the functions' and the other programs' binaries.
    pub(crate) binaries: PathBuf,
    /// Interpreter of an environment with what the peers need (`studies/peers/requirements.txt`).
    pub(crate) python: PathBuf,
    /// For files that may go when the run ends; empty when it begins.
    pub(crate) scratch: PathBuf,
    /// Repeat less often.
    pub(crate) quick: bool,
    /// `<target>/bench`: where the results go.
    pub(crate) folder: PathBuf,
}

impl Setup {
    /// Builds what is missing.
    pub(crate) async fn prepare(binaries: Option<PathBuf>, quick: bool) -> Self {
        // <target>/<profile>/bench
        let program = std::env::current_exe().expect("a program knows where it lies");
        let folder = program.ancestors().nth(2).expect("a program lies in <profile>").join("bench");
        let scratch = folder.join("scratch");
        // Absent is the usual case.
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch).expect("the target folder is writable");
        let binaries = match binaries {
            Some(folder) => fs::canonicalize(&folder).unwrap_or_else(|error| unreachable!("{folder:?}: {error}")),
            None => tokio::task::spawn_blocking(|| Binaries::build().folder().to_owned())
                .await
                .expect("the binaries can be built"),
        };
        let python = environment(&folder.join("python"), &Self::peer("requirements.txt")).await;
        Self { binaries, python, scratch, quick, folder }
    }

    /// How often to measure: `often`, or a third of that where it has to be quick.
    pub(crate) fn repeats(&self, often: usize) -> usize {
        if self.quick { often.div_ceil(3) } else { often }
    }

    /// A script of the peers'.
    pub(crate) fn peer(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/peers").join(name)
    }
}

/// An interpreter for peers; the environment is made when it is missing or was made for other requirements.
async fn environment(folder: &Path, wanted: &Path) -> PathBuf {
    let requirements = fs::read_to_string(wanted).expect("the checkout is whole");
    let interpreter = folder.join("bin/python");
    // Written last, and the requirements themselves: equal means complete.
    let stamp = folder.join("requirements.stamp");
    if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == requirements) {
        return interpreter;
    }
    // The peers are what runs on Lambda's python3.11; another version does where there is no such.
    let create = |name: &str| {
        let mut command = Command::new(name);
        command.args(["-m", "venv", "--clear"]).arg(folder);
        command
    };
    if !succeeds(&mut create("python3.11")).await {
        assert!(succeeds(&mut create("python3")).await, "no python3.11 and no python3 that can make an environment");
    }
    let mut install = Command::new(&interpreter);
    install.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet", "-r"]).arg(wanted);
    assert!(succeeds(&mut install).await, "the peers' packages can't be installed");
    fs::write(&stamp, requirements).expect("the target folder is writable");
    interpreter
}

async fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().await.is_ok_and(|status| status.success())
}
