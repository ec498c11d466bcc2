//! Reads a message of a dead-letter queue: its event, and the function that the event is for.

use aws_sdk_sqs::types::Message;
use serde::Deserialize;
use serde_json::Value;
use spotsweep_protocol::functions::FUNCTIONS;

use super::queue::Kind;

/// An event that was not handled.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Letter {
    /// Name of the event's function.
    pub(super) function: String,
    pub(super) event: Value,
    /// Why the event is in the queue.
    pub(super) error: String,
}

/// The record that Lambda sends to an on-failure destination
/// (<https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    request_context: RequestContext,
    request_payload: Value,
    #[serde(default)]
    response_payload: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext {
    function_arn: String,
    #[serde(default)]
    condition: String,
}

impl Letter {
    /// Reads a message. `Err` says why it cannot be redriven.
    pub(super) fn read(kind: Kind, message: &Message) -> Result<Self, String> {
        let body = message.body().unwrap_or_default();
        let attribute = |name: &str| {
            let attributes = message.message_attributes()?;
            attributes.get(name)?.string_value().map(str::to_owned)
        };
        let letter = match kind {
            Kind::Failed => failed(body)?,
            Kind::Undelivered => undelivered(body, attribute)?,
        };
        if !FUNCTIONS.iter().any(|noun| letter.function.ends_with(noun)) {
            return Err(format!("{:?} is none of spotsweep's functions; delete the message by hand", letter.function));
        }
        Ok(letter)
    }

    /// A short description of the event.
    pub(super) fn about(&self) -> String {
        let text = |field: &str| self.event[field].as_str();
        match (text("source"), text("detail-type"), text("request")) {
            (Some(source), Some(kind), _) => {
                format!("{kind:?} from {source} at {}", text("time").unwrap_or("an unknown time"))
            }
            (_, _, Some(request)) => format!("a runner's {request:?} of {}", text("sweep").unwrap_or("no sweep")),
            (_, _, None) => "an event of no known form".to_owned(),
        }
    }
}

/// Reads the record of a function's failure.
fn failed(body: &str) -> Result<Letter, String> {
    let record: Record = serde_json::from_str(body)
        .map_err(|error| format!("it is no record of a failed invocation ({error}); delete it by hand"))?;
    let arn = &record.request_context.function_arn;
    // The ARN is `arn:aws:lambda:REGION:ACCOUNT:function:NAME`, with or without `:QUALIFIER`.
    let function = arn.split(':').nth(6).ok_or_else(|| format!("{arn:?} is no function's ARN; delete it by hand"))?;
    let error = format!("{}: {}", record.request_context.condition, message(&record.response_payload));
    Ok(Letter { function: function.to_owned(), event: record.request_payload, error })
}

/// Reads an event that was not delivered. The rule and the reason are in attributes
/// (<https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html>).
fn undelivered(body: &str, attribute: impl Fn(&str) -> Option<String>) -> Result<Letter, String> {
    let event = serde_json::from_str(body).map_err(|error| format!("it is no event ({error}); delete it by hand"))?;
    let rule = attribute("RULE_ARN").ok_or("it does not say of which rule it is; delete it by hand")?;
    // A rule has the name of its function: one noun for each event.
    let function = rule.rsplit('/').next().unwrap_or_default().to_owned();
    let code = attribute("ERROR_CODE").unwrap_or_else(|| "undelivered".to_owned());
    let error = format!("{code}: {}", attribute("ERROR_MESSAGE").unwrap_or_else(|| "no reason is given".to_owned()));
    Ok(Letter { function, event, error })
}

/// The message in a function's error.
pub(super) fn message(error: &Value) -> String {
    let said = error["errorMessage"].as_str().map(str::to_owned);
    said.unwrap_or_else(|| if error.is_null() { "without a reason".to_owned() } else { error.to_string() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use aws_sdk_sqs::types::MessageAttributeValue;
    use serde_json::json;

    use super::*;

    fn message(body: &str, attributes: &[(&str, &str)]) -> Message {
        let value =
            |text: &str| MessageAttributeValue::builder().data_type("String").string_value(text).build().unwrap();
        let attributes = attributes.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
        Message::builder().body(body).set_message_attributes(Some(attributes)).build()
    }

    fn record(function: &str) -> String {
        let context = json!({ "requestId": "1", "functionArn": function, "condition": "RetriesExhausted" });
        json!({ "version": "1.0", "requestContext": context, "requestPayload": { "source": "aws.s3" },
            "responsePayload": { "errorMessage": "no table" } })
        .to_string()
    }

    /// The expected function and error, or a part of the reason.
    type Read = Result<(&'static str, &'static str), &'static str>;

    #[test]
    fn a_message_names_its_function_and_its_reason() {
        let function = |qualified: &str| record(&format!("arn:aws:lambda:us-east-1:1:function:{qualified}"));
        let rule = |name: &str| ("RULE_ARN", format!("arn:aws:events:us-east-1:1:rule/{name}"));
        let reasons = [("ERROR_CODE", "NO_PERMISSIONS"), ("ERROR_MESSAGE", "not authorized")];
        let (own, other) = (rule("x-ebs-state"), rule("backup"));
        let with =
            |rule: &'_ (&'static str, String)| message("{}", &[&[(rule.0, rule.1.as_str())], &reasons[..]].concat());
        let cases: [(Kind, Message, Read); 10] = [
            (
                Kind::Failed,
                message(&function("sweep-upload:$LATEST"), &[]),
                Ok(("sweep-upload", "RetriesExhausted: no table")),
            ),
            (Kind::Failed, message(&function("a-reconcile"), &[]), Ok(("a-reconcile", "RetriesExhausted: no table"))),
            (Kind::Failed, message(&function("payroll"), &[]), Err("\"payroll\" is none of spotsweep's functions")),
            (Kind::Failed, message(&record("sweep-upload"), &[]), Err("no function's ARN")),
            (Kind::Failed, message("{}", &[]), Err("no record of a failed invocation (missing field")),
            (Kind::Failed, message("", &[]), Err("no record of a failed invocation")),
            (Kind::Undelivered, with(&own), Ok(("x-ebs-state", "NO_PERMISSIONS: not authorized"))),
            (Kind::Undelivered, with(&other), Err("\"backup\" is none of spotsweep's functions")),
            (Kind::Undelivered, message("{}", &[]), Err("of which rule")),
            (Kind::Undelivered, message("hello", &[("RULE_ARN", &own.1)]), Err("it is no event (expected value")),
        ];
        for (kind, message, expected) in cases {
            let read = Letter::read(kind, &message);
            match (&read, expected) {
                (Ok(letter), Ok((function, error))) => {
                    assert_eq!((&*letter.function, &*letter.error), (function, error));
                }
                (Err(reason), Err(part)) => assert!(reason.contains(part), "{reason}"),
                _ => unreachable!("{message:?}: {read:?}"),
            }
        }
    }
}
