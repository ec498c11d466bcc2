//! Where this binary was built: the source tree, the target folder and the profile.

use std::path::{Path, PathBuf};

use crate::failure::{Context, Failure};

/// The source tree that the local stack is made from.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    /// The workspace root.
    pub(crate) root: PathBuf,
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
                 is gone: clone it again and use `cargo run --bin spotsweep` there",
            ));
        };
        let binary = std::env::current_exe().context(|| "cannot find the running binary")?;
        let binary = binary.canonicalize().unwrap_or(binary);
        match binary.ancestors().nth(2) {
            Some(target) => Ok(Self { target: target.to_owned(), root }),
            None => Err(Failure::new(format!("{} does not lie in a cargo target folder", binary.display()))),
        }
    }

    /// Everything that the local stack keeps: `<target>/local`.
    pub(crate) fn local(&self) -> PathBuf {
        self.target.join("local")
    }

    /// The bundled example.
    pub(crate) fn digits(&self) -> PathBuf {
        self.root.join("examples/digits")
    }
}
