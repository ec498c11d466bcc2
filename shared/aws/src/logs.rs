//! Writes a function's log to standard output.

use std::env;
use std::io::stdout;
use std::str::FromStr;

use tracing_subscriber::filter::LevelFilter;

/// Writes log lines in the format of `AWS_LAMBDA_LOG_FORMAT`, JSON or text, from the level of `AWS_LAMBDA_LOG_LEVEL`
/// on, or from INFO on if it is not set
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-advanced.html>). A JSON line has its time
/// in RFC 3339. Without a time Lambda takes the line's level to be INFO (fact 43).
///
/// The subscriber of lambda_runtime does the same, but its filter adds a regular-expression engine to every binary.
#[expect(clippy::disallowed_methods, reason = "before anything is decided")]
pub fn log_to_stdout() {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").ok().and_then(|level| LevelFilter::from_str(&level).ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt().with_target(false).with_max_level(level).with_writer(stdout);
    match env::var("AWS_LAMBDA_LOG_FORMAT") {
        // A line has its span. The list of all spans would repeat it, because there is only one.
        Ok(format) if format.eq_ignore_ascii_case("json") => lines.json().with_span_list(false).init(),
        // CloudWatch Logs stores the time of each line.
        _text => lines.without_time().init(),
    }
}
