//! Subnets: each zone has one, `subnet-<zone>`. No VPC is emulated.

use super::{ApiError, World};

const PREFIX: &str = "subnet-";

/// A subnet, of which only the zone matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// `subnet-<zone>`.
    pub id: String,
    /// Its availability zone.
    pub zone: String,
}

impl World {
    /// Shows subnets: those of these ids, all if there is none.
    ///
    /// # Errors
    /// `InvalidSubnetID.NotFound`.
    pub fn describe_subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, ApiError> {
        let known = |zone: &str| self.settings.zones.iter().any(|one| one == zone);
        let missing = ids.iter().find(|id| !id.strip_prefix(PREFIX).is_some_and(known));
        if let Some(id) = missing {
            let message = format!("The subnet ID '{id}' does not exist");
            return Err(ApiError::ec2("InvalidSubnetID.NotFound", message));
        }
        let all = self.settings.zones.iter().map(|zone| Subnet { id: format!("{PREFIX}{zone}"), zone: zone.clone() });
        Ok(all.filter(|subnet| ids.is_empty() || ids.contains(&subnet.id)).collect())
    }
}
