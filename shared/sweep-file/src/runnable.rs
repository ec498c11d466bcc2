//! Checks whether a command has a program to run.

use super::problem::{Place, Report};
use super::tree::Node;

/// Programs that run another program, which their arguments name. `python3.12` counts as `python`.
const RUN_OTHERS: [&str; 38] = [
    "env",
    "python",
    "pypy",
    "ipython",
    "bash",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "node",
    "perl",
    "ruby",
    "julia",
    "Rscript",
    "java",
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "accelerate.commands.launch",
    "deepspeed",
    "mpirun",
    "mpiexec",
    "srun",
    "uv",
    "uvx",
    "poetry",
    "pipenv",
    "pixi",
    "hatch",
    "pdm",
    "rye",
    "conda",
    "mamba",
    "micromamba",
    "time",
    "nice",
    "nohup",
];

/// Shells, whose option `-c` takes a script.
const SHELLS: [&str; 5] = ["bash", "sh", "dash", "zsh", "ksh"];

/// Words that such a program accepts before the name of the other one.
const SUBCOMMANDS: [&str; 3] = ["run", "launch", "exec"];

/// Checks that `elements`, as W&B writes them, begin with a program and that it has something to run.
///
/// `is_wandbs` says whether the command should use `program`.
pub(crate) fn check(
    elements: &[String],
    nodes: &[Node],
    program: Option<&str>,
    is_wandbs: bool,
    report: &mut Report<'_>,
) {
    let (Some(first), Some(node)) = (elements.first(), nodes.first()) else { return };
    let help = match program {
        Some(_) => "begin with `${env}`, `${interpreter}`, `${program}`",
        None => "begin with the program, for example `python`, `train.py`",
    };
    if let Some(message) = bad_start(first) {
        report.add(node.place, message, help);
        return;
    }
    let has_arguments = elements.iter().any(|element| is_arguments(element));
    if (has_arguments || program.is_some()) && !elements.iter().any(|element| is_runnable(element)) {
        report.add(node.place, "the command has nothing to run: it names no script, module or program", help);
        return;
    }
    if let (true, Some(program)) = (is_wandbs, program) {
        warn_about_unused(elements, node.place, program, report);
    }
    warn_about_path(elements, nodes, program, report);
    for (index, (element, node)) in elements.iter().zip(nodes).enumerate() {
        if is_shell_script(elements, index) {
            continue;
        }
        if let Some(path) = windows_path(element) {
            let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
            let is_interpreter = name.to_ascii_lowercase().starts_with("python");
            let help = if is_interpreter { "write `${interpreter}`" } else { "write a path of the container" };
            report.warn(node.place, format!("`{path}` is a path of Windows, and trials run on Linux"), help);
        } else if let Some((name, variable)) = shell_variable(element) {
            let help = format!("write `{}`", element.replacen(name, &format!("${{envvar:{variable}}}"), 1));
            report.warn(
                node.place,
                format!("`{name}` is filled in by a shell only, and the command is run without one"),
                help,
            );
        } else if is_for_a_shell(element) {
            let message = format!("`{element}` means something to a shell only, and the command is run without one");
            let help = "run a script, or write `bash`, `-c` and the whole command as one element";
            report.warn(node.place, message, help);
        }
    }
}

/// Returns the Windows path that an element is, or has behind `=`: one with a drive, with the ending of a Windows
/// program, or with backslashes between names. One backslash may be an escape.
pub(crate) fn windows_path(element: &str) -> Option<&str> {
    let is_drive = |text: &str| {
        let rest = text.strip_prefix(|c: char| c.is_ascii_alphabetic()).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|rest| rest.starts_with(['\\', '/']) && !rest.starts_with("//"))
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let has_names = |text: &str| {
        let parts: Vec<&str> = text.split(['\\', '/']).filter(|part| !part.is_empty()).collect();
        let is_part =
            |part: &&str| part.len() > 1 && part.chars().all(is_name) && (*part == ".." || !part.starts_with('.'));
        text.contains('\\') && parts.len() > 1 && parts.iter().all(is_part)
    };
    let is_program = |text: &str| {
        let lower = text.to_ascii_lowercase();
        [".exe", ".bat", ".cmd", ".ps1"].iter().any(|ending| lower.ends_with(ending) && lower.len() > ending.len())
            || lower.contains("scripts/python")
    };
    let value = element.split_once('=').map(|(_, value)| value);
    [Some(element), value].into_iter().flatten().find(|text| is_drive(text) || has_names(text) || is_program(text))
}

/// Returns a shell variable in an element, as written and by its name: `$HOME`, `%USERPROFILE%`.
fn shell_variable(element: &str) -> Option<(&str, &str)> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (at, _) in element.match_indices('$') {
        let rest = &element[at + 1..];
        let length = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && !element[..at].ends_with('\\') {
            return Some((&element[at..=at + length], &rest[..length]));
        }
    }
    let (start, rest) = (element.find('%')?, element.split_once('%')?.1);
    let name = rest.split_once('%')?.0;
    let is_name = name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    is_name.then(|| (&element[start..start + name.len() + 2], name))
}

/// Returns why a first element cannot be a program.
fn bad_start(first: &str) -> Option<String> {
    if first.trim().is_empty() {
        return Some("the command begins with an empty element".to_owned());
    }
    if first.starts_with('-') {
        return Some(format!("the command begins with the option `{first}`, and not with a program"));
    }
    if is_arguments(first) {
        return Some(format!("the command begins with `{first}`, which becomes arguments, and not with a program"));
    }
    if ["cd", "source", "export", "set", "."].contains(&first) {
        return Some(format!("the command begins with `{first}`, which only a shell knows"));
    }
    if is_variable(first) {
        return Some(format!("the command begins with the variable `{first}`, which needs `${{env}}` before it"));
    }
    let words: Vec<&str> = first.split_whitespace().collect();
    (words.len() > 1 && runs_others(words[0])).then(|| {
        format!("the first element of the command, `{first}`, is the name of one file: make each word an element")
    })
}

/// Whether the parameters replace the element.
fn is_arguments(element: &str) -> bool {
    element.starts_with("${args") && element.ends_with('}')
}

/// Whether the element may name what is to run. It is then no option, assignment, number, or program that runs others.
fn is_runnable(element: &str) -> bool {
    if let Some(attached) = element.strip_prefix("-m").or_else(|| element.strip_prefix("-c")) {
        return !attached.is_empty() && !attached.starts_with('-');
    }
    let is_assignment = element.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(['+', '~', '@']) || name.chars().all(|c| c.is_ascii_alphanumeric() || "_./@[]-".contains(c))
    });
    let is_macro = is_arguments(element) || ["${env}", "${interpreter}"].contains(&element);
    let is_number = element.parse::<f64>().is_ok();
    let is_argument = element.trim().is_empty() || element.starts_with('-') || is_assignment || is_macro || is_number;
    !(is_argument || runs_others(element) || SUBCOMMANDS.contains(&element))
}

/// Whether the element sets a variable for `env` or for a shell.
fn is_variable(element: &str) -> bool {
    element.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether the element has a meaning for a shell, although no shell reads it.
fn is_for_a_shell(element: &str) -> bool {
    ["&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"].contains(&element)
        || element.starts_with("~/")
        || element.contains("$(")
}

/// Warns about a script without a folder and without an interpreter, because it is looked up like an installed program.
fn warn_about_path(elements: &[String], nodes: &[Node], program: Option<&str>, report: &mut Report<'_>) {
    let is_env = |element: &String| element == "${env}" || file_name(element) == "env" || is_variable(element);
    let Some((element, node)) = elements.iter().zip(nodes).find(|(element, _)| !is_env(element)) else { return };
    let named = if element == "${program}" { program.unwrap_or("") } else { element };
    if named.contains('/') || ![".py", ".sh"].iter().any(|ending| named.ends_with(ending)) {
        return;
    }
    let message = format!("`{named}` has no interpreter before it, and is looked for in the folders of PATH only");
    report.warn(node.place, message, format!("write `${{interpreter}}` or `bash` before it, or `./{named}`"));
}

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(crate) fn runs_others(element: &str) -> bool {
    let name = file_name(element);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUN_OTHERS.contains(&name) || RUN_OTHERS.contains(&unversioned)
}

/// Whether the element is a shell script, as it follows `-c` after a shell.
pub(crate) fn is_shell_script(elements: &[String], index: usize) -> bool {
    let Some((option, before)) = elements[..index].split_last() else { return false };
    let is_option = option.starts_with('-') && !option.starts_with("--") && option.ends_with('c');
    is_option && before.iter().any(|element| SHELLS.contains(&file_name(element)))
}

/// Warns about an unused `program`. The command may run it by its module's name or by a script of its own, or run
/// something else by mistake.
fn warn_about_unused(elements: &[String], place: Place, program: &str, report: &mut Report<'_>) {
    let name = file_name(program);
    let stem = program.strip_suffix(".py").unwrap_or(program);
    let module = stem.trim_start_matches("./").replace('/', ".");
    let names_it = |element: &String| {
        element.contains("${program}") || element.contains(name) || element.contains(&module) && !module.is_empty()
    };
    if name.is_empty() || elements.iter().any(names_it) {
        return;
    }
    let message = format!("`program` is {program}, and the command never uses it");
    let help = "write `${program}` where the script belongs; if the command runs it in another way, leave it as it is";
    report.warn(place, message, help);
}
