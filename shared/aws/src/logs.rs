//! Standard output as a function's log.

use std::env;
use std::io::stdout;
use std::str::FromStr;

use tracing_subscriber::filter::LevelFilter;

/// Has log lines written as the function's settings say: `AWS_LAMBDA_LOG_FORMAT`, JSON or text, and
/// `AWS_LAMBDA_LOG_LEVEL`, INFO where it is not set
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-advanced.html>). A JSON line has its time in
/// RFC 3339: without one Lambda takes the line's level for INFO (fact 43).
///
/// lambda_runtime's own subscriber does the same with a filter that brings a regular-expression engine into every
/// binary.
#[expect(clippy::disallowed_methods, reason = "before anything is decided")]
pub fn log_to_stdout() {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").ok().and_then(|level| LevelFilter::from_str(&level).ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt().with_target(false).with_max_level(level).with_writer(stdout);
    match env::var("AWS_LAMBDA_LOG_FORMAT") {
        // The span, not also the list of all spans, of which there is one.
        Ok(format) if format.eq_ignore_ascii_case("json") => lines.json().with_span_list(false).init(),
        // CloudWatch Logs has the time of each line.
        _text => lines.without_time().init(),
    }
}
