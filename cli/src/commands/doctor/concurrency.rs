//! Checks how many functions the account may run at once.

use aws_config::SdkConfig;
use aws_sdk_lambda::Client;

use super::finding::{Finding, State};

const ABOUT: &str = "functions at once";
/// The quota "Concurrent executions" (fact 64).
const CODE: &str = "L-B99A9384";
/// With a smaller quota, functions are throttled when hundreds of trials start or end together.
const ENOUGH: i32 = 100;
/// The quota of an account that is not new.
const USUAL: i32 = 1000;

/// Makes one finding. A small quota costs time, but nothing fails, because throttled calls are repeated.
pub(super) async fn look(config: &SdkConfig) -> Finding {
    let answer = Client::new(config).get_account_settings().send().await;
    match answer {
        Ok(answer) => judge(answer.account_limit().map_or(0, |limit| limit.concurrent_executions())),
        // A quota that cannot be read needs a look, but is no problem.
        Err(error) => Finding { state: State::Look, ..Finding::refused(ABOUT, "lambda:GetAccountSettings", &error) },
    }
}

fn judge(most: i32) -> Finding {
    let said = format!("Lambda runs up to {most} functions of this account and region at once");
    if most >= ENOUGH {
        return Finding::ok(ABOUT, said);
    }
    let said = format!("{said}: with hundreds of trials calls are turned away and repeated, which takes time");
    let fix = format!(
        "`aws service-quotas request-service-quota-increase --service-code lambda --quota-code {CODE} --desired-value \
         {USUAL}`, which takes hours or days"
    );
    Finding::look(ABOUT, said, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_functions_of_a_new_account_are_few() {
        let found = judge(10);
        assert_eq!(found.state, State::Look);
        assert!(found.said.contains("10 functions") && found.fix.is_some_and(|fix| fix.contains(CODE)));
        assert_eq!(judge(USUAL).state, State::Ok);
    }
}
