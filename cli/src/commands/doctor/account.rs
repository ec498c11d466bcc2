//! Checks the credentials, and shows account and region.

use aws_config::SdkConfig;

use super::finding::Finding;

const ABOUT: &str = "account";

pub(super) async fn look(config: &SdkConfig) -> Vec<Finding> {
    let Some(region) = config.region() else {
        let fix = "set AWS_REGION, or `region` in the profile";
        return vec![Finding::problem(ABOUT, "no region is named", fix)];
    };
    match aws_sdk_sts::Client::new(config).get_caller_identity().send().await {
        Ok(who) => {
            let (account, arn) = (who.account().unwrap_or_default(), who.arn().unwrap_or_default());
            vec![Finding::ok(ABOUT, format!("{account} in {region}, as {arn}"))]
        }
        Err(error) => {
            let refused = Finding::refused(ABOUT, "sts:GetCallerIdentity", &error);
            let fix = "give credentials: `aws sso login`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
            vec![Finding { fix: Some(fix.to_owned()), ..refused }]
        }
    }
}
