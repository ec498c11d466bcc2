//! EC2's calls for instances: DescribeInstances, DescribeInstanceStatus, TerminateInstances, DescribeAvailabilityZones.

use super::filter::Resource;
use super::instance::{Cause, instance_not_found};
use super::{ApiError, Filter, Instance, InstanceState, Selection, World};

impl World {
    /// Describes instances. Returns them with the token of the next page.
    ///
    /// # Errors
    /// `InvalidInstanceID.*` for invalid or unknown ids, `InvalidParameterValue` for unknown filters.
    pub fn describe_instances(&mut self, wanted: &Selection) -> Result<(Vec<&Instance>, Option<String>), ApiError> {
        self.check_ids(&wanted.ids)?;
        if wanted.is_unbounded() {
            self.check_unbounded("DescribeInstances")?;
        }
        wanted.choose(self.instances.values())
    }

    /// Returns the instances of DescribeInstanceStatus, with the page's token. Only running ones are described, unless
    /// `all` is set.
    ///
    /// # Errors
    /// The same as those of [`World::describe_instances`].
    pub fn describe_instance_status(
        &mut self,
        wanted: &Selection,
        all: bool,
    ) -> Result<(Vec<&Instance>, Option<String>), ApiError> {
        let (found, next) = self.describe_instances(wanted)?;
        Ok((found.into_iter().filter(|found| all || found.state == InstanceState::Running).collect(), next))
    }

    /// Shuts instances down. Returns ids with the states before and after.
    ///
    /// # Errors
    /// `InvalidInstanceID.*` for invalid or unknown ids. Then no instance is shut down.
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

    /// Describes the region's zones with these names, or all zones if there are no names.
    ///
    /// # Errors
    /// `InvalidParameterValue` for unknown names and unknown filters.
    pub fn describe_zones(&self, names: Vec<String>, filters: Vec<Filter>) -> Result<Vec<Zone>, ApiError> {
        if let Some(unknown) = names.iter().find(|name| !self.settings.zones.contains(name)) {
            let message = format!("Invalid availability zone: [{unknown}]");
            return Err(ApiError::ec2("InvalidParameterValue", message));
        }
        let region = &self.settings.region;
        let zones: Vec<Zone> =
            self.settings.zones.iter().map(|name| Zone { name: name.clone(), region: region.clone() }).collect();
        let wanted = Selection { ids: names, filters, ..Selection::default() };
        let (chosen, _) = wanted.choose(zones.iter())?;
        Ok(chosen.into_iter().cloned().collect())
    }

    /// Returns an error for a zone that the region does not have.
    pub fn check_zone(&self, zone: &str) -> Result<(), ApiError> {
        if self.settings.zones.iter().any(|known| known == zone) {
            return Ok(());
        }
        Err(ApiError::ec2("InvalidZone.NotFound", format!("The zone '{zone}' does not exist.")))
    }

    fn check_ids(&self, ids: &[String]) -> Result<(), ApiError> {
        ids.iter().try_for_each(|id| check_instance_id(id))?;
        let missing: Vec<&str> =
            ids.iter().filter(|id| !self.instances.contains_key(*id)).map(String::as_str).collect();
        if missing.is_empty() { Ok(()) } else { Err(instance_not_found(&missing)) }
    }
}

/// Returns EC2's error for an invalid id.
pub(super) fn check_instance_id(id: &str) -> Result<(), ApiError> {
    if well_formed(id) {
        return Ok(());
    }
    let message = format!("Invalid id: \"{id}\" (expecting \"i-...\")");
    Err(ApiError::ec2("InvalidInstanceID.Malformed", message))
}

/// Whether an id is `i-` and 8 (old) or 17 hex digits.
fn well_formed(id: &str) -> bool {
    id.strip_prefix("i-")
        .is_some_and(|digits| matches!(digits.len(), 8 | 17) && digits.chars().all(|c| c.is_ascii_hexdigit()))
}

/// An availability zone of the region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// The zone's name, such as `us-east-1a`.
    pub name: String,
    /// The region's name, such as `us-east-1`.
    pub region: String,
}

impl Zone {
    /// Returns ZoneState.
    pub fn state(&self) -> &'static str {
        "available"
    }

    /// Returns ZoneType.
    pub fn kind(&self) -> &'static str {
        "availability-zone"
    }
}

impl Resource for Zone {
    const IDS: &'static str = "zoneName";

    const FILTERS: &'static [&'static str] = &["zone-name", "region-name", "state", "zone-type"];

    fn id(&self) -> &str {
        &self.name
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::empty()
    }

    fn field(&self, filter: &str) -> Vec<&str> {
        let field = match filter {
            "zone-name" => self.name.as_str(),
            "region-name" => self.region.as_str(),
            "state" => self.state(),
            "zone-type" => self.kind(),
            _unknown => return Vec::new(),
        };
        vec![field]
    }
}

impl Resource for Instance {
    const IDS: &'static str = "instancesSet";

    const FILTERS: &'static [&'static str] = &[
        "instance-id",
        "instance-state-name",
        "availability-zone",
        "subnet-id",
        "instance-type",
        "instance-lifecycle",
    ];

    fn id(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn field(&self, filter: &str) -> Vec<&str> {
        let field = match filter {
            "instance-id" => &self.id,
            "instance-state-name" => self.state.as_str(),
            "availability-zone" => &self.zone,
            "subnet-id" => &self.subnet,
            "instance-type" => &self.instance_type,
            "instance-lifecycle" => return self.spot.then_some("spot").into_iter().collect(),
            _unknown => return Vec::new(),
        };
        vec![field]
    }
}
