//! `spotsweep completions`: prints the script with which a shell completes the command line.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::Args;
use crate::out;
use spotsweep_protocol::failure::Failure;

/// `spotsweep completions`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep completions bash > ~/.local/share/bash-completion/completions/spotsweep
  spotsweep completions zsh > ~/.zfunc/_spotsweep        with ~/.zfunc in fpath
  spotsweep completions fish > ~/.config/fish/completions/spotsweep.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Writes the script to standard output.
pub(super) fn run(args: &Completions) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut Args::command(), "spotsweep", &mut script);
    out::file(|to| to.write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}
