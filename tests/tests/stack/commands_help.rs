//! Compares the output of `--help` of every command with `tests/help/<command>.txt`. `UPDATE_EXPECTED=1 cargo test
//! --workspace --test stack commands_help::` writes these files again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use spotsweep_tests::local::Binaries;

#[test]
fn every_command_says_what_it_does() {
    let mut pages = BTreeMap::new();
    let mut commands = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let page = help(&command, &[]);
        commands.extend(subcommands(&page).into_iter().map(|name| [command.clone(), vec![name]].concat()));
        let name = [vec!["spotsweep".to_owned()], command].concat().join("-");
        pages.insert(name, page);
    }
    assert!(pages.len() > 20, "{:?}", pages.keys());
    for (name, page) in &pages {
        assert!(page.contains("Example") || page.contains("Commands:"), "{name} has no example");
        assert!(page.lines().all(|line| line.chars().count() <= 120), "{name} is too wide");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("help");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for file in fs::read_dir(&folder).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        pages.iter().for_each(|(name, page)| fs::write(folder.join(format!("{name}.txt")), page).unwrap());
    }
    let expected = fs::read_dir(&folder).unwrap().map(|file| {
        let path = file.unwrap().path();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    });
    let expected: BTreeMap<String, String> = expected.collect();
    assert_eq!(
        expected.keys().collect::<Vec<_>>(),
        pages.keys().collect::<Vec<_>>(),
        "UPDATE_EXPECTED=1 writes them again"
    );
    for (name, page) in &pages {
        assert_eq!(&expected[name], page, "{name}: UPDATE_EXPECTED=1 writes it again");
    }
}

#[test]
fn colours_are_off_where_they_are_not_wanted() {
    let is_plain = |variables: &[(&str, &str)]| !help(&[], variables).contains('\u{1b}');
    assert!(is_plain(&[]), "not a terminal");
    assert!(!is_plain(&[("CLICOLOR_FORCE", "1")]), "there are colours");
    assert!(is_plain(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn the_version_names_what_was_built() {
    let output = Command::new(Binaries::build().get("spotsweep")).arg("--version").output().unwrap();
    let expected = format!("spotsweep {} (built from a checkout)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn shells_learn_every_command() {
    for (shell, part) in
        [("bash", "complete -F _spotsweep"), ("zsh", "#compdef spotsweep"), ("fish", "complete -c spotsweep")]
    {
        let run = Command::new(Binaries::build().get("spotsweep")).args(["completions", shell]).output().unwrap();
        assert!(run.status.success(), "{shell}");
        let script = String::from_utf8(run.stdout).unwrap();
        for part in [part, "redrive", "follow"] {
            assert!(script.contains(part), "{shell}: no {part}: {script}");
        }
    }
    let run = Command::new(Binaries::build().get("spotsweep")).args(["completions", "tcsh"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
}

/// The help page as a terminal of 100 columns shows it.
fn help(command: &[String], variables: &[(&str, &str)]) -> String {
    let mut help = Command::new(Binaries::build().get("spotsweep"));
    help.args(command).arg("--help").env("COLUMNS", "100");
    // Defaults from the environment of the caller are not those of the command.
    for name in ["SPOTSWEEP_BUCKET", "SPOTSWEEP_TABLE", "SPOTSWEEP_STACK", "SPOTSWEEP_TRIAL_LOGS"] {
        help.env_remove(name);
    }
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        help.env_remove(name);
    }
    let run = help.envs(variables.iter().copied()).output().unwrap();
    assert!(run.status.success(), "{command:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// The names under "Commands:", except for `help`.
fn subcommands(page: &str) -> Vec<String> {
    let listed = page.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
