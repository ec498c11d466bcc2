//! The default event bus of an AWS endpoint: its rules, and the functions and log groups that are their targets.

use std::time::{Duration, Instant};

use aws_sdk_eventbridge::types::RuleState;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_smithy_http_client::tls;
use serde_json::Value;
use tokio::sync::Mutex;

use super::log_groups::group_of;

/// The time for which rules and targets are cached.
const FRESH: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub(super) enum BusError {
    #[error("ListRules failed")]
    ListRules(#[source] Box<aws_sdk_eventbridge::Error>),
    #[error("ListTargetsByRule failed for rule {rule}")]
    ListTargets { rule: String, source: Box<aws_sdk_eventbridge::Error> },
    #[error("TestEventPattern failed for rule {rule}")]
    TestPattern { rule: String, source: Box<aws_sdk_eventbridge::Error> },
    #[error("Invoke failed for {function}")]
    Invoke { function: String, source: Box<aws_sdk_lambda::Error> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A function, by its ARN.
    Function(String),
    /// A log group, by its name.
    LogGroup(String),
}

/// An enabled rule with an event pattern.
struct Rule {
    name: String,
    pattern: String,
    /// The pattern's `source`, if it is a plain list of strings.
    sources: Option<Vec<String>>,
    targets: Vec<Target>,
}

/// A client of the event bus, through the SDK.
pub(super) struct Bus {
    events: aws_sdk_eventbridge::Client,
    lambda: aws_sdk_lambda::Client,
    rules: Mutex<Option<(Instant, std::sync::Arc<Vec<Rule>>)>>,
}

impl Bus {
    pub(super) fn new(endpoint: &str, region: &str) -> Self {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
            .build_https();
        // A local endpoint accepts any credentials.
        let credentials = Credentials::new("test", "test", None, None, "spotsweep-emulator");
        let shared = aws_config::SdkConfig::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new(region.to_owned()))
            .endpoint_url(endpoint)
            .credentials_provider(aws_sdk_lambda::config::SharedCredentialsProvider::new(credentials))
            .http_client(http)
            // The delivery retries by itself, and for longer.
            .retry_config(RetryConfig::disabled())
            .build();
        Bus {
            events: aws_sdk_eventbridge::Client::new(&shared),
            lambda: aws_sdk_lambda::Client::new(&shared),
            rules: Mutex::new(None),
        }
    }

    pub(super) async fn targets_for(&self, source: &str, event: &str) -> Result<Vec<Target>, BusError> {
        let mut targets = Vec::new();
        for rule in self.rules().await?.iter() {
            if rule.may_match(source) && self.matches(rule, event).await? {
                targets.extend(rule.targets.iter().cloned());
            }
        }
        Ok(targets)
    }

    pub(super) async fn invoke(&self, function: &str, event: &str) -> Result<(), BusError> {
        let call = self.lambda.invoke().function_name(function);
        let call = call.invocation_type(InvocationType::Event).payload(Blob::new(event));
        match call.send().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let function = function.to_owned();
                Err(BusError::Invoke { function, source: Box::new(error.into()) })
            }
        }
    }

    async fn matches(&self, rule: &Rule, event: &str) -> Result<bool, BusError> {
        let call = self.events.test_event_pattern().event_pattern(&rule.pattern).event(event);
        match call.send().await {
            Ok(answer) => Ok(answer.result()),
            Err(error) => {
                let rule = rule.name.clone();
                Err(BusError::TestPattern { rule, source: Box::new(error.into()) })
            }
        }
    }

    async fn rules(&self) -> Result<std::sync::Arc<Vec<Rule>>, BusError> {
        let mut known = self.rules.lock().await;
        if let Some((at, rules)) = known.as_ref()
            && at.elapsed() < FRESH
        {
            return Ok(rules.clone());
        }
        let rules = std::sync::Arc::new(self.load_rules().await?);
        *known = Some((Instant::now(), rules.clone()));
        Ok(rules)
    }

    async fn load_rules(&self) -> Result<Vec<Rule>, BusError> {
        let mut rules = Vec::new();
        let mut token = None;
        loop {
            let page = self.events.list_rules().set_next_token(token).send().await;
            let page = page.map_err(|error| BusError::ListRules(Box::new(error.into())))?;
            for rule in page.rules() {
                let (Some(name), Some(pattern)) = (rule.name(), rule.event_pattern()) else {
                    continue;
                };
                if rule.state() == Some(&RuleState::Enabled) {
                    let targets = self.targets_of(name).await?;
                    rules.push(Rule::new(name, pattern, targets));
                }
            }
            token = page.next_token().map(str::to_owned);
            if token.is_none() {
                return Ok(rules);
            }
        }
    }

    async fn targets_of(&self, rule: &str) -> Result<Vec<Target>, BusError> {
        let mut targets = Vec::new();
        let mut token = None;
        loop {
            let call = self.events.list_targets_by_rule().rule(rule).set_next_token(token);
            let page = call.send().await.map_err(|error| {
                let rule = rule.to_owned();
                BusError::ListTargets { rule, source: Box::new(error.into()) }
            })?;
            targets.extend(page.targets().iter().filter_map(|target| target_of(rule, target)));
            token = page.next_token().map(str::to_owned);
            if token.is_none() {
                return Ok(targets);
            }
        }
    }
}

impl Rule {
    fn new(name: &str, pattern: &str, targets: Vec<Target>) -> Self {
        let sources = serde_json::from_str::<Value>(pattern)
            .ok()
            .and_then(|parsed| serde_json::from_value(parsed["source"].clone()).ok());
        Rule { name: name.to_owned(), pattern: pattern.to_owned(), sources, targets }
    }

    /// Whether the event may match by its source. All fields of a pattern must match, so another source saves a call.
    fn may_match(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|sources| sources.iter().any(|wanted| wanted == source))
    }
}

/// Returns the target, if it is emulated. Other targets and transformed inputs are only logged.
fn target_of(rule: &str, target: &aws_sdk_eventbridge::types::Target) -> Option<Target> {
    let transformed = target.input().is_some() || target.input_path().is_some() || target.input_transformer().is_some();
    if !transformed && target.arn().contains(":lambda:") {
        return Some(Target::Function(target.arn().to_owned()));
    }
    if let Some(group) = group_of(target.arn()).filter(|_| !transformed) {
        return Some(Target::LogGroup(group.to_owned()));
    }
    tracing::warn!(
        rule,
        target = target.arn(),
        "the emulator delivers whole events to Lambda and CloudWatch Logs only"
    );
    None
}
