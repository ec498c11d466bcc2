//! The time by which requests are signed. AWS refuses a signature whose time is more than five minutes from its own, with
//! its own time as the answer's date (IAM user guide, "Troubleshoot AWS Signature Version 4"). So a runner whose clock is
//! wrong could not even report that.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use aws_smithy_async::time::TimeSource;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use spotsweep_protocol::stall::span;

/// Less is no reason for a refusal.
const LEAST_SECONDS: i64 = 240;

/// This instance's clock, corrected by what AWS has answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    ahead_seconds: Arc<AtomicI64>,
}

impl Clock {
    /// Takes the date of an answer. What is wrong with the clock, where it is far off and that is new.
    pub(crate) fn is_off<T>(&self, answer: &Response<T>) -> Option<String> {
        let date = DateTime::from_str(answer.headers().get("date")?, Format::HttpDate).ok()?;
        let ahead = date.secs() - DateTime::from(SystemTime::now()).secs();
        if ahead.abs() < LEAST_SECONDS || self.ahead_seconds.swap(ahead, Ordering::Relaxed) != 0 {
            return None;
        }
        let how = if ahead > 0 { "behind" } else { "ahead of" };
        Some(format!("its clock is {} {how} that of AWS", span(ahead.unsigned_abs())))
    }
}

impl TimeSource for Clock {
    fn now(&self) -> SystemTime {
        let ahead = self.ahead_seconds.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { SystemTime::now() - by } else { SystemTime::now() + by }
    }
}
