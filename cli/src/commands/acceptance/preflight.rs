//! Looks for reasons why a run would fail in this account, before it makes anything.

use std::collections::BTreeSet;

use aws_sdk_fis::error::{ProvideErrorMetadata, SdkError};

use super::super::doctor;
use super::super::doctor::quotas::{Market, quota};
use super::chaos::ACTION;
use super::subject::Subject;
use crate::out;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::failure::Failure;
use spotsweep_protocol::words::counted;

/// Fails if a run cannot succeed, and says what to do about it.
pub(super) async fn check(subject: &Subject) -> Result<(), Failure> {
    deployment(subject).await?;
    fis(subject).await?;
    quotas(subject).await
}

/// Fails if `doctor` finds a problem.
async fn deployment(subject: &Subject) -> Result<(), Failure> {
    let problems = doctor::problems(&subject.target, &subject.queue, &subject.definition).await;
    if problems.is_empty() {
        return Ok(());
    }
    let line = |problem: &doctor::finding::Finding| {
        let fix = problem.fix.as_deref().map(|fix| format!(" → {fix}")).unwrap_or_default();
        format!("{}: {}{fix}", problem.about, problem.said)
    };
    let lines: Vec<String> = problems.iter().map(line).collect();
    Err(Failure::new(format!("nothing was started, because `spotsweep doctor` finds problems:\n{}", lines.join("\n"))))
}

/// Not every region has FIS or its action (fact 33).
async fn fis(subject: &Subject) -> Result<(), Failure> {
    let region = subject.region();
    let error = match aws_sdk_fis::Client::new(&subject.target.batch).get_action().id(ACTION).send().await {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let is_missing = error.code() == Some("ResourceNotFoundException");
    if is_missing || matches!(error, SdkError::DispatchFailure(_)) {
        let said = if is_missing { "does not have" } else { "does not answer when asked for" };
        return Err(Failure::new(format!(
            "nothing was started: FIS in {region} {said} {ACTION}, so it cannot interrupt an instance there. \
             https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/initiate-a-spot-instance-interruption.html names the regions \
             without it: deploy in another region for this run"
        ))
        .caused_by(error));
    }
    Err(Failure::new(format!("cannot ask FIS in {region} for its action (fis:GetAction)")).caused_by(error))
}

/// In a new account the quota is 0, so no instance ever starts. If the quota cannot be read, the run goes on.
async fn quotas(subject: &Subject) -> Result<(), Failure> {
    let client = aws_sdk_servicequotas::Client::new(&subject.target.batch);
    let mut low = Vec::new();
    let of_types: BTreeSet<_> = subject.instance_types.iter().map(|name| quota(name, Market::Spot)).collect();
    for of_type in of_types {
        // Nothing is known of other types, so they are accepted.
        let Some((name, code)) = of_type else { return Ok(()) };
        let asked = client.get_service_quota().service_code("ec2").quota_code(code);
        match asked.send().await {
            Ok(found) => match found.quota().and_then(|quota| quota.value()) {
                Some(vcpus) if vcpus < f64::from(subject.vcpus) => low.push((code, name, vcpus)),
                Some(vcpus) => {
                    say_how_many(vcpus, subject.vcpus);
                    return Ok(());
                }
                None => return Ok(()),
            },
            Err(error) => {
                out::note(format_args!(
                    "the quota {name:?} is not known; with less than {} vCPUs no trial starts: {}",
                    subject.vcpus,
                    chain(&error)
                ));
                return Ok(());
            }
        }
    }
    if low.is_empty() {
        return Ok(());
    }
    let line = |(code, name, vcpus): &(&str, &str, f64)| {
        format!(
            "{name:?} is {vcpus} vCPUs: `aws service-quotas request-service-quota-increase --service-code ec2 --quota-code \
             {code} --desired-value {}`",
            subject.vcpus * super::sweep::trials()
        )
    };
    let lines: Vec<String> = low.iter().map(line).collect();
    Err(Failure::new(format!(
        "nothing was started: a trial needs {} vCPUs, and the quotas of Spot instances in {} allow less\n{}",
        subject.vcpus,
        subject.region(),
        lines.join("\n")
    )))
}

fn say_how_many(vcpus: f64, wanted: u32) {
    let at_once = (vcpus / f64::from(wanted)).floor();
    if at_once < f64::from(super::sweep::trials()) {
        let trials = counted(at_once, "trial");
        out::note(format_args!("the quota of Spot instances allows {trials} at a time: the run takes longer"));
    }
}
