//! The set-up of every measurement: programs, the peers' Python, and a folder for files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use spotsweep_tests::local::Binaries;
use tokio::process::Command;

/// The set-up, made once before the first measurement.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The folder of the functions' and the other programs' binaries.
    pub(crate) binaries: PathBuf,
    /// The interpreter of an environment with the peers' packages (`studies/peers/requirements.txt`).
    pub(crate) python: PathBuf,
    /// A folder for temporary files, empty at the start of the run.
    pub(crate) scratch: PathBuf,
    pub(crate) quick: bool,
    /// The folder of the results: `<target>/bench`.
    pub(crate) folder: PathBuf,
}

impl Setup {
    /// Builds what is missing.
    pub(crate) async fn prepare(binaries: Option<PathBuf>, quick: bool) -> Self {
        // The path is <target>/<profile>/bench.
        let program = std::env::current_exe().expect("the system reports the path of the program");
        let folder = program.ancestors().nth(2).expect("a program lies in <profile>").join("bench");
        let scratch = folder.join("scratch");
        // The folder is usually absent.
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

    /// Returns the number of repeats: `often`, or a third of that in a quick run.
    pub(crate) fn repeats(&self, often: usize) -> usize {
        if self.quick { often.div_ceil(3) } else { often }
    }

    pub(crate) fn peer(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/peers").join(name)
    }
}

/// Returns an interpreter for the peers. It makes the environment if it is missing or was made for other requirements.
async fn environment(folder: &Path, wanted: &Path) -> PathBuf {
    let requirements = fs::read_to_string(wanted).expect("the checkout is whole");
    let interpreter = folder.join("bin/python");
    // The stamp is written last and has the requirements, so an equal one means that the environment is complete.
    let stamp = folder.join("requirements.stamp");
    if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == requirements) {
        return interpreter;
    }
    // The peers need Lambda's python3.11; another version is used if it is missing.
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
