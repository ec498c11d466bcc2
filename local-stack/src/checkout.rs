//! The source tree, the target folder and the profile with which this binary was built.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use spotsweep_protocol::failure::{Context, Failure};

/// The source tree that the local stack is made from.
#[derive(Debug, Clone)]
pub struct Checkout {
    /// The workspace root.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// The folder of the running binary, and of the binaries that are built with it: `<target>/<profile>`.
    pub binaries: PathBuf,
}

impl Checkout {
    /// Finds the folders from the path of the running binary, `<target>/<profile>/spotsweep`.
    ///
    /// # Errors
    /// The running binary does not lie in such a folder.
    pub fn locate() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().ok().filter(|root| root.join("infra/control-plane.yaml").is_file());
        let Some(root) = root else {
            return Err(Failure::new(
                "the local stack is made from spotsweep's source tree, and the one that this binary was built from \
                 is gone: clone it again and use `cargo run --bin spotsweep` there",
            ));
        };
        let binary = std::env::current_exe().context(|| "cannot find the running binary")?;
        let binary = binary.canonicalize().unwrap_or(binary);
        let mut folders = binary.ancestors().skip(1).map(Path::to_owned);
        match (folders.next(), folders.next()) {
            (Some(binaries), Some(target)) => Ok(Self { root, target, binaries }),
            _outside => Err(Failure::new(format!("{} does not lie in a cargo target folder", binary.display()))),
        }
    }

    /// Cargo's name of the profile with which the running binary was built.
    pub fn profile(&self) -> &str {
        match self.binaries.file_name().and_then(|name| name.to_str()) {
            // Only this folder has another name than its profile.
            Some("debug") | None => "dev",
            Some(profile) => profile,
        }
    }

    /// The folder for everything that a local stack keeps, except for its Python environment. It is `<target>/local`.
    /// `SPOTSWEEP_LOCAL` names another one, so that a second stack can run at the same time.
    pub fn local(&self) -> PathBuf {
        // Each job runs in a folder of its own, in which a relative path would lead to another place.
        Self::named().and_then(|folder| std::path::absolute(folder).ok()).unwrap_or_else(|| self.shared())
    }

    /// The folder that `SPOTSWEEP_LOCAL` names, if it is set.
    pub fn named() -> Option<OsString> {
        std::env::var_os("SPOTSWEEP_LOCAL").filter(|folder| !folder.is_empty())
    }

    /// The folder of what all local stacks share.
    pub fn shared(&self) -> PathBuf {
        self.target.join("local")
    }

    /// The folder of the bundled example.
    pub fn digits(&self) -> PathBuf {
        self.root.join("examples/digits")
    }
}
