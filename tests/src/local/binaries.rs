//! The workspace's binaries, built in the profile of the running test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder and the paths of the built binaries.
#[derive(Debug)]
pub struct Binaries {
    folder: PathBuf,
    target: PathBuf,
}

impl Binaries {
    /// Builds every binary of the workspace, once in each test program. `cargo test` would build the binaries of other
    /// packages only for their own tests. If `SPOTSWEEP_BUILT` is set, `tests/run` has built them already.
    ///
    /// # Panics
    /// Panics if cargo fails. Its messages are on standard error.
    pub fn build() -> &'static Self {
        static BUILT: OnceLock<Binaries> = OnceLock::new();
        BUILT.get_or_init(|| {
            let program = std::env::current_exe().expect("a program knows where it lies");
            // The path is `<target>/<profile>/deps/<test>` or `<target>/<profile>/<program>`.
            let mut folders = program.ancestors().skip(1);
            let folder = folders.find(|folder| !folder.ends_with("deps")).expect("programs lie in a folder").to_owned();
            let target = folder.parent().expect("a profile lies in the target folder").to_owned();
            if std::env::var_os("SPOTSWEEP_BUILT").is_none() {
                build(&folder, &target);
            }
            Self { folder, target }
        })
    }

    /// Path of a binary.
    pub fn get(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of the binaries, `<target>/<profile>`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Cargo's target folder.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

/// Builds the same packages as `spotsweep local`, so that nothing is compiled twice.
fn build(folder: &Path, target: &Path) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // A build script (ring's) would run again if it saw the variables that cargo sets for this test.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    let built = cargo
        .args(["build", "--locked", "--workspace", "--bins", "--target-dir"])
        .arg(target)
        .args(profile_flags(folder))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .expect("cargo can be started");
    assert!(built.success(), "cargo build of the functions, the runner and the command: {built}");
}

fn profile_flags(folder: &Path) -> Vec<String> {
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => Vec::new(),
        Some(profile) => vec!["--profile".to_owned(), profile.to_owned()],
    }
}
