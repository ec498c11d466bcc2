//! Checks whether regular expressions compile, without the engines that run them. The functions only check expressions,
//! and the engines would be a twentieth of a function's size.

use std::error::Error;

use regex_automata::nfa::thompson::{BuildError, Compiler, Config, NFA, WhichCaptures};
use regex_automata::util::syntax;

/// Compiles the automaton of some expressions. The engines of the crates `regex` and `globset` are built from it, and
/// from the one that reads backwards (`Core::new` in regex-automata's `meta/strategy.rs`). So what compiles here
/// compiles there.
///
/// # Errors
/// Returns why they do not compile: the syntax, or an automaton of more than `most_bytes`.
pub(crate) fn compile(expressions: &[&str], syntax: syntax::Config, most_bytes: usize) -> Result<NFA, String> {
    let automaton = |config: Config| {
        let config = config.utf8(syntax.get_utf8()).nfa_size_limit(Some(most_bytes)).shrink(false);
        let built = Compiler::new().syntax(syntax).configure(config).build_many(expressions);
        built.map_err(|error| reason(&error))
    };
    automaton(Config::new().reverse(true).which_captures(WhichCaptures::None))?;
    automaton(Config::new())
}

/// Returns the reason of an error. A syntax error also shows the expression; its last line has the reason.
fn reason(error: &BuildError) -> String {
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
}
