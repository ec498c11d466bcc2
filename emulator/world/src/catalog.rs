//! Instance types: the resources of a name such as `g5.2xlarge`.
//!
//! AWS's sizes follow a rule (an `xlarge` has 4 vCPUs, an `Nxlarge` N times as many), and its families have a fixed
//! ratio of memory to vCPUs. For the family p it is the smallest of all generations, so it is never more than the real
//! one. Only GPUs need a table. Source: the EC2 instance type pages.

/// vCPUs, memory and GPUs of an instance type or a job, or those that are free on an instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// GPUs.
    pub gpus: u32,
}

impl Resources {
    /// Whether these resources are enough for `wanted`.
    pub fn fits(&self, wanted: &Resources) -> bool {
        self.vcpus >= wanted.vcpus && self.memory_mib >= wanted.memory_mib && self.gpus >= wanted.gpus
    }

    pub(crate) fn take(&mut self, wanted: &Resources) {
        self.vcpus = self.vcpus.saturating_sub(wanted.vcpus);
        self.memory_mib = self.memory_mib.saturating_sub(wanted.memory_mib);
        self.gpus = self.gpus.saturating_sub(wanted.gpus);
    }

    pub(crate) fn put_back(&mut self, returned: &Resources) {
        self.vcpus += returned.vcpus;
        self.memory_mib += returned.memory_mib;
        self.gpus += returned.gpus;
    }
}

/// Returns the resources of an instance type; `None` for an unknown name.
pub fn instance_type(name: &str) -> Option<Resources> {
    let (family, size) = name.split_once('.')?;
    let letters: String = family.chars().take_while(char::is_ascii_lowercase).collect();
    let attributes = family.get(letters.len()..)?.trim_start_matches(|c: char| c.is_ascii_digit());
    let vcpus = match size {
        // Of these families only Graviton has a size with one vCPU.
        "medium" if attributes.starts_with('g') && letters != "g" => 1,
        "large" => 2,
        "xlarge" => 4,
        multiple => 4 * multiple.strip_suffix("xlarge")?.parse::<u32>().ok().filter(|n| *n > 0)?,
    };
    let mib_per_vcpu = match letters.as_str() {
        "c" => 2048,
        "m" | "g" => 4096,
        "p" => 7808,
        "r" => 8192,
        _other_family => return None,
    };
    family.chars().nth(letters.len()).filter(char::is_ascii_digit)?;
    Some(Resources { vcpus, memory_mib: vcpus * mib_per_vcpu, gpus: gpus(&letters, family, vcpus) })
}

fn gpus(letters: &str, family: &str, vcpus: u32) -> u32 {
    let graviton_or_amd = matches!(family, "g4ad" | "g5g");
    match (letters, vcpus) {
        ("g", 192) => 8,
        ("g", 48 | 96) if !graviton_or_amd => 4,
        ("g", 64) if graviton_or_amd => 2,
        ("g", _) => 1,
        ("p", 96 | 192) if family != "p3" => 8,
        ("p", _) if family == "p2" => (vcpus / 4).clamp(1, 16),
        // p3 has a V100 for 8 vCPUs, and p3dn.24xlarge with 96 vCPUs has 8 too.
        ("p", _) => (vcpus / 8).clamp(1, 8),
        (_, _) => 0,
    }
}

/// Returns the GB of the NVMe disks that an instance of this type has of its own. They are known for the types that the
/// deployment uses unless it names others, and for their families. Source: "Amazon EC2 instance types", accelerated
/// computing, instance store specifications.
pub(crate) fn nvme_gb(name: &str) -> Option<u64> {
    let (family, size) = name.split_once('.')?;
    Some(match (family, size) {
        ("g4dn", "xlarge") => 125,
        ("g4dn", "2xlarge" | "4xlarge") => 225,
        ("g4dn", "8xlarge" | "12xlarge" | "16xlarge") | ("g5" | "g6", "8xlarge") => 900,
        ("g5" | "g6", "xlarge") => 250,
        ("g5" | "g6", "2xlarge") => 450,
        ("g5" | "g6", "4xlarge") => 600,
        ("g5", "16xlarge") => 1_900,
        ("g6", "16xlarge") => 1_880,
        ("g5", "12xlarge" | "24xlarge") => 3_800,
        ("g6", "12xlarge" | "24xlarge") => 3_760,
        ("g5", "48xlarge") => 7_600,
        ("g6", "48xlarge") => 7_520,
        _without_disks => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_hold_what_aws_documents() {
        let known = [
            ("c7i.large", Some((2, 4096, 0))),
            ("c7g.medium", Some((1, 2048, 0))),
            ("c7i.medium", None),
            ("g5g.medium", None),
            ("m6a.xlarge", Some((4, 16_384, 0))),
            ("r5.2xlarge", Some((8, 65_536, 0))),
            ("g4dn.xlarge", Some((4, 16_384, 1))),
            ("g5.12xlarge", Some((48, 196_608, 4))),
            ("g5.16xlarge", Some((64, 262_144, 1))),
            ("g5.48xlarge", Some((192, 786_432, 8))),
            ("p2.16xlarge", Some((64, 499_712, 16))),
            ("p3.2xlarge", Some((8, 62_464, 1))),
            ("p4d.24xlarge", Some((96, 749_568, 8))),
            ("g5", None),
            ("g5.0xlarge", None),
            ("gold.xlarge", None),
            ("z9.xlarge", None),
        ];
        for (name, wanted) in known {
            let found = instance_type(name).map(|r| (r.vcpus, r.memory_mib, r.gpus));
            assert_eq!(found, wanted, "{name}");
        }
    }
}
