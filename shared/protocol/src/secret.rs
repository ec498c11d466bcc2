//! How requests show that they are of the runner that has claimed an attempt.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of a secret: none is ever found by trying.
pub const SECRET_BYTES: usize = 16;

/// What one runner draws at its start and sends with each of its requests. The claim that begins an attempt records it;
/// each later request of the attempt has to have the same. A repeated claim has it too, so an answer may be lost.
///
/// Neither the training nor another trial's runner knows it. The table has it, so principals that may read the table
/// can act as an attempt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret(String);

impl Secret {
    /// The secret of these bytes, which have to be random.
    pub fn of(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl TryFrom<String> for Secret {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_hex = text.len() == 2 * SECRET_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        // The text itself may be most of somebody's secret.
        if is_hex { Ok(Self(text)) } else { Err(format!("a secret has {} hex digits", 2 * SECRET_BYTES)) }
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl fmt::Debug for Secret {
    /// Without the digits: requests and records are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back_and_never_printed() {
        let secret = Secret::of([0xa5; SECRET_BYTES]);
        let json = serde_json::to_string(&secret).unwrap();
        assert_eq!(json, format!("\"{}\"", "a5".repeat(SECRET_BYTES)));
        assert_eq!(serde_json::from_str::<Secret>(&json).unwrap(), secret);
        assert!(!format!("{secret:?}").contains("a5"));
        for text in ["\"\"", "\"a5\"", "7", "\"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\""] {
            assert!(serde_json::from_str::<Secret>(text).is_err(), "{text}");
        }
    }
}
