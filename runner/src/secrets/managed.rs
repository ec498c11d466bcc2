//! Secrets of AWS Secrets Manager: a text, or one value of the JSON object in it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{DisplayErrorContext, ProvideErrorMetadata as _};
use serde_json::Value;
use spotsweep_protocol::claim::ManagedSecret;

use super::SecretsError;
use crate::exit::Failure;

/// Reads secrets, each once. So all values of one secret are of the same version.
pub(super) struct ManagedSecrets {
    client: Client,
    /// By the secret's name.
    texts: BTreeMap<String, String>,
}

impl ManagedSecrets {
    pub(super) fn new(client: Client) -> Self {
        Self { client, texts: BTreeMap::new() }
    }

    /// Returns a secret's text, or the value of its key.
    pub(super) async fn value(&mut self, secret: ManagedSecret<'_>) -> Result<String, Failure> {
        let ManagedSecret { name, key } = secret;
        let text = match self.texts.entry(name.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(read(&self.client, name).await?),
        };
        Ok(match key {
            Some(key) => of_key(text, name, key)?,
            None => text.clone(),
        })
    }
}

/// Reads the current version of a secret. The error codes:
/// <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html>.
async fn read(client: &Client, name: &str) -> Result<String, Failure> {
    let error = match client.get_secret_value().secret_id(name).send().await {
        Ok(found) => return Ok(found.secret_string.ok_or_else(|| SecretsError::Binary(name.to_owned()))?),
        Err(error) => error,
    };
    let (name, message) = (name.to_owned(), error.message().unwrap_or_default().to_owned());
    Err(match error.code() {
        Some("ResourceNotFoundException") => SecretsError::NoSecret(name).into(),
        Some("InvalidRequestException") => SecretsError::Unusable { name, message }.into(),
        // A name without a secret is denied too, because the policy names the six characters behind it (fact 73).
        Some("AccessDeniedException") => SecretsError::Hidden { name, message }.into(),
        Some("DecryptionFailure") => SecretsError::Denied { name, message }.into(),
        _ => Failure::Interrupted(format!("the secret {name} could not be read: {}", DisplayErrorContext(&error))),
    })
}

/// Returns the value of a key in a JSON object. No error shows what is in the object.
fn of_key(text: &str, name: &str, key: &str) -> Result<String, SecretsError> {
    let place = || (name.to_owned(), key.to_owned());
    let Ok(Value::Object(object)) = serde_json::from_str(text) else {
        let (name, key) = place();
        return Err(SecretsError::NoObject { name, key });
    };
    match object.get(key) {
        Some(Value::String(value)) => Ok(value.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
            let (name, key) = place();
            Err(SecretsError::NoText { name, key })
        }
        None => {
            let (name, key) = place();
            Err(SecretsError::NoKey { name, key })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_text_a_number_or_a_boolean() {
        let object = r#"{"user": "me", "port": 5432, "tls": true, "none": null, "list": ["a"], "more": {"user": "x"}, "empty": "", "a/b+c=d.e@f-g": "é"}"#;
        for (key, expected) in [
            ("user", Ok("me")),
            ("port", Ok("5432")),
            ("tls", Ok("true")),
            ("empty", Ok("")),
            ("a/b+c=d.e@f-g", Ok("é")),
            ("none", Err("neither a text")),
            ("list", Err("neither a text")),
            ("more", Err("neither a text")),
            ("USER", Err("has no key USER")),
        ] {
            let found = of_key(object, "team/db", key).map_err(|error| error.to_string());
            match expected {
                Ok(value) => assert_eq!(found, Ok(value.to_owned()), "{key}"),
                Err(part) => assert!(found.is_err_and(|error| error.contains(part) && error.contains("team/db"))),
            }
        }
        for text in ["", "s3cr3t", "\"s3cr3t\"", "[\"s3cr3t\"]", "{\"user\": s3cr3t}", "{} s3cr3t"] {
            let error = of_key(text, "team/db", "user").unwrap_err().to_string();
            assert!(error.contains("no JSON object") && error.contains("user") && !error.contains("s3cr3t"), "{error}");
        }
    }
}
