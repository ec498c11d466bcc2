//! Where this binary was built: the source tree, the target folder and the profile.

use std::path::{Path, PathBuf};

use crate::failure::{Context, Failure};

/// The source tree that the local stack is made from.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    /// The workspace root.
    pub(crate) root: PathBuf,
    /// The folder that holds this binary and those of the functions and the runner.
    pub(crate) binaries: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
}

impl Checkout {
    /// Finds them from the place of the running binary, `<target>/<profile>/spotsweep`.
    pub(crate) fn locate() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().ok().filter(|root| root.join("infra/control-plane.yaml").is_file());
        let Some(root) = root else {
            return Err(Failure::new(
                "the local stack is made from spotsweep's source tree, and the one that this binary was built from \
                 is gone: clone it again and use `cargo run --release --bin spotsweep` there",
            ));
        };
        let binary = std::env::current_exe().context(|| "cannot find the running binary")?;
        let binary = binary.canonicalize().unwrap_or(binary);
        let binaries = binary.parent().map(Path::to_owned);
        let target = binaries.as_deref().and_then(Path::parent).map(Path::to_owned);
        match (binaries, target) {
            (Some(binaries), Some(target)) => Ok(Self { root, binaries, target }),
            (None, _) | (_, None) => {
                Err(Failure::new(format!("{} does not lie in a cargo target folder", binary.display())))
            }
        }
    }

    /// Everything that the local stack keeps: `<target>/local`.
    pub(crate) fn local(&self) -> PathBuf {
        self.target.join("local")
    }

    /// The cargo flags that build into [`Self::binaries`].
    pub(crate) fn profile_flags(&self) -> Vec<String> {
        match self.binaries.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => Vec::new(),
            Some("release") => vec!["--release".to_owned()],
            Some(other) => vec!["--profile".to_owned(), other.to_owned()],
        }
    }

    /// The bundled example.
    pub(crate) fn digits(&self) -> PathBuf {
        self.root.join("examples/digits")
    }
}
