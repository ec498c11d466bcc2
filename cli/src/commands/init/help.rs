//! Reads the options of a script from what it prints for `--help`: argparse and what builds on it, click, and typer,
//! which draws a box around them.

/// An option of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptOption {
    /// Its name without the hyphens before it.
    pub(super) name: String,
    /// The values that it takes, if the help lists them.
    pub(super) choices: Vec<String>,
    /// Its default, as the help writes it.
    pub(super) default: Option<String>,
    /// The rest of its help.
    pub(super) help: String,
    /// Whether the script does not run without it.
    pub(super) is_required: bool,
    /// Whether it is given without a value.
    pub(super) is_flag: bool,
}

/// What a script takes from its command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Its options, in the order of the help, without `--help`.
    pub(super) options: Vec<ScriptOption>,
    /// Whether it takes arguments that are no options.
    pub(super) has_positional: bool,
}

/// What typer draws around options.
const BOX: [char; 7] = ['│', '╭', '╮', '╰', '╯', '─', '*'];

/// Reads a help text.
pub(super) fn read(text: &str) -> Script {
    let usage = usage(text);
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut indent = 0;
    for line in text.lines() {
        let line: String = line.chars().map(|c| if BOX.contains(&c) { ' ' } else { c }).collect();
        let (start, words) = (line.len() - line.trim_start().len(), line.trim());
        if words.starts_with('-') && start > 0 {
            let (head, help) = words.split_once("  ").unwrap_or((words, ""));
            let (head, help) = all_of_head(head, help);
            indent = start;
            entries.push((head, help));
        } else if let Some((_, help)) = entries.last_mut().filter(|_| start > indent && !words.is_empty()) {
            help.push(' ');
            help.push_str(words);
        } else {
            indent = usize::MAX;
        }
    }
    let options = entries.iter().filter_map(|(head, help)| option(head, help.trim(), &usage)).collect();
    let is_section =
        |line: &str| ["positional arguments:", "arguments:"].contains(&line.trim().to_lowercase().as_str());
    let has_positional = text.lines().any(is_section) || is_positional(&usage);
    Script { options, has_positional }
}

/// The usage as one line. It goes on in lines that are indented.
fn usage(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().to_lowercase().starts_with("usage:"));
    let first = lines.next().unwrap_or_default().to_owned();
    let more = lines.take_while(|line| line.starts_with("    "));
    more.fold(first, |whole, line| whole + " " + line.trim())
}

/// Click's usage ends with the names of such arguments: `Usage: train.py [OPTIONS] DATA`.
fn is_positional(usage: &str) -> bool {
    usage.split_once("[OPTIONS]").is_some_and(|(_, rest)| !rest.trim().is_empty())
}

/// Typer separates the names of a flag from each other as it separates the help from them.
fn all_of_head(head: &str, help: &str) -> (String, String) {
    let (mut head, mut help) = (head.to_owned(), help.trim_start());
    while help.starts_with('-') || help.starts_with('<') {
        let (more, rest) = help.split_once("  ").unwrap_or((help, ""));
        head = head + " " + more;
        help = rest.trim_start();
    }
    (head, help.to_owned())
}

fn option(head: &str, help: &str, usage: &str) -> Option<ScriptOption> {
    let words: Vec<&str> = head.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
    let long = |word: &&&str| word.starts_with("--");
    let name = words.iter().find(long)?.trim_start_matches('-');
    if ["help", "version", "config", "print_config", "install-completion", "show-completion"].contains(&name) {
        return None;
    }
    let value = words.iter().find(|word| !word.starts_with('-') && **word != "/");
    let choices = value.map(|value| choices(value)).unwrap_or_default();
    let (text, default) = default(help);
    let is_negated = words.iter().filter(long).any(|word| word.starts_with("--no-") && words.len() > 1);
    Some(ScriptOption {
        name: name.to_owned(),
        choices,
        default: default.filter(|default| default != "None"),
        help: text,
        is_required: help.contains("[required]") || help.contains("(required") || is_bare(usage, name),
        is_flag: value.is_none() || is_negated,
    })
}

/// The values in `{sgd,adam}`, `[sgd|adam]` or `<sgd|adam>`.
fn choices(value: &str) -> Vec<String> {
    let inner = value.trim_matches(['{', '}', '[', ']', '<', '>']);
    let is_list = inner.len() < value.len() && (inner.contains('|') || inner.contains(','));
    if is_list { inner.split(['|', ',']).map(str::to_owned).collect() } else { Vec::new() }
}

/// The help without its default, and the default.
fn default(help: &str) -> (String, Option<String>) {
    let lower = help.to_lowercase();
    let Some(at) = lower.find("default: ").filter(|_| lower.len() == help.len()) else {
        let end = help.find("(required").unwrap_or(help.len());
        return (help[..end].trim_end_matches("[required]").trim().to_owned(), None);
    };
    let value = &help[at + "default: ".len()..];
    let mut depth = 0_i32;
    let end = value.find(|c| match c {
        '[' | '(' => {
            depth += 1;
            false
        }
        ']' | ')' => {
            depth -= 1;
            depth < 0
        }
        ';' => depth == 0,
        _other => false,
    });
    let before = opened(&help[..at]).unwrap_or(at);
    (help[..before].trim().to_owned(), Some(value[..end.unwrap_or(value.len())].trim().to_owned()))
}

/// The place of the last bracket that is not closed.
fn opened(text: &str) -> Option<usize> {
    let mut closed = 0_u32;
    let mut brackets = text.rmatch_indices(['(', '[', ')', ']']);
    let is_open = |(_, bracket): &(usize, &str)| {
        let opens = ["(", "["].contains(bracket);
        let is_it = opens && closed == 0;
        closed = if opens { closed.saturating_sub(1) } else { closed + 1 };
        is_it
    };
    brackets.find(is_open).map(|(at, _)| at)
}

/// Whether argparse's usage has the option without brackets around it.
fn is_bare(usage: &str, name: &str) -> bool {
    let option = format!("--{name}");
    let mut before = usage.match_indices(&option).filter(|(at, _)| {
        let next = usage[at + option.len()..].chars().next();
        next.is_none_or(|c| c == ' ' || c == ']')
    });
    before.next().is_some_and(|(at, _)| {
        let open = usage[..at].matches('[').count();
        open == usage[..at].matches(']').count()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What the libraries' releases of November 2026 print for scripts with the same options.
    const RECORDED: [(&str, &str); 5] = [
        ("argparse", include_str!("help/argparse.txt")),
        ("transformers", include_str!("help/transformers.txt")),
        ("click", include_str!("help/click.txt")),
        ("typer", include_str!("help/typer.txt")),
        ("jsonargparse", include_str!("help/jsonargparse.txt")),
    ];

    fn script(library: &str) -> Script {
        read(RECORDED.iter().find(|(name, _)| *name == library).unwrap().1)
    }

    /// Name, default or `-`, and marks: required, flag, number of choices.
    fn lines(library: &str) -> Vec<String> {
        let line = |option: &ScriptOption| {
            let mut line = format!("{} {}", option.name, option.default.as_deref().unwrap_or("-"));
            line += if option.is_required { " required" } else { "" };
            line += if option.is_flag { " flag" } else { "" };
            if option.choices.is_empty() { line } else { format!("{line} {}", option.choices.join("|")) }
        };
        script(library).options.iter().map(line).collect()
    }

    #[test]
    fn the_options_of_each_library_are_found() {
        let argparse = [
            "batch-size 64",
            "lr 0.001",
            "momentum 0.9",
            "optimizer - sgd|adam",
            "betas [0.9, 0.999]",
            "out - required",
            "no-cuda - flag",
            "amp - flag",
            "epochs 14",
            "width -",
        ];
        assert_eq!(lines("argparse"), argparse);
        let transformers = [
            "output_dir - required",
            "learning_rate 5e-05",
            "weight_decay 0.0",
            "per_device_train_batch_size 8",
            "max_seq_length -",
            "fp16 False",
            "lr_scheduler_type linear",
        ];
        assert_eq!(lines("transformers"), transformers);
        let click =
            ["lr 0.01", "batch-size 32", "optimizer adam sgd|adam", "amp no-amp flag", "out - required", "dropout -"];
        assert_eq!(lines("click"), click);
        let typer = ["out - required", "lr 0.001", "layers 2", "optimizer adam sgd|adam", "amp no-amp flag"];
        assert_eq!(lines("typer"), typer);
        let jsonargparse =
            ["out - required", "lr 0.1", "hidden_dim 128", "optimizer sgd sgd|adam", "amp False true|false"];
        assert_eq!(lines("jsonargparse"), jsonargparse);
    }

    #[test]
    fn arguments_that_are_no_options_are_seen() {
        let found = RECORDED.map(|(library, text)| (library, read(text).has_positional));
        let expected =
            [("argparse", true), ("transformers", false), ("click", true), ("typer", false), ("jsonargparse", false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn help_goes_on_in_the_next_line_and_is_without_the_default() {
        let help = |library: &str, name: &str| {
            script(library).options.into_iter().find(|option| option.name == name).unwrap().help
        };
        assert_eq!(help("argparse", "batch-size"), "input batch size for training");
        assert_eq!(help("transformers", "learning_rate"), "The initial learning rate for AdamW.");
        assert_eq!(help("click", "out"), "");
        assert_eq!(help("typer", "out"), "Where the model goes.");
        assert_eq!((help("jsonargparse", "optimizer"), help("jsonargparse", "out")), (String::new(), String::new()));
    }

    #[test]
    fn a_text_without_options_has_none() {
        assert_eq!(read("Trained 3 epochs\nloss - 0.5\n"), Script::default());
    }
}
