//! The Python environment of the local stack, with ministack and what the example needs for its training.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::group::Group;
use crate::installation::Installation;
use crate::run_folder::tail;
use spotsweep_protocol::failure::{Context, Failure};

/// Pinned packages of the stack itself. ministack reads SAM templates with aws-sam-translator.
const STACK_REQUIREMENTS: &str = "ministack==1.5.33\naws-sam-translator==1.115.0\n";
/// Oldest Python version (3.x) on which ministack and the example run.
const OLDEST_MINOR: u32 = 11;
/// Interpreters in the order in which they are tried: first the usual name, then newer versions.
const PYTHONS: [&str; 5] = ["python3", "python3.14", "python3.13", "python3.12", "python3.11"];

/// A ready virtual environment.
#[derive(Debug, Clone)]
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// The folder of its programs.
    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.bin().join("python")
    }

    /// Makes the environment if it does not exist yet, or was made for other requirements.
    ///
    /// It lies in the target folder, which git ignores and `cargo clean` removes, or in the user's cache. So it never
    /// conflicts with a `.venv` of the user.
    pub(crate) async fn ensure(installation: &Installation) -> Result<Self, Failure> {
        let local = &installation.shared;
        let folder = local.join("venv");
        let example = installation.digits().join("requirements.txt");
        let requirements = fs::read_to_string(&example).context(|| format!("cannot read {}", example.display()))?;
        let requirements = format!("{STACK_REQUIREMENTS}{requirements}");
        fs::create_dir_all(local).context(|| format!("cannot create {}", local.display()))?;

        // Two stacks that start at once share the environment: the second one waits here until it is complete.
        let lock =
            File::create(local.join("venv.lock")).context(|| "cannot create the lock of the Python environment")?;
        let _lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock))
            .await
            .context(|| "waiting for the Python environment was cut off")?
            .context(|| "cannot lock the Python environment")?;
        // The stamp has the requirements as its content and is written last. If it is equal, the environment is
        // complete.
        let stamp = folder.join("requirements.stamp");
        if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == requirements) {
            return Ok(Self { folder });
        }
        let python = find_python(installation.python.as_deref()).await?;
        // A closed standard error must not end the stack.
        let _ = writeln!(std::io::stderr().lock(), "Python environment: installing ministack and NumPy (once) …");
        let venv = Self { folder };
        venv.make(&python, &requirements, &local.join("venv.log")).await?;
        fs::write(&stamp, requirements).context(|| format!("cannot write {}", stamp.display()))?;
        Ok(venv)
    }

    async fn make(&self, python: &Path, requirements: &str, log: &Path) -> Result<(), Failure> {
        File::create(log).context(|| format!("cannot write {}", log.display()))?;
        let mut create = Command::new(python);
        create.args(["-m", "venv", "--clear"]).arg(&self.folder);
        run(&mut create, "creating the Python environment", log).await?;
        let list = self.folder.join("requirements.txt");
        fs::write(&list, requirements).context(|| format!("cannot write {}", list.display()))?;
        let mut install = Command::new(self.python());
        install.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "-r"]).arg(&list);
        run(&mut install, "installing the Python packages", log).await
    }
}

/// Runs one step, and writes its output into the log.
async fn run(command: &mut Command, what: &str, log: &Path) -> Result<(), Failure> {
    let open = || File::options().append(true).open(log).context(|| format!("cannot write {}", log.display()));
    command.stdin(Stdio::null()).stdout(open()?).stderr(open()?);
    let mut group = Group::start(command).context(|| format!("{what} could not be started"))?;
    let status = group.wait().await.context(|| format!("{what} could not be followed"))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{what} failed ({status}); {}", tail(log, 15))))
}

/// The first Python that is new enough: that of the environment of this command, or one on PATH.
async fn find_python(own: Option<&Path>) -> Result<PathBuf, Failure> {
    let mut found = Vec::new();
    for name in own.into_iter().chain(PYTHONS.map(Path::new)) {
        let asked = Command::new(name)
            .args(["-c", "import sys; print(*sys.version_info[:2])"])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let Ok(answer) = asked else { continue };
        let answer = String::from_utf8_lossy(&answer.stdout);
        let version: Vec<u32> = answer.split_whitespace().filter_map(|part| part.parse().ok()).collect();
        if let [major, minor] = version[..] {
            if (major, minor) >= (3, OLDEST_MINOR) {
                return Ok(name.to_owned());
            }
            found.push(format!("{} is {major}.{minor}", name.display()));
        }
    }
    let found = if found.is_empty() { "none found".to_owned() } else { found.join(", ") };
    Err(Failure::new(format!("the local stack needs Python 3.{OLDEST_MINOR} or newer as python3 on PATH; {found}")))
}
