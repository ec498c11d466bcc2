//! Checks whether the account may have as many vCPUs as a compute environment may use.

use aws_config::SdkConfig;
use aws_sdk_servicequotas::Client;
use spotsweep_protocol::cause::chain;

use super::finding::{Finding, State};

const ABOUT: &str = "quota";
/// Service code of EC2's vCPU quotas.
const SERVICE: &str = "ec2";
/// vCPUs of a trial by the template's default. With less, no instance starts.
const TRIAL_VCPUS: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Market {
    /// At the Spot price.
    Spot,
    /// On demand.
    OnDemand,
}

/// The most that a compute environment may use.
#[derive(Debug)]
pub(super) struct Need<'a> {
    pub(super) market: Market,
    pub(super) vcpus: u32,
    /// Instance types or families.
    pub(super) instance_types: &'a [String],
}

/// Instance families that share a quota
/// (<https://docs.aws.amazon.com/ec2/latest/userguide/ec2-on-demand-instances.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Families A, C, D, H, I, M, R, T and Z.
    Standard,
    /// Families G and VT.
    Graphics,
    /// Families P2, P3 and P4.
    P,
    /// Family P5.
    P5,
}

impl Group {
    /// The families of a type. `None` if they are not known here.
    fn of(instance_type: &str) -> Option<Self> {
        let family = instance_type.split('.').next().unwrap_or(instance_type);
        let digit = family.find(|letter: char| letter.is_ascii_digit())?;
        let generation = family[digit..].chars().next()?;
        match (&family[..digit], generation) {
            ("a" | "c" | "d" | "h" | "i" | "m" | "r" | "t" | "z", _) => Some(Self::Standard),
            ("g" | "gr" | "vt", _) => Some(Self::Graphics),
            ("p", '2'..='4') => Some(Self::P),
            ("p", '5') => Some(Self::P5),
            (_another, _) => None,
        }
    }

    /// Name and code of the quota, as `aws service-quotas list-service-quotas --service-code ec2` prints them (fact
    /// 50).
    fn quota(self, market: Market) -> (&'static str, &'static str) {
        match (market, self) {
            (Market::Spot, Self::Standard) => {
                ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", "L-34B43A08")
            }
            (Market::Spot, Self::Graphics) => ("All G and VT Spot Instance Requests", "L-3819A6DF"),
            (Market::Spot, Self::P) => ("All P4, P3 and P2 Spot Instance Requests", "L-7212CCBC"),
            (Market::Spot, Self::P5) => ("All P5 Spot Instance Requests", "L-C4BD4855"),
            (Market::OnDemand, Self::Standard) => {
                ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "L-1216C47A")
            }
            (Market::OnDemand, Self::Graphics) => ("Running On-Demand G and VT instances", "L-DB2E81BA"),
            (Market::OnDemand, Self::P | Self::P5) => ("Running On-Demand P instances", "L-417A185B"),
        }
    }
}

/// Name and code of the quota for the vCPUs of an instance type. `None` if it is not known here.
pub(in crate::commands) fn quota(instance_type: &str, market: Market) -> Option<(&'static str, &'static str)> {
    Group::of(instance_type).map(|group| group.quota(market))
}

/// Makes one finding for each quota that counts. A quota that cannot be read needs a look, but is no problem.
pub(super) async fn look(config: &SdkConfig, needs: &[Need<'_>]) -> Vec<Finding> {
    let client = Client::new(config);
    let mut findings = Vec::new();
    for need in needs.iter().filter(|need| need.vcpus > 0) {
        let (quotas, unknown) = counted(need);
        for (name, code) in quotas {
            findings.push(read(&client, need, (name, code)).await);
        }
        findings.extend(unknown);
    }
    findings
}

async fn read(client: &Client, need: &Need<'_>, (name, code): (&str, &str)) -> Finding {
    let answer = match client.get_service_quota().service_code(SERVICE).quota_code(code).send().await {
        Ok(answer) => answer,
        Err(error) => return unread(name, code, &format!("servicequotas:GetServiceQuota failed: {}", chain(&error))),
    };
    let quota = answer.quota();
    // AWS's own name of the quota with this code.
    let name = quota.and_then(|quota| quota.quota_name()).unwrap_or(name);
    match quota.and_then(|quota| quota.value()) {
        Some(vcpus) => judge(need, (name, code), vcpus),
        None => unread(name, code, "it has no value"),
    }
}

/// Name and code of each quota, and a finding about the types whose quota is not known here.
fn counted(need: &Need<'_>) -> (Vec<(&'static str, &'static str)>, Option<Finding>) {
    let mut quotas = Vec::new();
    let mut unknown = Vec::new();
    for name in need.instance_types {
        match quota(name, need.market) {
            Some(quota) if quotas.contains(&quota) => {}
            Some(quota) => quotas.push(quota),
            None => unknown.push(name.as_str()),
        }
    }
    let finding = (!unknown.is_empty()).then(|| {
        let said = format!("the quota of {} is not known to this command", unknown.join(", "));
        let fix = "`aws service-quotas list-service-quotas --service-code ec2 --query \
                    \"Quotas[?contains(QuotaName,'nstance')].[QuotaName,QuotaCode,Value]\" --output text`";
        Finding::look(ABOUT, said, fix)
    });
    (quotas, finding)
}

fn judge(need: &Need<'_>, (name, code): (&str, &str), vcpus: f64) -> Finding {
    let Need { market, vcpus: most, .. } = *need;
    if vcpus >= f64::from(most) {
        return Finding::ok(ABOUT, format!("{name}: {vcpus} vCPUs, of which up to {most} are used"));
    }
    let is_none = vcpus < f64::from(TRIAL_VCPUS);
    let follows = match (market, is_none) {
        (Market::Spot, true) => "no trial starts on these instances",
        (Market::Spot, false) => "jobs beyond them wait",
        (Market::OnDemand, true) => "sweeps on the queue urgent get Spot instances alone",
        (Market::OnDemand, false) => "beyond them sweeps on the queue urgent get Spot instances alone",
    };
    let parameter = match market {
        Market::Spot => "MaxVcpus",
        Market::OnDemand => "OnDemandMaxVcpus",
    };
    let request = format!(
        "`aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} --desired-value \
         {most}`, which takes hours or days"
    );
    let fix = match (market, is_none) {
        (Market::Spot, true) => request,
        (Market::Spot | Market::OnDemand, _) => format!("{request}; or deploy with {parameter}={}", vcpus.floor()),
    };
    let said = format!("{name}: {vcpus} vCPUs, and {parameter} is {most}: {follows}");
    let state = match market {
        Market::Spot => State::Problem,
        // Sweeps that name no queue use Spot instances only.
        Market::OnDemand => State::Look,
    };
    Finding { state, ..Finding::problem(ABOUT, said, fix) }
}

fn unread(name: &str, code: &str, why: &str) -> Finding {
    let fix =
        format!("`aws service-quotas get-service-quota --service-code ec2 --quota-code {code} --query Quota.Value`");
    Finding::look(ABOUT, format!("{name}: its vCPUs bound how many trials run at once; {why}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(market: Market, instance_types: &[String]) -> Need<'_> {
        Need { market, vcpus: 20, instance_types }
    }

    #[test]
    fn each_family_counts_against_its_quota() {
        for (name, expected) in [
            ("g4dn.xlarge", Some(Group::Graphics)),
            ("gr6.4xlarge", Some(Group::Graphics)),
            ("vt1", Some(Group::Graphics)),
            ("p3dn.24xlarge", Some(Group::P)),
            ("p4d", Some(Group::P)),
            ("p5en.48xlarge", Some(Group::P5)),
            ("p6-b200.48xlarge", None),
            ("trn1.2xlarge", None),
            ("c7i.large", Some(Group::Standard)),
            ("optimal", None),
        ] {
            assert_eq!(Group::of(name), expected, "{name}");
        }
        let types = ["g5.xlarge", "p4d.24xlarge", "g6", "p5.48xlarge", "trn1"].map(str::to_owned);
        let (spot, unknown) = counted(&need(Market::Spot, &types));
        assert_eq!(spot.iter().map(|(_, code)| *code).collect::<Vec<_>>(), ["L-3819A6DF", "L-7212CCBC", "L-C4BD4855"]);
        assert!(unknown.unwrap().said.contains("trn1"));
        let (on_demand, _) = counted(&need(Market::OnDemand, &types));
        assert_eq!(on_demand.iter().map(|(_, code)| *code).collect::<Vec<_>>(), ["L-DB2E81BA", "L-417A185B"]);
    }

    #[test]
    fn a_quota_is_none_too_small_or_enough() {
        for (market, vcpus, state, words) in [
            (Market::Spot, 0.0, State::Problem, "no trial starts"),
            (Market::Spot, 3.0, State::Problem, "no trial starts"),
            (Market::Spot, 8.0, State::Problem, "jobs beyond them wait"),
            (Market::Spot, 20.0, State::Ok, "up to 20"),
            (Market::OnDemand, 0.0, State::Look, "Spot instances alone"),
            (Market::OnDemand, 8.0, State::Look, "beyond them"),
            (Market::OnDemand, 32.0, State::Ok, "up to 20"),
        ] {
            let found = judge(&need(market, &[]), ("All G", "L-1"), vcpus);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.said.contains(words), "{found:?}");
        }
        let fix = |vcpus| judge(&need(Market::Spot, &[]), ("All G", "L-1"), vcpus).fix.unwrap();
        assert!(fix(8.0).ends_with("or deploy with MaxVcpus=8") && fix(8.0).contains("--desired-value 20"));
        assert!(!fix(0.0).contains("MaxVcpus"), "no trial runs with 0 vCPUs");
    }

    #[test]
    fn a_trial_needs_the_vcpus_of_the_template() {
        let template = include_str!("../../../../infra/compute.yaml");
        let (_, trial) = template.split_once("  TrialVcpus:\n").unwrap();
        assert!(trial.contains(&format!("Default: {TRIAL_VCPUS}\n")));
    }
}
