//! `spotsweep init`: writes a sweep file for a script, from what it prints for `--help`.

mod help;
mod proposal;

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use spotsweep_protocol::failure::{Context as _, Failure};
use tokio::process::Command;
use tokio::time::timeout;

use self::proposal::propose;
use crate::{out, tried_metrics};

/// How long a script may take to print its help: it may import large libraries first.
const PATIENCE: Duration = Duration::from_secs(120);
/// Names that scripts which train often have.
const USUAL: [&str; 4] = ["train.py", "main.py", "run.py", "finetune.py"];

/// `spotsweep init`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the script with --help, and reads its options from what it prints: argparse, HfArgumentParser, jsonargparse, click and \
typer. Options that change how well a model learns get a range around their default. The others are comments. If `spotsweep \
try` was run in this folder, the file ranks by a metric that it found.

Examples:
  spotsweep init
  spotsweep init -- python train.py
  spotsweep init --output sweeps/lr.yaml -- torchrun train.py")]
pub(crate) struct Init {
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE", default_value = "sweep.yaml")]
    output: PathBuf,
    /// The command that starts the training [default: python with the script of this folder]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub(super) async fn run(args: Init) -> Result<ExitCode, Failure> {
    if args.output.exists() {
        return Err(exists(&args.output));
    }
    let command = if args.command.is_empty() { usual(Path::new("."))? } else { args.command };
    let printed = help_of(&command).await?;
    let script = help::read(&printed);
    let found = Path::new(".").canonicalize().map(|folder| tried_metrics::read(&folder)).unwrap_or_default();
    let Some(proposal) = propose(&command, &script, &found) else {
        let shown = command.join(" ");
        return Err(Failure::new(format!(
            "`{shown} --help` shows no option to search: no number with a default, and no list of choices, for something \
             like a learning rate or a batch size. Write the file by hand: docs/sweep-file.md"
        )));
    };
    let created = File::create_new(&args.output).and_then(|mut file| file.write_all(proposal.text.as_bytes()));
    created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(&args.output),
        _ => Failure::new(format!("cannot write {}", args.output.display())).caused_by(error),
    })?;
    let file = args.output.display();
    out::results(|to| write!(to, "{}", proposal.text))?;
    out::note(format_args!("\nwritten to {file}"));
    if !proposal.missing.is_empty() {
        let missing = proposal.missing.join(", ");
        out::note(format_args!("the script needs {missing}: add each to the parameters, with its value"));
    }
    out::note(format_args!("next: spotsweep try {file}    (one trial on this machine, interrupted five times)"));
    Ok(ExitCode::SUCCESS)
}

fn exists(file: &Path) -> Failure {
    Failure::usage(format!("{} exists: name another file with --output, or remove it", file.display()))
}

/// Python with the script of a folder: one with a usual name, or the only one.
fn usual(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = folder.read_dir().context(|| "cannot read this folder".to_owned())?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut scripts: Vec<String> = names.filter(|name| name.ends_with(".py")).collect();
    scripts.sort();
    let usual = USUAL.iter().find(|name| scripts.iter().any(|script| script == *name)).map(|name| (*name).to_owned());
    match usual.or_else(|| scripts.first().filter(|_| scripts.len() == 1).cloned()) {
        Some(script) => Ok(vec!["python".to_owned(), script]),
        None if scripts.is_empty() => {
            Err(Failure::usage("there is no Python script in this folder: name the command after `--`".to_owned()))
        }
        None => Err(Failure::usage(format!(
            "there are several scripts in this folder ({}): name one, as in `spotsweep init -- python {}`",
            scripts.join(", "),
            scripts[0]
        ))),
    }
}

/// What the command prints for `--help`, in wide lines.
async fn help_of(command: &[String]) -> Result<String, Failure> {
    let shown = format!("{} --help", command.join(" "));
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).arg("--help").stdin(Stdio::null()).kill_on_drop(true);
    program.envs([("COLUMNS", "200"), ("TERM", "dumb"), ("NO_COLOR", "1"), ("PYTHONIOENCODING", "utf-8")]);
    let ended = timeout(PATIENCE, program.output()).await;
    let ended =
        ended.map_err(|_elapsed| Failure::new(format!("`{shown}` took longer than {} s", PATIENCE.as_secs())))?;
    let ended = ended.context(|| format!("cannot run `{shown}`"))?;
    if !ended.status.success() {
        let errors = String::from_utf8_lossy(&ended.stderr);
        let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it prints no error");
        return Err(Failure::new(format!("`{shown}` ended with {}: {last}", ended.status)));
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_a_folder_has_a_usual_name_or_is_the_only_one() {
        for (files, expected) in [
            (&["train.py", "data.py", "notes.txt"][..], Some("train.py")),
            (&["resnet.py"], Some("resnet.py")),
            (&["a.py", "b.py"], None),
            (&[], None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            files.iter().for_each(|name| drop(File::create(folder.path().join(name)).unwrap()));
            let found = usual(folder.path()).ok().map(|words| words[1].clone());
            assert_eq!(found.as_deref(), expected, "{files:?}");
        }
    }
}
