//! EC2's API for instances: DescribeInstances, TerminateInstances, DescribeAvailabilityZones.

use super::instance::Cause;
use super::{ApiError, Instance, InstanceState, World};

/// Page size bounds of DescribeInstances.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 5..=1000;

/// Which instances to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeInstances {
    /// All if empty.
    pub instance_ids: Vec<String>,
    /// All of them must match.
    pub filters: Vec<Filter>,
    /// 5 to 1000; not together with ids.
    pub max_results: Option<usize>,
    /// From the page before.
    pub next_token: Option<String>,
}

/// An EC2 filter: any of its values must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Such as `instance-state-name` or `tag:Name`.
    pub name: String,
    /// `*` and `?` are wildcards.
    pub values: Vec<String>,
}

impl World {
    /// Shows instances, in the order of their launch, and the token of the next page.
    ///
    /// # Errors
    /// `InvalidInstanceID.*` for ids that are none, `InvalidParameterValue` for unknown filters.
    pub fn describe_instances(
        &self,
        request: &DescribeInstances,
    ) -> Result<(Vec<&Instance>, Option<String>), ApiError> {
        self.check_ids(&request.instance_ids)?;
        if let Some(size) = request.max_results
            && !PAGE_SIZES.contains(&size)
        {
            let message =
                format!("Value ( {size} ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.");
            return Err(ApiError::ec2("InvalidParameterValue", message));
        }
        if request.max_results.is_some() && !request.instance_ids.is_empty() {
            let message = "The parameter instancesSet cannot be used with the parameter maxResults";
            return Err(ApiError::ec2("InvalidParameterCombination", message));
        }
        let mut found = Vec::new();
        for instance in self.instances.values() {
            let named = request.instance_ids.is_empty() || request.instance_ids.contains(&instance.id);
            if named && matches_all(instance, &request.filters)? {
                found.push(instance);
            }
        }
        found.sort_by_key(|instance| instance.launched_at);
        let start = match request.next_token.as_deref() {
            None => 0,
            Some(token) => token
                .strip_prefix("next-")
                .and_then(|at| at.parse().ok())
                .ok_or_else(|| ApiError::ec2("InvalidNextToken", format!("The token '{token}' is invalid.")))?,
        };
        let end = request.max_results.map_or(found.len(), |size| found.len().min(start + size));
        let next = (end < found.len()).then(|| format!("next-{end}"));
        Ok((found.into_iter().take(end).skip(start).collect(), next))
    }

    /// Shuts instances down; answers id, state before and state after.
    ///
    /// # Errors
    /// `InvalidInstanceID.*` for ids that are none: then nothing is shut down.
    pub fn terminate_instances(
        &mut self,
        ids: &[String],
    ) -> Result<Vec<(String, InstanceState, InstanceState)>, ApiError> {
        if ids.is_empty() {
            let message = "The request must contain the parameter InstanceId";
            return Err(ApiError::ec2("MissingParameter", message));
        }
        self.check_ids(ids)?;
        let before: Vec<_> =
            ids.iter().filter_map(|id| self.instances.get(id).map(|i| (id.clone(), i.state))).collect();
        let mut changes = Vec::new();
        for (id, from) in before {
            self.shut_down(&id, Cause::User);
            let to = self.instances.get(&id).map_or(from, |instance| instance.state);
            changes.push((id, from, to));
        }
        self.schedule();
        Ok(changes)
    }

    fn check_ids(&self, ids: &[String]) -> Result<(), ApiError> {
        if let Some(bad) = ids.iter().find(|id| !well_formed(id)) {
            let message = format!("Invalid id: \"{bad}\" (expecting \"i-...\")");
            return Err(ApiError::ec2("InvalidInstanceID.Malformed", message));
        }
        let missing: Vec<&str> =
            ids.iter().filter(|id| !self.instances.contains_key(*id)).map(String::as_str).collect();
        if missing.is_empty() { Ok(()) } else { Err(instance_not_found(&missing)) }
    }
}

/// EC2's answer to ids that name no instance.
pub(super) fn instance_not_found(ids: &[&str]) -> ApiError {
    let message = match ids {
        [one] => format!("The instance ID '{one}' does not exist"),
        _ => format!("The instance IDs '{}' do not exist", ids.join(", ")),
    };
    ApiError::ec2("InvalidInstanceID.NotFound", message)
}

/// `i-` and 8 (old) or 17 hex digits.
fn well_formed(id: &str) -> bool {
    id.strip_prefix("i-")
        .is_some_and(|digits| matches!(digits.len(), 8 | 17) && digits.chars().all(|c| c.is_ascii_hexdigit()))
}

fn matches_all(instance: &Instance, filters: &[Filter]) -> Result<bool, ApiError> {
    for filter in filters {
        let have: Vec<&str> = match filter.name.as_str() {
            "instance-id" => vec![&instance.id],
            "instance-state-name" => vec![instance.state.as_str()],
            "availability-zone" => vec![&instance.zone],
            "subnet-id" => vec![&instance.subnet],
            "instance-type" => vec![&instance.instance_type],
            "instance-lifecycle" => {
                if instance.spot {
                    vec!["spot"]
                } else {
                    vec![]
                }
            }
            "tag-key" => instance.tags.iter().map(|(key, _)| key.as_str()).collect(),
            name => match name.strip_prefix("tag:") {
                Some(wanted) => {
                    instance.tags.iter().filter(|(key, _)| key == wanted).map(|(_, value)| value.as_str()).collect()
                }
                None => {
                    let message = format!("The filter '{name}' is invalid");
                    return Err(ApiError::ec2("InvalidParameterValue", message));
                }
            },
        };
        let hit = have.iter().any(|text| filter.values.iter().any(|pattern| glob(pattern, text)));
        if !hit {
            return Ok(false);
        }
    }
    Ok(true)
}

/// EC2's filter wildcards: `*` for any run of characters, `?` for one.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // matched[j]: the pattern so far matches the first j characters.
    let mut matched: Vec<bool> = (0..=text.len()).map(|j| j == 0).collect();
    for symbol in pattern {
        let mut next = vec![false; text.len() + 1];
        next[0] = symbol == '*' && matched[0];
        for (j, character) in text.iter().enumerate() {
            next[j + 1] = match symbol {
                '*' => matched[j + 1] || next[j],
                '?' => matched[j],
                plain => matched[j] && plain == *character,
            };
        }
        matched = next;
    }
    matched[text.len()]
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn wildcards() {
        let cases = [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("us-*-1?", "us-east-1b", true),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(glob(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
