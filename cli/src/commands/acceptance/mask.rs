//! Masks in recorded events what belongs to an account. The same text has the same mask everywhere, so that events
//! still belong together.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// This replaces every account id. `tests/events` has it, too.
const ACCOUNT: &str = "000000000000";
/// The container's variables that the functions read. Others may be secrets, and are hidden.
const KEPT_VARIABLES: [&str; 2] = ["SPOTSWEEP_SWEEP", "SPOTSWEEP_FIRST_INDEX"];
/// This replaces a text that may be a secret.
const HIDDEN: &str = "masked";
/// Words in an ARN's resource that are types, not names.
const ARN_TYPES: [&str; 10] = [
    "instance",
    "volume",
    "snapshot",
    "job",
    "job-queue",
    "job-definition",
    "task",
    "container-instance",
    "cluster",
    "role",
];
/// Prefixes of EC2's resource ids, which continue with a dash and hex digits.
const ID_PREFIXES: [&str; 10] = ["i", "vol", "snap", "lt", "sg", "subnet", "vpc", "eni", "ami", "eipalloc"];

/// Remembers the mask of each text.
#[derive(Debug, Default)]
pub(super) struct Masks {
    given: BTreeMap<String, String>,
}

impl Masks {
    /// A copy of an event without account ids, names in ARNs, resource ids, UUIDs, addresses, buckets, commands and
    /// variables. Job names, values of tags and status reasons stay, except for ids in them.
    pub(super) fn event(&mut self, event: &Value) -> Value {
        self.value(event, "")
    }

    fn value(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::String(text) => Value::String(self.field(key, text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item, key)).collect()),
            Value::Object(fields) if key == "environment" => self.variable(value, fields),
            Value::Object(fields) if key == "bucket" => {
                let mask = |(name, field): (&String, &Value)| match field.as_str() {
                    Some(bucket) if name == "name" => (name.clone(), Value::String(self.named("bucket", bucket))),
                    _ => (name.clone(), self.value(field, name)),
                };
                Value::Object(fields.iter().map(mask).collect())
            }
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, field)| (name.clone(), self.value(field, name))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn variable(&mut self, whole: &Value, fields: &serde_json::Map<String, Value>) -> Value {
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        if KEPT_VARIABLES.contains(&name) {
            return whole.clone();
        }
        serde_json::json!({ "name": name, "value": HIDDEN })
    }

    fn field(&mut self, key: &str, text: &str) -> String {
        match key {
            "command" | "parameters" => HIDDEN.to_owned(),
            _ => self.text(text),
        }
    }

    /// Masks a text word by word. What separates words stays.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut masked = String::new();
        let is_inside = |letter: char| letter.is_ascii_alphanumeric() || "-.:/_".contains(letter);
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|letter| !is_inside(letter)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            masked.push_str(&self.token(token));
            let next = after.find(is_inside).unwrap_or(after.len());
            masked.push_str(&after[..next]);
            rest = &after[next..];
        }
        masked
    }

    fn token(&mut self, token: &str) -> String {
        let bare = token.trim_end_matches(['.', ':']);
        let end = &token[bare.len()..];
        if bare.parse::<IpAddr>().is_ok() {
            return self.address(bare) + end;
        }
        if bare.starts_with("arn:") {
            return self.arn(bare) + end;
        }
        let split = token.split_inclusive([':', '/', '_']);
        split.map(|part| self.dotted(part.trim_end_matches([':', '/', '_'])) + separator(part)).collect()
    }

    fn dotted(&mut self, word: &str) -> String {
        let bare = word.trim_end_matches('.');
        if bare.parse::<IpAddr>().is_ok() {
            return self.address(bare) + &word[bare.len()..];
        }
        word.split('.').map(|word| self.word(word)).collect::<Vec<_>>().join(".")
    }

    fn word(&mut self, word: &str) -> String {
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_account(word) {
            return ACCOUNT.to_owned();
        }
        if let Some((prefix, digits)) = word.split_once('-').filter(|(prefix, _)| ID_PREFIXES.contains(prefix))
            && (8..=17).contains(&digits.len())
            && is_hex(digits)
        {
            return self.given(word, |number| format!("{prefix}-{number:017x}"));
        }
        let is_uuid =
            word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && word.split('-').all(is_hex);
        if is_uuid {
            return self.given(word, |number| format!("00000000-0000-4000-8000-{number:012x}"));
        }
        if word.len() >= 20 && is_hex(word) {
            return self.given(word, |number| format!("{number:032x}"));
        }
        // Host names in a VPC contain the address: ip-10-0-1-5.ec2.internal.
        let is_host = word.strip_prefix("ip-").is_some_and(|host| host.replace('-', ".").parse::<IpAddr>().is_ok());
        if is_host { self.given(word, |number| format!("ip-192-0-2-{number}")) } else { word.to_owned() }
    }

    /// Masks an ARN, `arn:partition:service:region:account:resource`. Types and child numbers in the resource stay,
    /// names do not.
    fn arn(&mut self, arn: &str) -> String {
        let mut fields = arn.splitn(6, ':').map(str::to_owned).collect::<Vec<_>>();
        if let Some(account) = fields.get_mut(4).filter(|account| is_account(account)) {
            *account = ACCOUNT.to_owned();
        }
        // EC2's events omit the account, or have the region in its place.
        if let Some(resource) = fields.last_mut() {
            let parts: Vec<String> = resource.split('/').map(|part| self.part(part)).collect();
            *resource = parts.join("/");
        }
        fields.join(":")
    }

    fn part(&mut self, part: &str) -> String {
        if ARN_TYPES.contains(&part) {
            return part.to_owned();
        }
        let (name, number) = match part.rsplit_once(':') {
            Some((name, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => (name, format!(":{number}")),
            _ => (part, String::new()),
        };
        let masked = self.word(name);
        let masked = if masked == name { self.named("name", name) } else { masked };
        masked + &number
    }

    fn address(&mut self, address: &str) -> String {
        // 192.0.2.0/24 is for documentation (RFC 5737).
        self.given(address, |number| format!("192.0.2.{}", number % 256))
    }

    fn named(&mut self, what: &str, name: &str) -> String {
        self.given(name, |number| format!("{what}-{number}"))
    }

    fn given(&mut self, text: &str, make: impl FnOnce(usize) -> String) -> String {
        let number = self.given.len() + 1;
        self.given.entry(text.to_owned()).or_insert_with(|| make(number)).clone()
    }
}

fn is_account(word: &str) -> bool {
    word.len() == ACCOUNT.len() && word.bytes().all(|digit| digit.is_ascii_digit())
}

/// The separator at the end of a part that `split_inclusive` has made, if there is one.
fn separator(part: &str) -> &str {
    &part[part.trim_end_matches([':', '/', '_']).len()..]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;
    use spotsweep_control_plane::event::parse;
    use spotsweep_control_plane::input::Input;

    use super::*;

    #[test]
    fn nothing_of_an_account_stays() {
        let event = json!({
            "account": "123456789012",
            "resources": ["arn:aws:batch:us-east-1:123456789012:job-queue/secret-queue",
                "arn:aws:ec2:us-east-1a:instance/i-0abcdef1234567890", "arn:aws:s3:::secret-bucket"],
            "detail": {
                "statusReason": "Host EC2 (instance i-0abcdef1234567890) terminated.",
                "jobId": "4c7599ae-0a82-49aa-ba5a-4727fcce14a8:3",
                "container": { "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/image:latest",
                    "command": ["python", "--token=hunter2"], "logStreamName": "train/default/7d3fbb9f5d8d4a61a3d37d3fbb9f5d8d",
                    "environment": [{ "name": "TOKEN", "value": "hunter2" }, { "name": "SPOTSWEEP_SWEEP", "value": "s-1" }] },
                "bucket": { "name": "secret-bucket" },
                "source-ip-address": "2001:db8::17", "host": "ip-10-0-1-5.ec2.internal", "said": "from 10.0.1.5.",
                "error": "cannot read \"arn:aws:iam::123456789012:role/secret-role\": no"
            }
        });
        let masked = Masks::default().event(&event);
        let text = masked.to_string();
        let secrets = [
            "123456789012",
            "secret",
            "0abcdef1234567890",
            "4c7599ae",
            "hunter2",
            "2001:db8",
            "10-0-1-5",
            "10.0.1.5",
            "7d3fbb9f",
        ];
        for secret in secrets {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let instance = masked["resources"][1].as_str().unwrap().rsplit('/').next().unwrap();
        assert_eq!(masked["detail"]["statusReason"], format!("Host EC2 (instance {instance}) terminated."));
        assert!(masked["detail"]["jobId"].as_str().unwrap().ends_with(":3"));
        assert_eq!(masked["detail"]["container"]["environment"][1]["value"], "s-1");
    }

    #[test]
    fn masked_events_are_understood_as_before() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/events");
        for file in fs::read_dir(folder).unwrap() {
            let event: Value = serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
            let (before, after) = (parse(event.clone()).unwrap(), parse(Masks::default().event(&event)).unwrap());
            assert_eq!(Input::from(before).about().name, Input::from(after).about().name, "{event}");
        }
    }
}
