//! Packages the functions as `sam package` does, from the binaries that cargo has built.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use zip::write::{SimpleFileOptions, ZipWriter};

use spotsweep_protocol::failure::{Context, Failure};

/// The program in a function's zip that Lambda starts (the runtime `provided.al2023`).
pub(crate) const BOOTSTRAP: &str = "bootstrap";

/// The files or folders that a template names under a key, such as `../functions/<name>` under `CodeUri`, by their last
/// parts, in the template's order.
pub fn located(template: &str, key: &str) -> Vec<String> {
    template.lines().filter_map(|line| place(line, key)).map(|(_, name)| name.to_owned()).collect()
}

/// Replaces each place under the key. The rest of the text stays the same, comments included, so that nothing else can
/// differ from what is deployed on AWS.
pub fn point_at(template: &str, key: &str, mut to: impl FnMut(&str) -> String) -> String {
    let mut line = |line: &str| match place(line, key) {
        Some((indent, name)) => format!("{indent}{key}: {}\n", to(name)),
        None => format!("{line}\n"),
    };
    template.lines().map(&mut line).collect()
}

/// The indentation of a line with the key, and the last part of its value.
fn place<'a>(line: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    let value = line.trim_start().strip_prefix(key)?.strip_prefix(':')?.trim();
    Some((&line[..line.len() - line.trim_start().len()], value.rsplit('/').next()?))
}

/// The folders of the functions' binaries and zips.
#[derive(Debug)]
pub(crate) struct Bootstraps<'a> {
    /// The folder with the binaries that cargo has built, or with those of a release.
    pub binaries: &'a Path,
    /// A folder that exists for as long as the functions run.
    pub folder: &'a Path,
}

impl Bootstraps<'_> {
    /// Makes a zip for each function. It blocks the thread.
    ///
    /// The `bootstrap` in a zip is two lines that start the binary. The binary is linked into the folder, so that a
    /// build in the meantime does not change what runs. ministack hashes a function's whole zip at every invocation: with
    /// the binary in it (60 MB in the dev profile) that takes longer than the function itself.
    pub(crate) fn zip(&self, functions: &[String]) -> Result<Vec<PathBuf>, Failure> {
        functions
            .iter()
            .map(|name| {
                let (binary, linked) = (self.binaries.join(name), self.folder.join(name));
                link(&binary, &linked)
                    .context(|| format!("cannot link {} for the function {name}; is it built?", binary.display()))?;
                let archive = self.folder.join(format!("{name}.zip"));
                zip_bootstrap(&linked, &archive).context(|| format!("cannot write {}", archive.display()))?;
                Ok(archive)
            })
            .collect()
    }
}

/// Gives a binary a second name. It keeps its content when cargo builds the binary again, because cargo writes a new
/// file.
pub(crate) fn link(binary: &Path, to: &Path) -> io::Result<()> {
    // A hard link is not possible to another file system, or on one without hard links.
    fs::hard_link(binary, to).or_else(|_| fs::copy(binary, to).map(drop))
}

fn zip_bootstrap(binary: &Path, archive: &Path) -> io::Result<()> {
    let options = SimpleFileOptions::default().unix_permissions(0o755);
    let mut zip = ZipWriter::new(File::create(archive)?);
    zip.start_file(BOOTSTRAP, options)?;
    let path = binary.display().to_string().replace('\'', r"'\''");
    write!(zip, "#!/bin/sh\nexec '{path}'\n")?;
    zip.finish()?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;

    use zip::ZipArchive;

    use super::*;

    #[test]
    fn only_code_places_change() {
        let template =
            "# CodeUri: in a comment\n  A:\n    CodeUri: ../functions/a-b   \n    Role: x\n  CodeUri: ../functions/c\n";
        assert_eq!(located(template, "CodeUri"), ["a-b", "c"]);
        let expected =
            "# CodeUri: in a comment\n  A:\n    CodeUri: s3://code/a-b.zip\n    Role: x\n  CodeUri: s3://code/c.zip\n";
        assert_eq!(point_at(template, "CodeUri", |name| format!("s3://code/{name}.zip")), expected);
    }

    #[test]
    fn a_zip_starts_the_linked_binary() {
        let folder = tempfile::tempdir().unwrap();
        let (built, run) = (folder.path().join("it's built"), folder.path().join("it's run"));
        fs::create_dir(&built).unwrap();
        fs::create_dir(&run).unwrap();
        fs::copy("/bin/echo", built.join("f")).unwrap();
        let zips = Bootstraps { binaries: &built, folder: &run }.zip(&["f".to_owned()]).unwrap();
        fs::remove_file(built.join("f")).unwrap();

        let mut zip = ZipArchive::new(File::open(&zips[0]).unwrap()).unwrap();
        let mut bootstrap = zip.by_name("bootstrap").unwrap();
        assert_eq!(bootstrap.unix_mode().unwrap() & 0o777, 0o755);
        let mut script = String::new();
        bootstrap.read_to_string(&mut script).unwrap();
        let run = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(0), b"\n".as_slice()), "{script}");
        assert!(Bootstraps { binaries: &built, folder: folder.path() }.zip(&["gone".to_owned()]).is_err());
    }
}
