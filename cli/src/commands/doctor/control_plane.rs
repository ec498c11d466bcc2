//! Checks the functions, and the rules that invoke them.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_eventbridge::types::RuleState;
use aws_sdk_lambda::operation::get_function_configuration::GetFunctionConfigurationOutput;
use aws_sdk_lambda::types::{LastUpdateStatus, State};
use spotsweep_protocol::functions::{CLAIM, FUNCTIONS};

use super::finding::Finding;
use super::stack::Deployment;
use crate::target::Target;

const DEPLOY: &str = "deploy again: `spotsweep deploy`, or `sam build && sam deploy` in infra/ (docs/deploy.md)";

/// Version of this command, and of the functions in the same checkout.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A function's environment variables.
pub(super) type Variables = BTreeMap<String, String>;

/// Checks each function, and whether all belong to the same deployment. Returns the variables in which they agree.
pub(super) async fn functions(target: &Target, deployment: &Deployment) -> (Vec<Finding>, Variables) {
    let client = aws_sdk_lambda::Client::new(&target.config);
    let (mut findings, mut all) = (Vec::new(), Vec::new());
    for function in FUNCTIONS {
        let name = format!("{}{function}", deployment.prefix());
        match client.get_function_configuration().function_name(&name).send().await {
            Ok(configuration) => {
                findings.extend(inactive(function, &configuration));
                all.push((function, configuration));
            }
            Err(error) => findings.push(Finding::refused(function, "lambda:GetFunctionConfiguration", &error)),
        }
    }
    let variables = |configuration: &GetFunctionConfigurationOutput| -> Variables {
        let variables = configuration.environment().and_then(|environment| environment.variables());
        variables.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let environments: Vec<(&str, Variables)> =
        all.iter().map(|(function, configuration)| (*function, variables(configuration))).collect();
    findings.extend(differences(&environments));
    findings.extend(mixed(&all));
    let shared = environments.into_iter().next().map(|(_, variables)| variables).unwrap_or_default();
    for (variable, output) in [("SPOTSWEEP_TABLE", "Table"), ("SPOTSWEEP_BUCKET", "Bucket")] {
        let (has, should) = (shared.get(variable).map(String::as_str), deployment.output(output));
        if has != should && !all.is_empty() {
            let said =
                format!("{variable} is {}, the stack's is {}", has.unwrap_or("not set"), should.unwrap_or("none"));
            findings.push(Finding::problem("functions", said, DEPLOY));
        }
    }
    if !all.is_empty() {
        findings.extend(another_version(shared.get("SPOTSWEEP_VERSION").map(String::as_str)));
    }
    if findings.is_empty() {
        let said = format!("{} active, with the same settings, all of version {VERSION}", FUNCTIONS.len());
        findings.push(Finding::ok("functions", said));
    }
    (findings, shared)
}

/// This command reads what the functions write, and may misread what another version has written.
fn another_version(deployed: Option<&str>) -> Option<Finding> {
    let deployed = deployed.unwrap_or("unknown");
    let said = || format!("the stack is of version {deployed}, this command of {VERSION}");
    let fix =
        || format!("{DEPLOY} from the checkout of the newer one, and build both the command and the images from it");
    (deployed != VERSION).then(|| Finding::problem("functions", said(), fix()))
}

fn inactive(function: &str, configuration: &GetFunctionConfigurationOutput) -> Option<Finding> {
    let state = configuration.state().filter(|state| !matches!(state, State::Active | State::Inactive));
    if state == Some(&State::Pending) {
        return Some(Finding::look(function, "the function is being updated", "run this again in a minute"));
    }
    if let Some(state) = state {
        let reason = configuration.state_reason().unwrap_or_default();
        return Some(Finding::problem(function, format!("the function is {} {reason}", state.as_str()), DEPLOY));
    }
    let failed = configuration.last_update_status() == Some(&LastUpdateStatus::Failed);
    let reason = || configuration.last_update_status_reason().unwrap_or_default();
    failed.then(|| Finding::problem(function, format!("its last update failed: {}", reason()), DEPLOY))
}

/// Finds variables whose values differ between functions.
fn differences(environments: &[(&str, Variables)]) -> Vec<Finding> {
    let names: BTreeSet<&String> = environments.iter().flat_map(|(_, variables)| variables.keys()).collect();
    let mut findings = Vec::new();
    for name in names.into_iter().filter(|name| name.starts_with("SPOTSWEEP_")) {
        let mut values: BTreeMap<Option<&String>, Vec<&str>> = BTreeMap::new();
        for (function, variables) in environments {
            values.entry(variables.get(name)).or_default().push(function);
        }
        if values.len() > 1 {
            let each = values.iter().map(|(value, functions)| {
                format!("{:?} for {}", value.map_or("unset", String::as_str), functions.join(", "))
            });
            let said = format!("{name} differs: {}", each.collect::<Vec<_>>().join("; "));
            findings.push(Finding::problem("functions", said, DEPLOY));
        }
    }
    findings
}

/// Functions with different processors or runtimes belong to different deployments.
fn mixed(all: &[(&str, GetFunctionConfigurationOutput)]) -> Option<Finding> {
    let kinds: BTreeSet<String> = all
        .iter()
        .map(|(_, configuration)| {
            let runtime = configuration.runtime().map_or("", |runtime| runtime.as_str());
            let processors = configuration.architectures().iter().map(|processor| processor.as_str());
            format!("{runtime} on {}", processors.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let said =
        || format!("they are of different deployments: {}", kinds.iter().cloned().collect::<Vec<_>>().join("; "));
    (kinds.len() > 1).then(|| Finding::problem("functions", said(), DEPLOY))
}

/// Checks that each rule is enabled, and invokes its function.
pub(super) async fn rules(target: &Target, deployment: &Deployment) -> Vec<Finding> {
    let client = aws_sdk_eventbridge::Client::new(&target.config);
    let mut findings = Vec::new();
    for function in FUNCTIONS.into_iter().filter(|function| *function != CLAIM) {
        let name = format!("{}{function}", deployment.prefix());
        match client.describe_rule().name(&name).send().await {
            Ok(rule) if rule.state() == Some(&RuleState::Disabled) => {
                let fix =
                    format!("`aws events enable-rule --name {name}`; what happened meanwhile, reconcile makes up for");
                findings.push(Finding::problem(function, format!("its rule {name} is off"), fix));
                continue;
            }
            Ok(_) => {}
            Err(error) => {
                findings.push(Finding::refused(function, "events:DescribeRule", &error));
                continue;
            }
        }
        match client.list_targets_by_rule().rule(&name).send().await {
            Ok(targets) if targets.targets().iter().any(|target| target.arn().ends_with(&format!(":{name}"))) => {}
            Ok(_) => findings.push(Finding::problem(function, format!("its rule {name} does not call it"), DEPLOY)),
            Err(error) => findings.push(Finding::refused(function, "events:ListTargetsByRule", &error)),
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok("rules", format!("{} on, each calls its function", FUNCTIONS.len() - 1)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_of_the_commands_version() {
        let text = include_str!("../../../../infra/control-plane.yaml");
        assert!(text.contains(&format!("SPOTSWEEP_VERSION: \"{VERSION}\"\n")), "the template and Cargo.toml differ");
        assert_eq!(another_version(Some(VERSION)), None);
        for (deployed, said) in [(Some("0.0.9"), "version 0.0.9"), (None, "version unknown")] {
            assert!(another_version(deployed).unwrap().said.contains(said));
        }
    }

    #[test]
    fn functions_must_agree() {
        let with = |variables: &[(&str, &str)]| -> Variables {
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let one = [("SPOTSWEEP_TABLE", "t"), ("OWN", "1")];
        assert_eq!(differences(&[("a", with(&one)), ("b", with(&one[..1]))]), [], "others' variables do not matter");
        let found = differences(&[("a", with(&one)), ("b", with(&[("SPOTSWEEP_TABLE", "u")])), ("c", with(&[]))]);
        let [finding] = found.as_slice() else { unreachable!("{found:?}") };
        for part in ["SPOTSWEEP_TABLE", "\"t\" for a", "\"u\" for b", "\"unset\" for c"] {
            assert!(finding.said.contains(part), "{}", finding.said);
        }
    }
}
