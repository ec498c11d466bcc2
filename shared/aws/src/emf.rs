//! CloudWatch's embedded metric format: a log line from which CloudWatch Logs takes metrics. It needs no permission, no
//! call and no waiting.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::io::Write;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use spotsweep_control_plane::input::{About, Subject};
use spotsweep_control_plane::metrics::Metric;

/// The namespace that `infra/operations.yaml` uses.
const NAMESPACE: &str = "spotsweep";

/// Writes metrics to standard output, which Lambda sends to CloudWatch Logs.
pub(super) fn publish(table: &str, about: &About, metrics: &[Metric], now: Timestamp) {
    let line = format!("{}\n", document(table, about, metrics, now));
    // The line is not written through `tracing`, whose lines have another form. An error is ignored, because metrics
    // must not stop the work, and without standard output the logs are lost too.
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// Returns the document. Its only dimension is the table, which distinguishes the deployments of an account. Sweep and
/// trial are only properties, because a metric for each of them would be billed separately.
fn document(table: &str, about: &About, metrics: &[Metric], now: Timestamp) -> Value {
    let definitions: Vec<Value> =
        metrics.iter().map(|metric| json!({ "Name": metric.name.as_str(), "Unit": metric.name.unit() })).collect();
    let directive = json!({ "Namespace": NAMESPACE, "Dimensions": [["Table"]], "Metrics": definitions });
    let mut root = Map::new();
    root.insert("_aws".to_owned(), json!({ "Timestamp": now.as_millisecond(), "CloudWatchMetrics": [directive] }));
    root.insert("Table".to_owned(), json!(table));
    root.extend(metrics.iter().map(|metric| (metric.name.as_str().to_owned(), json!(metric.value))));
    root.insert("event".to_owned(), json!(about.name));
    if let Some(Subject::Trial(sweep, index)) = &about.subject {
        root.extend([("sweep".to_owned(), json!(sweep)), ("trial".to_owned(), json!(index))]);
    }
    Value::Object(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spotsweep_control_plane::input::Input;
    use spotsweep_control_plane::metrics::Name;
    use spotsweep_control_plane::outcome::Outcome;
    use spotsweep_protocol::ids::SweepId;
    use spotsweep_records::workspace::{Fact, TrialRef};

    #[test]
    fn a_line_is_what_cloudwatch_reads() {
        let trial = TrialRef { sweep: SweepId::derive("b", "k", "v"), index: 7 };
        let about = Input::from(Outcome::Workspace(trial, Fact::Due)).about();
        let metrics =
            [Metric { name: Name::Interruptions, value: 1.0 }, Metric { name: Name::SecondsLost, value: 12.5 }];
        let now = Timestamp::from_millisecond(1_700_000_000_123).unwrap_or_default();
        let written = document("spotsweep-Table-1", &about, &metrics, now);
        let expected = json!({
            "_aws": { "Timestamp": 1_700_000_000_123_i64, "CloudWatchMetrics": [{
                "Namespace": "spotsweep", "Dimensions": [["Table"]],
                "Metrics": [{ "Name": "Interruptions", "Unit": "Count" }, { "Name": "SecondsLost", "Unit": "Seconds" }],
            }] },
            "Table": "spotsweep-Table-1", "Interruptions": 1.0, "SecondsLost": 12.5,
            "event": "workspace-due", "sweep": SweepId::derive("b", "k", "v"), "trial": 7,
        });
        assert_eq!(written, expected);
        assert!(!written.to_string().contains('\n'), "CloudWatch takes one line for one document");
    }
}
