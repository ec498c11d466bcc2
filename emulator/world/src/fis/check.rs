//! The checks of a new template.

use super::request::{Action, CreateExperimentTemplate, Target};
use super::{ACTION, DURATION, RESOURCE, TARGET, invalid};
use crate::ApiError;

/// The only path of a target's filter that is emulated.
const STATE_PATH: &str = "State.Name";
/// EC2's interruption notice in minutes, which is the shortest duration that FIS takes. The longest one is 15.
pub(super) const NOTICE_MINUTES: u32 = 2;
const LONGEST_MINUTES: u32 = 15;
/// Most ARNs of a target (service model, ResourceArnList).
const MOST_ARNS: usize = 5;

pub(super) fn template(wanted: &CreateExperimentTemplate) -> Result<(), ApiError> {
    if let Some(condition) = wanted.stop_conditions.iter().find(|condition| condition.source != "none") {
        return Err(unknown("stop condition", &condition.source));
    }
    let role = wanted.role_arn.strip_prefix("arn:").and_then(|rest| rest.split_once(":iam::"));
    if !role.is_some_and(|(_, role)| role.contains(":role/")) {
        return Err(invalid(format!("{:?} is not the ARN of a role.", wanted.role_arn)));
    }
    if wanted.actions.is_empty() {
        return Err(invalid("An experiment template has at least one action."));
    }
    wanted.targets.iter().try_for_each(|(name, one)| target(name, one))?;
    for action in wanted.actions.values() {
        if action.action_id != ACTION {
            return Err(unknown("action", &action.action_id));
        }
        minutes(action)?;
        if let Some(other) = action.targets.keys().find(|name| *name != TARGET) {
            // FIS's message: https://github.com/hashicorp/terraform-provider-aws/issues/26950
            return Err(invalid(format!("Unexpected target {other:?} found in action {ACTION:?}.")));
        }
        if !action.targets.get(TARGET).is_some_and(|at| wanted.targets.contains_key(at)) {
            return Err(invalid(format!("The action {ACTION} has one target, {TARGET}, which the template names.")));
        }
    }
    Ok(())
}

fn target(name: &str, target: &Target) -> Result<(), ApiError> {
    if target.resource_type != RESOURCE {
        return Err(unknown("resource type", &target.resource_type));
    }
    match (target.resource_arns.is_empty(), target.resource_tags.is_empty(), target.filters.is_empty()) {
        (true, true, _) => {
            return Err(invalid(format!("The target {name} has neither resource ARNs nor resource tags.")));
        }
        // FIS's message: https://github.com/aws-samples/fis-template-library/issues/8
        (false, false, _) => {
            return Err(invalid(format!("You cannot specify both resource ARNs and resource tags for target {name}.")));
        }
        (false, true, false) => {
            return Err(invalid(format!("You cannot specify both resource ARNs and filters for target {name}.")));
        }
        (false, true, true) | (true, false, _) => {}
    }
    if target.resource_arns.len() > MOST_ARNS {
        return Err(invalid(format!("The target {name} has more than {MOST_ARNS} resource ARNs.")));
    }
    if let Some(arn) = target.resource_arns.iter().find(|arn| instance(arn).is_none()) {
        return Err(invalid(format!("{arn:?} is not the ARN of an instance.")));
    }
    if let Some(filter) = target.filters.iter().find(|filter| filter.path != STATE_PATH) {
        return Err(unknown("filter path", &filter.path));
    }
    count(&target.selection_mode).map(drop)
}

/// Returns the id in an instance's ARN.
pub(super) fn instance(arn: &str) -> Option<&str> {
    arn.starts_with("arn:").then_some(())?;
    arn.split_once(":instance/").map(|(_, id)| id)
}

/// Returns how many of the matching resources are chosen.
pub(super) fn count(selection: &str) -> Result<usize, ApiError> {
    let number = || selection.strip_prefix("COUNT(")?.strip_suffix(')')?.parse().ok().filter(|number| *number > 0);
    match selection {
        "ALL" => Ok(usize::MAX),
        _counted => number().ok_or_else(|| unknown("selection mode", selection)),
    }
}

/// Returns the minutes of an action's duration, `PT2M` to `PT15M`.
pub(super) fn minutes(action: &Action) -> Result<u32, ApiError> {
    let duration = action.parameters.get(DURATION).map(String::as_str).unwrap_or_default();
    if let Some(other) = action.parameters.keys().find(|name| *name != DURATION) {
        return Err(unknown("parameter", other));
    }
    let minutes = duration.strip_prefix("PT").and_then(|rest| rest.strip_suffix('M')?.parse().ok());
    minutes.filter(|minutes| (NOTICE_MINUTES..=LONGEST_MINUTES).contains(minutes)).ok_or_else(|| {
        invalid(format!("{DURATION} must be PT{NOTICE_MINUTES}M to PT{LONGEST_MINUTES}M, not {duration:?}."))
    })
}

fn unknown(what: &str, found: &str) -> ApiError {
    invalid(format!("The {what} {found:?} is not known to spotsweep-emulator."))
}
