//! What the account can use: the instance types of each zone, its default subnets, and its quotas of vCPUs.

use super::filter::Resource;
use super::{ApiError, Filter, Selection, World, catalog};

/// The sizes that `family.*` matches. A size that the family does not have on AWS does no harm here.
const SIZES: [&str; 8] = ["xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"];
/// The vCPUs of a quota that is not set.
const QUOTA: f64 = 768.0;
/// The quotas of vCPUs that are emulated (<https://docs.aws.amazon.com/ec2/latest/userguide/ec2-instance-quotas.html>).
const QUOTAS: [(&str, &str); 7] = [
    ("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"),
    ("L-3819A6DF", "All G and VT Spot Instance Requests"),
    ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    ("L-C4BD4855", "All P5 Spot Instance Requests"),
    ("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
    ("L-DB2E81BA", "Running On-Demand G and VT instances"),
    ("L-417A185B", "Running On-Demand P instances"),
];

/// A subnet of the default VPC. Each zone has one, `subnet-<zone>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// The subnet's id, such as `subnet-us-east-1a`.
    pub id: String,
    /// The subnet's zone.
    pub zone: String,
}

impl Resource for Subnet {
    const IDS: &'static str = "subnetIds";

    const FILTERS: &'static [&'static str] = &["availability-zone", "default-for-az", "subnet-id"];

    fn id(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::empty()
    }

    fn field(&self, filter: &str) -> Vec<&str> {
        match filter {
            "availability-zone" => vec![&self.zone],
            "default-for-az" => vec!["true"],
            "subnet-id" => vec![&self.id],
            _unknown => Vec::new(),
        }
    }
}

/// Returns the known instance types that match one of the patterns.
fn types(patterns: &[String]) -> Result<Vec<String>, ApiError> {
    let mut types: Vec<String> = Vec::new();
    for pattern in patterns {
        match pattern.strip_suffix(".*") {
            Some(family) => types.extend(SIZES.map(|size| format!("{family}.{size}"))),
            None => types.push(pattern.clone()),
        }
    }
    if types.is_empty() || types.iter().any(|name| name.contains(['*', '?'])) {
        let message = "Give the filter instance-type with names, or with a family and .*: others are not emulated.";
        return Err(ApiError::ec2("InvalidParameterValue", message));
    }
    types.retain(|name| catalog::instance_type(name).is_some());
    Ok(types)
}

/// Returns the types that a name among a compute environment's `instanceTypes` stands for: a type, a family, or `optimal`
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html>).
pub(super) fn members(name: &str) -> Vec<String> {
    let families: &[&str] = match name {
        "optimal" => &["c4", "m4", "r4"],
        family if !family.contains('.') => &[family],
        _type => &[],
    };
    let patterns: Vec<String> = families.iter().map(|family| format!("{family}.*")).collect();
    types(&patterns).ok().filter(|types| !types.is_empty()).unwrap_or_else(|| vec![name.to_owned()])
}

/// What DescribeInstanceTypes returns of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name.
    pub name: String,
    /// GB of the NVMe disks that an instance has of its own; `None` where it has none.
    pub nvme_gb: Option<u64>,
    /// Number of its GPUs.
    pub gpus: u32,
}

impl World {
    /// Whether an instance type is offered in a zone.
    pub(super) fn is_offered(&self, instance_type: &str, zone: &str) -> bool {
        self.trouble.types_not_offered.get(instance_type).is_none_or(|zones| !zones.contains(zone))
    }

    /// Returns the region's instance types. The patterns are names, or a family with `.*`.
    ///
    /// # Errors
    /// `InvalidParameterValue` for any other pattern, because the answer would be every existing type.
    pub fn describe_instance_types(&self, patterns: &[String]) -> Result<Vec<InstanceType>, ApiError> {
        let mut types = types(patterns)?;
        types.sort_unstable();
        types.dedup();
        types.retain(|name| self.settings.zones.iter().any(|zone| self.is_offered(name, zone)));
        let described = |name: String| InstanceType {
            nvme_gb: catalog::nvme_gb(&name),
            gpus: catalog::instance_type(&name).map_or(0, |resources| resources.gpus),
            name,
        };
        Ok(types.into_iter().map(described).collect())
    }

    /// Returns instance types with the zones that offer them. The patterns are names, or a family with `.*`.
    ///
    /// # Errors
    /// `InvalidParameterValue` for any other pattern, because the answer would be every existing type.
    pub fn describe_offerings(&self, patterns: &[String]) -> Result<Vec<(String, String)>, ApiError> {
        let types = types(patterns)?;
        let zones = || self.settings.zones.iter();
        let pairs = types.iter().flat_map(|name| zones().map(move |zone| (name.clone(), zone.clone())));
        Ok(pairs.filter(|(name, zone)| self.is_offered(name, zone)).collect())
    }

    /// Describes the default VPC's subnets with these ids, or all subnets if there are no ids.
    ///
    /// # Errors
    /// `InvalidSubnetID.NotFound` for unknown ids, `InvalidParameterValue` for unknown filters.
    pub fn describe_subnets(&self, ids: Vec<String>, filters: Vec<Filter>) -> Result<Vec<Subnet>, ApiError> {
        let zones = self.settings.zones.iter();
        let all: Vec<Subnet> = zones.map(|zone| Subnet { id: format!("subnet-{zone}"), zone: zone.clone() }).collect();
        if let Some(unknown) = ids.iter().find(|id| all.iter().all(|subnet| subnet.id != **id)) {
            let message = format!("The subnet ID '{unknown}' does not exist");
            return Err(ApiError::ec2("InvalidSubnetID.NotFound", message));
        }
        let wanted = Selection { ids, filters, ..Selection::default() };
        let (chosen, _) = wanted.choose(all.iter())?;
        Ok(chosen.into_iter().cloned().collect())
    }

    /// Returns name and value of one of EC2's quotas.
    ///
    /// # Errors
    /// `NoSuchResourceException` for a code that is not emulated.
    pub fn service_quota(&self, code: &str) -> Result<(&'static str, f64), ApiError> {
        let Some((_, name)) = QUOTAS.iter().find(|(known, _)| *known == code) else {
            let message = "The request failed because the specified service quota does not exist.".to_owned();
            return Err(ApiError { code: "NoSuchResourceException", status: 400, message });
        };
        let quota = self.trouble.vcpu_quotas.get(code).copied().unwrap_or(QUOTA);
        let most = self.trouble.spot_vcpus.filter(|_| name.ends_with("Spot Instance Requests"));
        Ok((name, most.map_or(quota, |most| quota.min(most.into()))))
    }
}
