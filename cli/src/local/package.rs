//! What `sam package` does, on the functions' binaries that cargo has built.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use zip::write::{SimpleFileOptions, ZipWriter};

use crate::failure::{Context, Failure};

/// The template with its code in S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packaged {
    /// The template's text.
    pub(crate) template: String,
    /// The functions' folder names, in the template's order.
    pub(crate) functions: Vec<String>,
}

/// Replaces each `CodeUri: ../functions/<name>` by the place of `<name>.zip` in the bucket. The
/// rest of the text stays as it is, comments included, so that nothing else can differ from what
/// gets deployed on AWS.
pub(crate) fn point_at(template: &str, bucket: &str) -> Packaged {
    let mut functions = Vec::new();
    let line = |line: &str| {
        let code = line.trim_start().strip_prefix("CodeUri:").and_then(|folder| folder.trim().rsplit('/').next());
        let Some(name) = code else { return line.to_owned() };
        functions.push(name.to_owned());
        let indent = &line[..line.len() - line.trim_start().len()];
        format!("{indent}CodeUri: s3://{bucket}/{name}.zip")
    };
    let template = template.lines().map(line).collect::<Vec<_>>().join("\n") + "\n";
    Packaged { template, functions }
}

/// Zips each function's binary as `bootstrap` into the folder. Blocks.
///
/// Stored, not deflated: the zips never leave this machine.
pub(crate) fn zip_functions(binaries: &Path, functions: &[String], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    functions
        .iter()
        .map(|name| {
            let (binary, archive) = (binaries.join(name), folder.join(format!("{name}.zip")));
            zip_bootstrap(&binary, &archive)
                .context(|| format!("cannot zip {} for the function {name}; is it built?", binary.display()))?;
            Ok(archive)
        })
        .collect()
}

fn zip_bootstrap(binary: &Path, archive: &Path) -> io::Result<()> {
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(fs::metadata(binary)?.len() >= u64::from(u32::MAX))
        .unix_permissions(0o755);
    let mut zip = ZipWriter::new(File::create(archive)?);
    zip.start_file("bootstrap", options)?;
    io::copy(&mut File::open(binary)?, &mut zip)?;
    zip.finish()?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_code_places_change() {
        let template =
            "# CodeUri: in a comment\n  A:\n    CodeUri: ../functions/a-b   \n    Role: x\n  CodeUri: ../functions/c\n";
        let packaged = point_at(template, "code");
        assert_eq!(packaged.functions, ["a-b", "c"]);
        let expected =
            "# CodeUri: in a comment\n  A:\n    CodeUri: s3://code/a-b.zip\n    Role: x\n  CodeUri: s3://code/c.zip\n";
        assert_eq!(packaged.template, expected);
    }

    #[test]
    fn a_zip_holds_an_executable_bootstrap() {
        let folder = tempfile::tempdir().unwrap();
        let (binary, archive) = (folder.path().join("f"), folder.path().join("f.zip"));
        fs::write(&binary, b"\x7fELF and so on").unwrap();
        zip_bootstrap(&binary, &archive).unwrap();
        let mut zip = zip::ZipArchive::new(File::open(&archive).unwrap()).unwrap();
        let mut bootstrap = zip.by_name("bootstrap").unwrap();
        assert_eq!(bootstrap.unix_mode().unwrap() & 0o777, 0o755);
        let mut bytes = Vec::new();
        io::copy(&mut bootstrap, &mut bytes).unwrap();
        assert_eq!(bytes, b"\x7fELF and so on");
    }
}
