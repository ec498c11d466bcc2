//! The keys and attributes of a record, its history and its pointers in the table.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::BoxError;
use spotsweep_control_plane::store::{Change, Overdue, Record, Reservation};
use spotsweep_protocol::ids::{DescribedJob, JobId, SweepId};
use spotsweep_protocol::number::is_stored;
use spotsweep_protocol::rungs::{Curve, Rung};
use spotsweep_ranking::peer::{Peer, PeerEnd};
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::TrialRef;

/// Name of the index of open work, and of its partition key.
pub(crate) const INDEX: &str = "open";

/// The index partition of sweeps that are done.
pub(crate) const CLOSED: &str = "closed";

/// The attribute with a record's due time.
pub(super) const DUE: &str = "due";

/// Sort key of a sweep.
pub(crate) const META: &str = "META";

/// The attribute with a record's own fields.
pub(super) const RECORD: &str = "record";

/// Prefix of the sort keys of trials, and of pointers to them.
pub(super) const TRIAL: &str = "TRIAL#";

/// Prefix of the sort keys of the rows about trials for decisions about other trials.
pub(super) const PEER: &str = "PEER#";

/// Prefix of the sort keys of reservations.
const RESERVED: &str = "RESERVED#";

/// The attribute with a trial's rungs: `step value best mean`, separated by commas. A map would be three times as long,
/// and a comparison reads the rungs of all trials.
const RUNGS: &str = "rungs";

/// Number of index partitions over which open work is spread.
pub(crate) const SHARDS: u32 = 8;

pub(super) type Row = HashMap<String, AttributeValue>;

/// Returns the row of a record in its new version.
pub(super) fn record_row(change: &Change, version: u64, expires: AttributeValue) -> Result<Row, BoxError> {
    let (sweep, sk, shard) = address(&change.record);
    let mut row = keyed(partition(sweep), sk);
    row.insert("version".to_owned(), number(version));
    match &change.record {
        Record::Sweep(sweep) => row.insert(RECORD.to_owned(), attribute(sweep)?),
        Record::Trial(trial) => {
            row.insert("job".to_owned(), text(trial.job.to_string()));
            row.insert(RECORD.to_owned(), attribute(trial)?)
        }
    };
    match (change.due, &change.record) {
        (Some(due), _) => {
            row.insert(INDEX.to_owned(), text(format!("due#{shard}")));
            row.insert(DUE.to_owned(), text(sortable(due)));
        }
        (None, record) => {
            row.insert("expires".to_owned(), expires);
            if let Record::Sweep(_) = record {
                row.insert(INDEX.to_owned(), text(CLOSED));
            }
        }
    }
    Ok(row)
}

/// Returns the row about a trial for decisions about other trials, with the version of the trial's record.
pub(super) fn peer_row(trial: &Trial, peer: &Peer, version: u64, expires: AttributeValue) -> Row {
    let mut row = keyed(partition(&trial.sweep), format!("{PEER}{:06}", trial.index));
    let rung = |(step, Rung { value, best, mean }): (&u64, &Rung)| format!("{step} {value:?} {best:?} {mean:?}");
    let rungs: Vec<String> = peer.rungs.iter().map(rung).collect();
    row.insert(RUNGS.to_owned(), text(rungs.join(",")));
    row.extend(peer.parameters.as_ref().map(|parameters| ("parameters".to_owned(), text(parameters))));
    row.extend(peer.end.map(|end| {
        let end = match end {
            PeerEnd::Finished(value) => format!("{value:?}"),
            PeerEnd::Stopped => "stopped".to_owned(),
            PeerEnd::Failed => "failed".to_owned(),
            PeerEnd::Void => "void".to_owned(),
        };
        ("end".to_owned(), text(end))
    }));
    row.insert("version".to_owned(), number(version));
    expiring(row, expires)
}

/// Reads such a row: the trial's index and its content.
pub(super) fn peer(row: &Row) -> Result<(u32, Peer), BoxError> {
    let index = field(row, "sk").and_then(|sk| sk.strip_prefix(PEER)).ok_or("a row of a trial without its index")?;
    let mut rungs = Curve::new();
    for rung in field(row, RUNGS).ok_or("a row without its rungs")?.split_terminator(',') {
        let figures: Vec<&str> = rung.split(' ').collect();
        let [step, value, best, mean] = figures[..] else { return Err("a rung without its figures".into()) };
        let rung = Rung { value: value.parse()?, best: best.parse()?, mean: mean.parse()? };
        rungs.insert(step.parse()?, rung);
    }
    let end = match field(row, "end") {
        None => None,
        Some("stopped") => Some(PeerEnd::Stopped),
        Some("failed") => Some(PeerEnd::Failed),
        Some("void") => Some(PeerEnd::Void),
        Some(value) => Some(PeerEnd::Finished(value.parse()?)),
    };
    Ok((index.parse()?, Peer { rungs, parameters: field(row, "parameters").map(str::to_owned), end }))
}

/// Returns the row of a reservation that lasts until then. DynamoDB deletes it some time later.
pub(super) fn reservation_row(sweep: &SweepId, reservation: &Reservation, until: Timestamp) -> Row {
    let mut row = keyed(partition(sweep), format!("{RESERVED}{}", reservation.key));
    row.insert("owner".to_owned(), number(reservation.owner));
    row.insert("until".to_owned(), number(until.as_second()));
    expiring(row, number(until.as_second()))
}

/// Adds to a row the time after which DynamoDB deletes it.
pub(super) fn expiring(mut row: Row, expires: AttributeValue) -> Row {
    row.insert("expires".to_owned(), expires);
    row
}

/// Returns the pointer from an instance, volume or snapshot to a trial. It is put without a condition, because its
/// content is always the same.
pub(super) fn pointer_row(resource: &str, trial: &Trial) -> Row {
    keyed(resource_partition(resource), format!("{TRIAL}{}#{}", trial.sweep, trial.index))
}

/// Returns the trial of a pointer.
pub(super) fn pointed(row: &Row) -> Option<TrialRef> {
    let (sweep, index) = field(row, "sk")?.strip_prefix(TRIAL)?.rsplit_once('#')?;
    Some(TrialRef { sweep: SweepId::parse(sweep)?, index: index.parse().ok()? })
}

pub(super) fn keyed(pk: String, sk: String) -> Row {
    Row::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))])
}

pub(crate) fn partition(sweep: &SweepId) -> String {
    format!("SWEEP#{sweep}")
}

pub(super) fn resource_partition(id: &str) -> String {
    format!("RES#{id}")
}

pub(crate) fn trial_key(index: u32) -> String {
    // With six digits the text sorts like the number.
    format!("{TRIAL}{index:06}")
}

/// Returns the keys of a record, and its shard of the index.
pub(super) fn address(record: &Record) -> (&SweepId, String, u32) {
    let shard = |id: &SweepId, index: u32| {
        let sum = id.as_str().bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        sum.wrapping_add(index) % SHARDS
    };
    match record {
        Record::Sweep(sweep) => (&sweep.id, META.to_owned(), shard(&sweep.id, 0)),
        Record::Trial(trial) => (&trial.sweep, trial_key(trial.index), shard(&trial.sweep, trial.index)),
    }
}

/// Reads an index row: the due time and the record, with the job of a trial.
pub(super) fn overdue_record(row: &Row) -> Option<(Timestamp, Overdue)> {
    let due = field(row, DUE)?.parse().ok()?;
    let sweep = SweepId::parse(field(row, "pk")?.strip_prefix("SWEEP#")?)?;
    let sk = field(row, "sk")?;
    if sk == META {
        return Some((due, Overdue::Sweep(sweep)));
    }
    let index = sk.strip_prefix(TRIAL)?.parse().ok()?;
    let job = JobId::from(field(row, "job")?.to_owned());
    Some((due, Overdue::Trial(DescribedJob { sweep, index: Some(index), job })))
}

/// Returns the record of a row.
pub(super) fn record<T: DeserializeOwned>(mut row: Row) -> Result<T, BoxError> {
    of_attribute(row.remove(RECORD).ok_or("a row without its record")?)
}

/// Returns a text attribute.
pub(crate) fn field<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    row.get(name)?.as_s().ok().map(String::as_str)
}

/// Converts a part of a record to an attribute, whatever numbers are in it.
pub(super) fn attribute<T: Serialize>(part: &T) -> Result<AttributeValue, BoxError> {
    Ok(each_leaf(serde_dynamo::to_attribute_value(part)?, &stored))
}

/// Converts an attribute to a part of a record.
pub(super) fn of_attribute<T: DeserializeOwned>(value: AttributeValue) -> Result<T, BoxError> {
    Ok(serde_dynamo::from_attribute_value(each_leaf(value, &found))?)
}

/// Replaces a number that DynamoDB cannot store by a set of one text, because a put with such a number fails
/// completely. Nothing else in a record is a set.
fn stored(leaf: AttributeValue) -> AttributeValue {
    match leaf {
        AttributeValue::N(digits) if !digits.parse().is_ok_and(is_stored) => AttributeValue::Ss(vec![digits]),
        leaf => leaf,
    }
}

/// Reverses [`stored`].
fn found(leaf: AttributeValue) -> AttributeValue {
    match leaf {
        AttributeValue::Ss(digits) => AttributeValue::N(digits.concat()),
        leaf => leaf,
    }
}

fn each_leaf(value: AttributeValue, change: &impl Fn(AttributeValue) -> AttributeValue) -> AttributeValue {
    match value {
        AttributeValue::L(values) => {
            AttributeValue::L(values.into_iter().map(|value| each_leaf(value, change)).collect())
        }
        AttributeValue::M(fields) => {
            AttributeValue::M(fields.into_iter().map(|(name, value)| (name, each_leaf(value, change))).collect())
        }
        leaf => change(leaf),
    }
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(super) fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Writes a time as RFC 3339 with three decimals, so that the texts sort like the times.
pub(super) fn sortable(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use spotsweep_protocol::claim::Outputs;
    use spotsweep_protocol::metric::{Metric, Source};
    use spotsweep_records::sweep::Sweep;
    use spotsweep_records::trial::{Comparison, EarlyStop, End};

    use super::*;

    #[test]
    fn what_others_need_of_a_trial_comes_back_from_its_row() {
        let trial = Trial::new(SweepId::derive("b", "k", "v"), 12, JobId::from("j:12".to_owned()));
        let mut rungs = Curve::new();
        for (step, value) in [(1, 0.1 + 0.2), (27, -1e-300), (1 << 52, 1e124)] {
            rungs.insert(step, Rung { value, best: value * 0.5, mean: -value });
        }
        let parameters = Some(r#"{"lr":1e-300,"name":"a,b c"}"#.to_owned());
        for end in
            [None, Some(PeerEnd::Finished(1e-9)), Some(PeerEnd::Stopped), Some(PeerEnd::Failed), Some(PeerEnd::Void)]
        {
            for rungs in [rungs.clone(), Curve::new()] {
                let peer_of = Peer { rungs, parameters: parameters.clone(), end };
                assert_eq!(peer(&peer_row(&trial, &peer_of, 7, number(1))).unwrap(), (12, peer_of));
            }
        }
        let diverged = Peer { end: Some(PeerEnd::Finished(f64::NAN)), ..Peer::default() };
        let (_, found) = peer(&peer_row(&trial, &diverged, 7, number(1))).unwrap();
        assert!(matches!(found.end, Some(PeerEnd::Finished(value)) if value.is_nan()));
    }

    /// Returns a trial and a sweep with this text in place of every number that may have a fraction.
    fn records(digits: &str) -> (Trial, Sweep) {
        const OTHER: f64 = 0.0625;
        let id = SweepId::derive("b", "k", "v");
        let mut trial = Trial::new(id, 3, JobId::from("j:3".to_owned()));
        let by = Comparison { value: OTHER, cut: Some(OTHER), of: 4 };
        trial.metrics.insert("loss".to_owned(), Metric::of(OTHER, Some(OTHER), Source::Stated));
        trial.rungs.insert(9, Rung { value: OTHER, best: OTHER, mean: OTHER });
        trial.compared.insert(9, by);
        trial.stopped = Some(EarlyStop { rung: 9, by, at_interruption: false });
        trial.end = Some(End { attempt: 1, exit_code: 0, outputs: Outputs::default(), seconds: OTHER, error: None });
        let basis = json!({ "parameters": "{}", "basis": { "Model": { "mean": OTHER, "deviation": OTHER } } });
        trial.suggested = Some(serde_json::from_value(basis).unwrap());
        let sweep = json!({
            "id": trial.sweep, "redriven": 0, "stage": { "name": "running" },
            "upload": { "bucket": "b", "key": "k", "fingerprint": "v", "uploaded_at": "2026-01-01T00:00:00Z" },
            "spent": {
                "usd": OTHER, "on_demand_usd": OTHER, "storage_usd": OTHER, "initialization_usd": OTHER,
                "kept_usd": OTHER, "control_plane_usd": OTHER, "unpriced_seconds": OTHER,
            },
            "plan": {
                "trials": 4, "queue": "q", "definition": "d:1", "attempts": 9, "parts": [], "target": OTHER,
                "budget": { "max_usd": OTHER, "max_hours": OTHER },
                "early_stopping": { "rule": { "type": "asha", "rungs": [9], "eta": OTHER } },
            },
        });
        let sweep: Sweep = serde_json::from_value(sweep).unwrap();
        let put = |leaf| match leaf {
            AttributeValue::N(other) if other == OTHER.to_string() => AttributeValue::N(digits.to_owned()),
            leaf => leaf,
        };
        let of = |record: AttributeValue| each_leaf(record, &put);
        (of_attribute(of(attribute(&trial).unwrap())).unwrap(), of_attribute(of(attribute(&sweep).unwrap())).unwrap())
    }

    /// Returns the numbers in an attribute. DynamoDB refuses a put with a number beyond its range.
    fn numbers(value: &AttributeValue) -> Vec<f64> {
        match value {
            AttributeValue::N(digits) => vec![digits.parse().unwrap()],
            AttributeValue::L(values) => values.iter().flat_map(numbers).collect(),
            AttributeValue::M(fields) => fields.values().flat_map(numbers).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_record_with_any_number_is_stored_and_comes_back() {
        let of_exponent =
            |exponent: u64| [0, 1, (1 << 52) - 1].map(|mantissa| f64::from_bits(exponent << 52 | mantissa));
        // The values are 0 and subnormal numbers, numbers of any size, infinity and NaN, and those next to the limits.
        let of_any_size = (0..2048).step_by(23).chain([1, 2046, 2047]).flat_map(of_exponent);
        let limits = [1e-130, 1e126].into_iter().flat_map(|limit: f64| [limit.next_down(), limit, limit.next_up()]);
        for value in of_any_size.chain(limits).flat_map(|value| [value, -value]) {
            let (trial, sweep) = records(&value.to_string());
            assert!(sweep.plan.as_ref().unwrap().target.unwrap().total_cmp(&value).is_eq() || value.is_nan());
            let (of_trial, of_sweep) = (attribute(&trial).unwrap(), attribute(&sweep).unwrap());
            for stored in numbers(&of_trial).into_iter().chain(numbers(&of_sweep)) {
                assert!(stored == 0.0 || (1e-130..1e126).contains(&stored.abs()), "{value:e}");
            }
            let found: Trial = of_attribute(of_trial).unwrap();
            assert_eq!(format!("{found:?}"), format!("{trial:?}"));
            let found: Sweep = of_attribute(of_sweep).unwrap();
            assert_eq!(format!("{found:?}"), format!("{sweep:?}"));
        }
    }
}
