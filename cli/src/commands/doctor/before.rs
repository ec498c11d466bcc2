//! `spotsweep doctor --before-deploy`: checks in this account and region what a first deployment needs.

mod offerings;
mod zones;

use aws_config::SdkConfig;

use super::account;
use super::concurrency;
use super::finding::{Finding, State};
use super::quotas::{self, Market, Need};

/// Parameters of `infra/spotsweep.yaml` that depend on the region and on the account.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Parameters of the template, with --before-deploy")]
pub(super) struct Parameters {
    /// InstanceTypes: types or families, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "g4dn.xlarge,g5.xlarge,g6.xlarge,g4dn.2xlarge,g5.2xlarge,g6.2xlarge",
        requires = "before_deploy"
    )]
    instance_types: Vec<String>,
    /// Subnets of your own, separated by commas; without them the template makes a network
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "before_deploy")]
    subnets: Vec<String>,
    /// ZoneCount: zones of the network that the template makes
    #[arg(long, value_name = "N", default_value_t = 3, requires = "before_deploy")]
    zone_count: usize,
    /// MaxVcpus: vCPUs of Spot instances at the same time
    #[arg(long, value_name = "N", default_value_t = 20, requires = "before_deploy")]
    max_vcpus: u32,
    /// OnDemandMaxVcpus: the same of on-demand instances
    #[arg(long, value_name = "N", default_value_t = 20, requires = "before_deploy")]
    on_demand_max_vcpus: u32,
}

#[cfg(feature = "local")]
impl Parameters {
    /// The parameters with these values in the template.
    pub(super) fn of(values: &std::collections::BTreeMap<String, String>) -> Self {
        let list = |name: &str| -> Vec<String> {
            let words = values.get(name).map_or("", String::as_str).split(',');
            words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let number = |name: &str| values.get(name).and_then(|value| value.parse().ok());
        Self {
            instance_types: list("InstanceTypes"),
            subnets: list("Subnets"),
            zone_count: number("ZoneCount").unwrap_or_default() as usize,
            max_vcpus: number("MaxVcpus").unwrap_or_default(),
            on_demand_max_vcpus: number("OnDemandMaxVcpus").unwrap_or_default(),
        }
    }
}

/// Checks everything, in the order in which a deployment needs it.
pub(super) async fn examine(config: &SdkConfig, wanted: &Parameters) -> Vec<Finding> {
    let mut findings = account::look(config).await;
    if findings.iter().any(|finding| finding.state == State::Problem) {
        // Without credentials, everything else would fail with the same message.
        return findings;
    }
    let client = aws_sdk_ec2::Client::new(config);
    let zones = match zones::look(&client, &wanted.subnets, wanted.zone_count).await {
        Ok((zones, finding)) => {
            findings.push(finding);
            zones
        }
        Err(problem) => {
            findings.push(*problem);
            Vec::new()
        }
    };
    findings.extend(offerings::look(&client, &wanted.instance_types, &zones).await);
    let needs = [
        Need { market: Market::Spot, vcpus: wanted.max_vcpus, instance_types: &wanted.instance_types },
        Need { market: Market::OnDemand, vcpus: wanted.on_demand_max_vcpus, instance_types: &wanted.instance_types },
    ];
    findings.extend(quotas::look(config, &needs).await);
    findings.push(concurrency::look(config).await);
    findings
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[arg(long)]
        before_deploy: bool,
        #[command(flatten)]
        parameters: Parameters,
    }

    #[test]
    fn the_defaults_are_those_of_the_template() {
        let Line { before_deploy, parameters } = Line::parse_from(["doctor"]);
        assert!(!before_deploy);
        let template = include_str!("../../../../infra/spotsweep.yaml");
        let default = |name: &str| {
            let (_, after) = template.split_once(&format!("\n  {name}:\n")).unwrap();
            after.split_once("Default: ").unwrap().1.lines().next().unwrap()
        };
        assert_eq!(parameters.instance_types.join(","), default("InstanceTypes"));
        assert!(parameters.subnets.is_empty() && default("Subnets") == "\"\"");
        assert_eq!(parameters.zone_count.to_string(), default("ZoneCount"));
        assert_eq!(parameters.max_vcpus.to_string(), default("MaxVcpus"));
        assert_eq!(parameters.on_demand_max_vcpus.to_string(), default("OnDemandMaxVcpus"));
    }
}
