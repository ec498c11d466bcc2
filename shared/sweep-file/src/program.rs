//! Checks whether the command can run `program`.
//!
//! W&B's agent passes `program` to the interpreter as one argument, unchanged (`wandb/wandb_agent.py`).

use super::problem::{Place, Report};
use super::runnable::{file_name, runs_others, windows_path};

/// Endings of files that Python runs.
const PYTHONS: [&str; 5] = ["py", "pyw", "pyc", "pyz", "zip"];

/// Warns of a `program` that the element `before` it cannot run.
pub(crate) fn check(program: &str, before: Option<&str>, place: Place, report: &mut Report<'_>) {
    let is_python = before.is_some_and(|before| {
        before == "${interpreter}"
            || file_name(before).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python"
    });
    let command = |elements: &[&str]| {
        let quoted: Vec<String> = elements.iter().map(|element| format!("\"{element}\"")).collect();
        format!("`command: [\"${{env}}\", {}, \"${{args}}\"]`", quoted.join(", "))
    };
    if windows_path(program).is_some() {
        let help = format!("write `{}`, relative to the code", program.replace('\\', "/"));
        report.warn(place, format!("`{program}` is a path of Windows, and trials run on Linux"), help);
        return;
    }
    let words: Vec<&str> = program.split_whitespace().collect();
    if let ["-m", module] = words[..] {
        let help = format!("write `program: {module}` and {}", command(&["${interpreter}", "-m", "${program}"]));
        report.warn(place, format!("`{program}` is one argument, and so no option and its module"), help);
    } else if words.len() > 1 {
        let interpreter = match words[0] {
            first if runs_others(first) => None,
            first if first.ends_with(".sh") => Some("bash"),
            _ => Some("${interpreter}"),
        };
        let elements: Vec<&str> = interpreter.into_iter().chain(words).collect();
        let message = format!("`{program}` is one argument, the name of one file");
        report.warn(place, message, format!("delete `program`, and write {}", command(&elements)));
    } else if program.starts_with('-') {
        let help = format!(
            "write the script's name, and the option in {}",
            command(&["${interpreter}", program, "${program}"])
        );
        report.warn(place, format!("`{program}` is an option, and names no script"), help);
    } else if is_python {
        check_ending(program, place, &command, report);
    }
}

/// Warns about the ending of a script in another language, because Python would run it all the same.
fn check_ending(program: &str, place: Place, command: &dyn Fn(&[&str]) -> String, report: &mut Report<'_>) {
    let Some((_, ending)) = file_name(program).rsplit_once('.') else { return };
    let ending = ending.to_ascii_lowercase();
    if ending.is_empty() || !ending.chars().all(|c| c.is_ascii_alphabetic()) || PYTHONS.contains(&ending.as_str()) {
        return;
    }
    let message = format!("`{program}` is given to Python, which runs Python only");
    let help = match ending.as_str() {
        "sh" | "bash" => format!("write {}", command(&["bash", "${program}"])),
        _ => format!(
            "write {} with the program that runs it; a module needs {}",
            command(&["…", "${program}"]),
            command(&["${interpreter}", "-m", "${program}"])
        ),
    };
    report.warn(place, message, help);
}
