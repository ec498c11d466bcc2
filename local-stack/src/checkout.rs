//! Where this binary was built: the source tree, the target folder and the profile.

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
    /// The folder of the running binary and of those that are built beside it: `<target>/<profile>`.
    pub binaries: PathBuf,
}

impl Checkout {
    /// Finds them from the place of the running binary, `<target>/<profile>/spotsweep`.
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

    /// Cargo's name of the profile that the running binary was built with.
    pub fn profile(&self) -> &str {
        match self.binaries.file_name().and_then(|name| name.to_str()) {
            // The one folder that is not called as its profile is.
            Some("debug") | None => "dev",
            Some(profile) => profile,
        }
    }

    /// Everything that a local stack keeps but its Python environment: `<target>/local`, or where
    /// `SPOTSWEEP_LOCAL` says, for a second stack beside the first.
    pub fn local(&self) -> PathBuf {
        // Jobs run in folders of their own: a relative path would mean another place to each.
        Self::named().and_then(|folder| std::path::absolute(folder).ok()).unwrap_or_else(|| self.shared())
    }

    /// The folder that `SPOTSWEEP_LOCAL` names, if it names one.
    pub fn named() -> Option<OsString> {
        std::env::var_os("SPOTSWEEP_LOCAL").filter(|folder| !folder.is_empty())
    }

    /// What all local stacks share.
    pub fn shared(&self) -> PathBuf {
        self.target.join("local")
    }

    /// The bundled example.
    pub fn digits(&self) -> PathBuf {
        self.root.join("examples/digits")
    }
}
