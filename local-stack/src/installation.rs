//! Where this command's programs, templates and example lie: in the source tree that it was built from, or in the folder
//! that a wheel installs next to it.

use std::env::var_os;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use spotsweep_protocol::failure::{Context, Failure};

/// Lambda's name of this machine's processor. It is also the name of the folder with a wheel's programs for it.
pub(crate) const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" };
/// The template of the control plane. It shows that a folder has the templates.
pub(crate) const TEMPLATE: &str = "infra/control-plane.yaml";

/// The files that a local stack is made from.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The folder with `infra/` and `examples/`.
    pub root: PathBuf,
    /// The folder of what all local stacks share.
    pub shared: PathBuf,
    /// The interpreter of the Python environment into which this command is installed.
    pub(crate) python: Option<PathBuf>,
    pub(crate) programs: Programs,
}

/// Where the functions, the runner and the program that makes containers come from.
#[derive(Debug, Clone)]
pub(crate) enum Programs {
    /// Cargo builds them into the folder of this command, `<target>/<profile>`.
    Built { target: PathBuf, folder: PathBuf },
    /// They came with this command, in this release.
    Installed(PathBuf),
}

impl Installation {
    /// Finds the files from the path of the running command.
    ///
    /// # Errors
    /// The running command is not installed from a wheel, and its source tree is gone.
    pub fn locate() -> Result<Self, Failure> {
        let command = std::env::current_exe().context(|| "cannot find the running command")?;
        let command = command.canonicalize().unwrap_or(command);
        let mut folders = command.ancestors().skip(1);
        let (Some(folder), Some(around)) = (folders.next(), folders.next()) else {
            return Err(Failure::new(format!("{} does not lie in a folder of programs", command.display())));
        };
        // Wheels put programs into `bin`, and other files next to it (the binary distribution format's data folder).
        let installed = around.join("share/spotsweep");
        if installed.join(TEMPLATE).is_file() {
            Self::installed(installed, folder)
        } else {
            Self::built(folder, around)
        }
    }

    fn installed(root: PathBuf, bin: &Path) -> Result<Self, Failure> {
        let shared = cache_folder()
            .ok_or_else(|| Failure::usage("the local stack keeps its data in ~/.cache/spotsweep: set HOME"))?;
        let python = Some(bin.join("python")).filter(|python| python.exists());
        let programs = Programs::Installed(root.clone());
        Ok(Self { root, shared, python, programs })
    }

    fn built(folder: &Path, target: &Path) -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().ok().filter(|root| root.join(TEMPLATE).is_file()).ok_or_else(|| {
            Failure::new(
                "the local stack is made from spotsweep's source tree, and the one that this command was built from \
                 is gone: install the package again, or clone it again and use `cargo run --bin spotsweep` there",
            )
        })?;
        let programs = Programs::Built { target: target.to_owned(), folder: folder.to_owned() };
        Ok(Self { root, shared: target.join("local"), python: None, programs })
    }

    /// The folder of a release, with `infra/` and the programs for each processor of AWS; `None` in a source tree.
    pub fn release(&self) -> Option<PathBuf> {
        match &self.programs {
            Programs::Installed(_) => Some(self.root.clone()),
            Programs::Built { .. } => None,
        }
    }

    /// The folder for everything that a local stack keeps, except for its Python environment. `SPOTSWEEP_LOCAL` names
    /// another one, so that a second stack can run at the same time.
    pub fn local(&self) -> PathBuf {
        // Each job runs in a folder of its own, in which a relative path would lead to another place.
        Self::named().and_then(|folder| std::path::absolute(folder).ok()).unwrap_or_else(|| self.shared.clone())
    }

    /// The folder that `SPOTSWEEP_LOCAL` names, if it is set.
    pub fn named() -> Option<OsString> {
        var_os("SPOTSWEEP_LOCAL").filter(|folder| !folder.is_empty())
    }

    /// The folder of the bundled example.
    pub fn digits(&self) -> PathBuf {
        self.root.join("examples/digits")
    }
}

/// The folder for data that can be made again (XDG Base Directory Specification, which ignores relative paths). `None`
/// without a home.
pub fn cache_folder() -> Option<PathBuf> {
    let absolute = |name| var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("spotsweep"))
}
