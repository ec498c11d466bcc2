//! Proves that requests come from a container of the sweep, and from the runner that has claimed an attempt.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::words::hexadecimal;

/// The bytes of a secret: too many to be guessed.
pub const SECRET_BYTES: usize = 16;

/// The variable of a trial's container with its sweep's claim token. The runner passes it to no other process.
pub const TOKEN_VARIABLE: &str = "SPOTSWEEP_CLAIM_TOKEN";

/// The device with the kernel's random bytes.
const RANDOM: &str = "/dev/urandom";

/// A random text that only some programs have. There are two:
///
/// - The claim token of a sweep is drawn before its first job is submitted, is kept in the sweep's record, and reaches
///   the runners in the environment of their containers. Without it a request gets no answer about the sweep.
/// - The secret of a runner is drawn at its start. The claim that begins an attempt records it. Each later request of
///   the attempt must have the same one. So must a repeated claim, because the first answer may be lost.
///
/// No training has either of them. The table has both, so principals that may read the table can act as an attempt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret(String);

impl Secret {
    /// Draws a secret.
    ///
    /// # Errors
    /// If the kernel's random bytes cannot be read.
    pub fn draw() -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        File::open(RANDOM)?.read_exact(&mut bytes)?;
        Ok(Self::of(bytes))
    }

    /// Makes a secret of these bytes, which have to be random.
    pub fn of(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(hexadecimal(bytes))
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for Secret {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_hex = text.len() == 2 * SECRET_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        // The error does not repeat the text, because it may be most of a secret.
        if is_hex { Ok(Self(text)) } else { Err(format!("a secret has {} hex digits", 2 * SECRET_BYTES)) }
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl fmt::Debug for Secret {
    /// Leaves out the digits, because requests and records are printed in logs.
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
