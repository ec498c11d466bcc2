//! Asks for consent before a command ends what cannot be started again. It shows the stack and the sweeps, and asks a
//! person at a terminal. A script must name what it means.

use std::io::{self, IsTerminal as _};

use crate::out;
use crate::sweeps::LATEST;
use spotsweep_protocol::failure::{Context, Failure};

/// What has to be agreed to.
pub(crate) struct Loss<'a> {
    /// What the command is about to do, with its stack and sweep: `cancel trial 3 of sweep …`.
    pub(crate) what: &'a str,
    /// The words in the command's arguments that name what it acts on, if there are any.
    pub(crate) named: Option<&'a str>,
    /// The name that is unambiguous. None if only `--yes` is.
    pub(crate) id: Option<&'a str>,
}

impl Loss<'_> {
    /// Asks a person at a terminal, unless `--yes` was passed.
    ///
    /// # Errors
    /// The person refuses, or a script uses a name that may be another sweep's tomorrow.
    pub(crate) async fn agreed(&self, yes: bool) -> Result<(), Failure> {
        match (is_person_there(), yes) {
            (true, true) => Ok(()),
            (true, false) => self.ask().await,
            (false, _) => self.in_script(yes),
        }
    }

    async fn ask(&self) -> Result<(), Failure> {
        out::note(format_args!("{}? [y/N]", self.what));
        // The read is on a thread of its own, so that Ctrl-C can end the command meanwhile.
        let line = tokio::task::spawn_blocking(|| io::stdin().lines().next().transpose()).await;
        let line = line.context(|| "cannot wait for the answer")?.context(|| "cannot read the answer")?;
        match line.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _other => Err(Failure::new("nothing was changed: the answer was not `y`")),
        }
    }

    fn in_script(&self, yes: bool) -> Result<(), Failure> {
        match (self.named, self.id) {
            (Some(named), Some(id)) if named == id => Ok(()),
            (Some(LATEST), Some(id)) => Err(Failure::usage(format!(
                "`{LATEST}` may be another person's sweep, and there is no terminal to ask at: name the sweep, here {id}"
            ))),
            _ if yes => Ok(()),
            (Some(named), Some(id)) => Err(Failure::usage(format!(
                "`{named}` may fit another sweep, and there is no terminal to ask at: give the whole id, here {id}, or --yes"
            ))),
            _ => {
                Err(Failure::usage(format!("this would {}, and there is no terminal to ask at: give --yes", self.what)))
            }
        }
    }
}

fn is_person_there() -> bool {
    io::stdin().is_terminal() && out::notes_are_on_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_what_it_ends() {
        let loss = |named, id| Loss { what: "cancel sweep digits-1a", named, id };
        for (named, id, yes, is_agreed) in [
            (Some("digits-1a"), Some("digits-1a"), false, true),
            (Some("digits"), Some("digits-1a"), false, false),
            (Some("digits"), Some("digits-1a"), true, true),
            (Some(LATEST), Some("digits-1a"), false, false),
            (Some(LATEST), Some("digits-1a"), true, false),
            (None, None, false, false),
            (None, None, true, true),
        ] {
            assert_eq!(loss(named, id).in_script(yes).is_ok(), is_agreed, "{named:?} {yes}");
        }
    }
}
