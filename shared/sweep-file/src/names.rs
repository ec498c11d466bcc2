//! Checks the names of parameters, and finds names that become the same environment variable.

use std::collections::HashMap;

use serde_json::Value;
use spotsweep_protocol::command_line::{HP_PREFIX, nested_variable};
use spotsweep_protocol::visible::Sight;

use super::problem::{Place, Report};

/// The longest name of a parameter. It becomes an argument and an environment variable.
pub(crate) const MAX_NAME_CHARS: usize = 128;

/// Checks that a parameter's name can be an argument, a column and a line of a terminal.
///
/// W&B recommends `^[A-Za-z_][A-Za-z0-9_.-]*$` but runs every name. Hydra needs more characters: `++model.w`,
/// `optimizer/lr`, `numbers[0]`, `~x`.
pub(crate) fn check_name(name: &str, place: Place, report: &mut Report<'_>) {
    let length = name.chars().count();
    let mut sight = Sight::default();
    let (what, help) = if name.trim().is_empty() {
        ("it is empty".to_owned(), "give the parameter a name")
    } else if length > MAX_NAME_CHARS {
        (format!("it has {length} characters, and {MAX_NAME_CHARS} are the most"), "shorten it")
    } else if name.contains('=') {
        ("it has the character `=`".to_owned(), "remove it; an argument is the name, `=` and the value")
    } else if let Some(c) = name.chars().find(|c| sight.hides(*c)) {
        (format!("it has the invisible character U+{:04X}", u32::from(c)), "remove it")
    } else if name.trim() != name {
        ("it begins or ends with a space".to_owned(), "remove the space")
    } else {
        return;
    };
    report.add(place, format!("this is not a usable parameter name: {what}"), help);
}

/// The variables of all parameters, to find two parameters with the same variable.
#[derive(Default)]
pub(crate) struct Variables {
    /// Each variable with the path of its first parameter.
    known: HashMap<String, Vec<String>>,
}

impl Variables {
    /// Adds a parameter by its path, the names of the groups around it first, with one of its values.
    pub(crate) fn add(&mut self, path: &[String], value: &Value, place: Place, report: &mut Report<'_>) {
        if let Value::Object(entries) = value {
            for (key, value) in entries {
                self.add(&[path, std::slice::from_ref(key)].concat(), value, place, report);
            }
            return;
        }
        let variable = path.iter().fold(HP_PREFIX.to_owned(), |prefix, name| nested_variable(&prefix, name));
        match self.known.get(&variable) {
            Some(first) if first != path => {
                let (first, second) = (first.join("."), path.join("."));
                let message = if first == second {
                    format!("`{first}` is a parameter, and one of a group too: both become the variable {variable}")
                } else {
                    format!("`{first}` and `{second}` both become the variable {variable}")
                };
                let help = "the variable has the first one's value: rename one of the two, or read the arguments";
                report.warn(place, message, help);
            }
            Some(_) => {}
            None => {
                self.known.insert(variable, path.to_vec());
            }
        }
    }
}
