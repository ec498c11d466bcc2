//! EC2's interruption notice and rebalance recommendation, from the instance's metadata service.
//!
//! EventBridge sends them too. Both ways are best effort (facts 2 and 32), and only the runner can stop the training in
//! time. See <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html> and
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html>.

use std::sync::Arc;
use std::time::Duration;

use aws_config::imds::Client;
use aws_config::imds::client::error::ImdsError;
use jiff::Timestamp;
use serde_json::Value;
use spotsweep_attempt::Answer;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::NoticeKind;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::claim::Claims;
use crate::log::say;

const INTERRUPTION: &str = "/latest/meta-data/spot/instance-action";
const REBALANCE: &str = "/latest/meta-data/events/recommendations/rebalance";
/// With each of them the training loses the instance.
const ACTIONS: [&str; 3] = ["terminate", "stop", "hibernate"];
const NOT_FOUND: u16 = 404;
/// How many characters of a malformed answer go into the log.
const SHOWN_CHARS: usize = 200;

/// An announced end of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interruption {
    /// The time of the end.
    pub(crate) at: Timestamp,
}

impl Interruption {
    /// The time that is left until the end.
    pub(crate) fn left(self) -> Duration {
        Duration::try_from(self.at.duration_since(Timestamp::now())).unwrap_or_default()
    }
}

/// Watches for notices until dropped.
pub(crate) struct Notices {
    interruption: watch::Receiver<Option<Interruption>>,
    is_given: bool,
    polling: JoinHandle<()>,
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.polling.abort();
    }
}

impl Notices {
    /// Queries once, then every `every`. A notice is reported to `trial-claim` at once, while the code that waits for
    /// [`Self::interruption`] acts on it.
    pub(crate) async fn watch(imds: Client, claims: Arc<Claims>, every: Duration) -> Self {
        let mut interrupted = Source::new(INTERRUPTION, parse_interruption);
        let mut rebalance = Source::new(REBALANCE, parse_rebalance);
        let first = interrupted.look(&imds).await;
        let (sender, interruption) = watch::channel(first);
        let polling = tokio::spawn(async move {
            let mut found = first;
            loop {
                if let Some(notice) = found {
                    say(&format!("EC2 will take this instance at {}", notice.at));
                    sender.send_replace(Some(notice));
                    tell(&claims, NoticeKind::Interruption);
                }
                if rebalance.look(&imds).await.is_some() {
                    say("EC2 recommends to leave this instance (rebalance); the training goes on");
                    tell(&claims, NoticeKind::Rebalance);
                }
                sleep(every).await;
                found = interrupted.look(&imds).await;
            }
        });
        Self { interruption, is_given: first.is_some(), polling }
    }

    /// The instance's announced end, if the first query has found one.
    pub(crate) fn known(&self) -> Option<Interruption> {
        self.is_given.then(|| *self.interruption.borrow()).flatten()
    }

    /// Returns once, when the instance's end is announced after the first query.
    pub(crate) async fn interruption(&mut self) -> Interruption {
        loop {
            let found = *self.interruption.borrow_and_update();
            if let Some(notice) = found.filter(|_| !self.is_given) {
                self.is_given = true;
                return notice;
            }
            if self.interruption.changed().await.is_err() {
                // The polling has ended, so there will be no notice.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Reports in the background, because neither the training's stop nor the next query may wait for it.
fn tell(claims: &Arc<Claims>, kind: NoticeKind) {
    let claims = Arc::clone(claims);
    tokio::spawn(async move {
        match claims.notice(kind).await {
            // The answer to the release says whether the trial goes on.
            Ok(Answer::Accepted | Answer::Stop(_) | Answer::Unavailable(_) | Answer::Waiting { .. }) => {}
            Ok(Answer::Refused(reason)) => say(&format!("the notice was not taken: {reason}")),
            Err(error) => say(&format!("the notice could not be reported: {}", chain(&error))),
        }
    });
}

/// One of the two addresses. It returns a notice only once.
struct Source<T> {
    path: &'static str,
    parse: fn(&str) -> Option<T>,
    given: bool,
    complained: bool,
}

impl<T> Source<T> {
    fn new(path: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self { path, parse, given: false, complained: false }
    }

    async fn look(&mut self, imds: &Client) -> Option<T> {
        if self.given {
            return None;
        }
        let text = match imds.get(self.path).await {
            Ok(text) => text,
            // The answer of every query until there is a notice.
            Err(ImdsError::ErrorResponse(error)) if error.response().status().as_u16() == NOT_FOUND => return None,
            Err(error) => {
                self.complain("cannot ask the metadata service for", &chain(&error));
                return None;
            }
        };
        let notice = (self.parse)(text.as_ref());
        self.given = notice.is_some();
        if !self.given {
            let shown: String = text.as_ref().chars().take(SHOWN_CHARS).collect();
            self.complain("ignoring what the metadata service says at", &format!("{shown:?} is no notice"));
        }
        notice
    }

    /// Logs only the first problem, which would be repeated with every query.
    fn complain(&mut self, what: &str, problem: &str) {
        if !std::mem::replace(&mut self.complained, true) {
            say(&format!("{what} {}: {problem}", self.path));
        }
    }
}

/// `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`
fn parse_interruption(text: &str) -> Option<Interruption> {
    let notice: Value = serde_json::from_str(text).ok()?;
    let action = notice.get("action")?.as_str()?;
    let at = notice.get("time")?.as_str()?.parse().ok()?;
    ACTIONS.contains(&action).then_some(Interruption { at })
}

/// `{"noticeTime": "2020-10-27T08:22:00Z"}`
fn parse_rebalance(text: &str) -> Option<Timestamp> {
    let notice: Value = serde_json::from_str(text).ok()?;
    notice.get("noticeTime")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WHOLE: &str = r#"{"action": "terminate", "time": "2017-09-18T08:22:00Z"}"#;

    #[test]
    fn documented_notices_are_read() {
        let at = "2017-09-18T08:22:00Z".parse().unwrap();
        for action in ACTIONS {
            let notice = WHOLE.replace("terminate", action);
            assert_eq!(parse_interruption(&notice), Some(Interruption { at }), "{notice}");
        }
        assert_eq!(parse_rebalance(r#"{"noticeTime": "2017-09-18T08:22:00Z"}"#), Some(at));
        let newer = r#"{"action": "stop", "time": "2017-09-18T10:22:00+02:00", "reason": {"new": 1}}"#;
        assert_eq!(parse_interruption(newer), Some(Interruption { at }), "unknown fields are tolerated");
    }

    #[test]
    fn what_is_not_a_notice_is_none() {
        let values = ["null", "7", "-1e999", "true", "[]", "{}", "\"\"", "\"soon\"", "\"2017-13-45T99:00:00Z\"", "{"];
        let mut payloads: Vec<String> =
            ["", " ", "null", "[]", "\"terminate\"", "404 - Not Found", "<html></html>"].map(str::to_owned).to_vec();
        for value in values {
            payloads.push(format!(r#"{{"action": {value}, "time": "2017-09-18T08:22:00Z"}}"#));
            payloads.push(format!(r#"{{"action": "terminate", "time": {value}}}"#));
            payloads.push(format!(r#"{{"time": {value}}}"#));
            payloads.push(format!(r#"{{"noticeTime": {value}}}"#));
        }
        payloads.extend((0..WHOLE.len()).map(|end| WHOLE[..end].to_owned()));
        payloads.extend((1..WHOLE.len()).map(|start| WHOLE[start..].to_owned()));
        for payload in &payloads {
            assert_eq!(parse_interruption(payload), None, "{payload}");
            assert_eq!(parse_rebalance(payload), None, "{payload}");
        }
        assert!(payloads.len() > 140);
    }

    /// If single bytes are changed, dropped or doubled, at most the time changes.
    #[test]
    fn mutated_notices_are_notices_or_nothing() {
        let mut kept = 0;
        let mut tried = 0;
        for at in 0..WHOLE.len() {
            for byte in [b'\0', b'"', b'{', b',', b'9', b'Z', b' ', 0xff] {
                let mut bytes = WHOLE.as_bytes().to_vec();
                match byte {
                    b'\0' => drop(bytes.remove(at)),
                    b'{' => bytes.insert(at, bytes[at]),
                    other => bytes[at] = other,
                }
                let text = String::from_utf8_lossy(&bytes);
                tried += 1;
                if parse_interruption(&text).is_some() {
                    kept += 1;
                    let read: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(read["action"], "terminate", "{text}");
                    assert!(read["time"].as_str().unwrap().parse::<Timestamp>().is_ok(), "{text}");
                }
                assert_eq!(parse_rebalance(&text), None, "{text}");
            }
        }
        assert!(tried >= 400 && kept > 0 && kept < tried / 4, "{kept} of {tried}");
    }
}
