//! The workspace's binaries, built as the running test was.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Built binaries.
#[derive(Debug)]
pub struct Binaries {
    folder: PathBuf,
    target: PathBuf,
}

impl Binaries {
    /// Builds every binary of the workspace, once per test program: `cargo test` builds those of
    /// other packages for their own tests only. `tests/run` has built them, and says so by `SPOTSWEEP_BUILT`.
    ///
    /// # Panics
    /// Where cargo fails; its messages are on standard error.
    pub fn build() -> &'static Self {
        static BUILT: OnceLock<Binaries> = OnceLock::new();
        BUILT.get_or_init(|| {
            let program = std::env::current_exe().expect("a program knows where it lies");
            // <target>/<profile>/deps/<test>, or <target>/<profile>/<program>
            let mut folders = program.ancestors().skip(1);
            let folder = folders.find(|folder| !folder.ends_with("deps")).expect("programs lie in a folder").to_owned();
            let target = folder.parent().expect("a profile lies in the target folder").to_owned();
            if std::env::var_os("SPOTSWEEP_BUILT").is_none() {
                build(&folder, &target);
            }
            Self { folder, target }
        })
    }

    /// One of them.
    pub fn get(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder that holds them: `<target>/<profile>`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Cargo's target folder.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

/// The same packages as for `spotsweep local`: nothing is compiled twice.
fn build(folder: &Path, target: &Path) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo tells this test about its package, a build script (ring's) would take for a change.
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
