//! A finding about one thing.

use std::error::Error;

use spotsweep_protocol::cause::chain;

/// State of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum State {
    /// It is as it should be.
    Ok,
    /// It is wrong, or cannot be read.
    Problem,
    /// It cannot be judged from here, so a person must look.
    Look,
}

impl State {
    pub(in crate::commands) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Problem => "problem",
            Self::Look => "look",
        }
    }
}

/// One thing and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Finding {
    /// Name of the thing.
    pub(in crate::commands) about: String,
    pub(in crate::commands) state: State,
    /// What was seen.
    pub(in crate::commands) said: String,
    /// What to do about it.
    pub(in crate::commands) fix: Option<String>,
}

impl Finding {
    pub(in crate::commands) fn ok(about: &str, said: impl Into<String>) -> Self {
        Self { about: about.to_owned(), state: State::Ok, said: said.into(), fix: None }
    }

    pub(in crate::commands) fn problem(about: &str, said: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about: about.to_owned(), state: State::Problem, said: said.into(), fix: Some(fix.into()) }
    }

    pub(in crate::commands) fn look(about: &str, said: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Look, ..Self::problem(about, said, fix) }
    }

    /// A call was refused that should have shown the state.
    pub(in crate::commands) fn refused(about: &str, call: &str, error: &(dyn Error + 'static)) -> Self {
        let fix = format!("does the stack's region fit, is the thing there, and may you call {call}?");
        Self::problem(about, format!("{call} failed: {}", chain(error)), fix)
    }
}
