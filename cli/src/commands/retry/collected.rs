//! Finds the collected checkpoints of trials that have succeeded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spotsweep_protocol::claim::{COLLECTED, Checkpoints, Collected};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{counted, dollars, size};
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::{Standing, Trial};
use tokio::task::JoinSet;

use crate::download::all_below;
use crate::sweeps::Found;

/// Trials that are looked up at once.
const AT_ONCE: usize = 16;

/// Price in USD of a GET request to S3 in us-east-1 (<https://aws.amazon.com/s3/pricing/>).
const GET_USD: f64 = 0.000_000_4;

/// For each of these trials, what is collected of its newest checkpoint, or why there is nothing to go on from.
pub(super) async fn look_up(
    found: &Found,
    trials: &BTreeMap<u32, &Trial>,
    indices: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, Result<Collected, String>>, Failure> {
    let (plan, whole) = (found.plan()?, Arc::new(found.clone()));
    let (mut waiting, mut underway, mut looked) = (indices.iter().copied(), JoinSet::new(), BTreeMap::new());
    loop {
        while underway.len() < AT_ONCE {
            let Some(index) = waiting.next() else { break };
            let found = Arc::clone(&whole);
            underway.spawn(async move { (index, of_trial(&found, index).await) });
        }
        let Some(next) = underway.join_next().await else { break };
        let (index, collected) = next.context(|| "cannot look for collected checkpoints")?;
        let nothing = || why_nothing(plan, trials.get(&index).copied());
        looked.insert(index, collected?.unwrap_or_else(|| Err(nothing())));
    }
    Ok(looked)
}

/// What is collected of a trial. It is `None` if there is nothing, and an error text if it is not complete any more.
async fn of_trial(found: &Found, index: u32) -> Result<Option<Result<Collected, String>>, Failure> {
    let prefix = found.sweep.id.trial_prefix(index);
    let Some(record) = found.read(&format!("{prefix}{COLLECTED}")).await? else { return Ok(None) };
    let place = || format!("s3://{}/{prefix}", found.bucket());
    let record: Collected = serde_json::from_slice(&record)
        .context(|| format!("{}{COLLECTED} is not what the trial's runner has written", place()))?;
    let there = etags(found, &prefix).await?;
    let is_whole = |key: &str, etag: &str| there.get(key).is_some_and(|found| found == etag);
    let broken = record.files.iter().find(|file| !is_whole(&format!("{prefix}{}", file.key), &file.etag));
    Ok(Some(match broken {
        None => Ok(record),
        Some(file) => Err(format!(
            "{}{} is gone, or is not what was collected; put that version back, or train the trial again",
            place(),
            file.key
        )),
    }))
}

/// S3's ETags of the objects below a prefix, by key.
async fn etags(found: &Found, prefix: &str) -> Result<BTreeMap<String, String>, Failure> {
    let there = all_below(&found.s3(), found.bucket(), prefix).await?.into_iter();
    Ok(there.filter_map(|(key, object)| Some((key, object.e_tag()?.trim_matches('"').to_owned()))).collect())
}

/// Why no checkpoint of a trial is collected.
fn why_nothing(plan: &Plan, trial: Option<&Trial>) -> String {
    let is_success = trial.is_some_and(|trial| trial.standing() == Standing::Succeeded);
    let left_out = trial.and_then(|trial| trial.end.as_ref()).map(|end| end.outputs.left_out.as_slice());
    let too_large = left_out.unwrap_or_default().iter().find(|why| why.starts_with("\"checkpoints/"));
    match (is_success, too_large) {
        (false, _) => "it has not succeeded, so no checkpoint is collected of it".to_owned(),
        (true, _) if plan.patterns.checkpoints == Checkpoints::None => {
            "its sweep collects no checkpoints: train it again with `outputs: {checkpoints: newest}`".to_owned()
        }
        (true, Some(why)) => format!("its newest checkpoint is not collected: {why}"),
        (true, None) => {
            "the bucket has no record of its checkpoint: its script has left none, or it was collected by an older \
                         version. Train it again, with a script that saves below $SPOTSWEEP_CHECKPOINTS"
                .to_owned()
        }
    }
}

/// What the download of these checkpoints costs, as text.
pub(super) fn cost(collected: &[Collected]) -> String {
    let files: usize = collected.iter().map(|of| of.files.len()).sum();
    let bytes: u64 = collected.iter().map(Collected::bytes).sum();
    let most = collected.iter().map(Collected::bytes).max().unwrap_or(0);
    let requests = (files + collected.len()) as f64 * GET_USD;
    format!(
        "continuing {} from checkpoints in the bucket: {} in {}, {} for one trial at most. Each trial downloads its own \
         once, for {} of S3's requests in all; within the region the bytes are free",
        counted(collected.len(), "trial"),
        size(bytes),
        counted(files, "file"),
        size(most),
        dollars(requests)
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use spotsweep_records::trial::JobStatus;

    use super::*;
    use crate::live::samples::{succeeded, trial};

    #[test]
    fn the_cost_is_of_all_trials() {
        let of = |bytes: &[u64]| -> Collected {
            let file = |bytes| json!({ "path": "a", "key": "a", "bytes": bytes, "modified_ns": 1, "etag": "e" });
            let files: Vec<_> = bytes.iter().map(file).collect();
            serde_json::from_value(json!({ "files": files })).unwrap()
        };
        let said = cost(&[of(&[1 << 20, 1 << 20]), of(&[1024])]);
        let expected =
            "continuing 2 trials from checkpoints in the bucket: 2.0 MiB in 3 files, 2.0 MiB for one trial at most. ";
        assert!(said.starts_with(expected), "{said}");
        assert!(said.contains("for $0.0000020 of S3's requests"), "{said}");
    }

    #[test]
    fn it_is_said_why_nothing_is_collected() {
        let plan = |checkpoints: &str| -> Plan {
            let plan = json!({ "trials": 1, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [],
                "patterns": { "checkpoints": checkpoints } });
            serde_json::from_value(plan).unwrap()
        };
        let mut large = succeeded(0, 0, 60, 0.5);
        let why = "\"checkpoints/a.pt\": the newest checkpoint has 30 bytes, and 20 are collected at most";
        let end = json!({ "attempt": 1, "exit_code": 0, "seconds": 1.0,
            "outputs": { "files": 0, "bytes": 0, "left_out": [why] } });
        large.end = serde_json::from_value(end).unwrap();
        let cases = [
            ("newest", Some(large), "30 bytes, and 20 are collected at most"),
            ("newest", Some(succeeded(0, 0, 60, 0.5)), "its script has left none"),
            ("none", Some(succeeded(0, 0, 60, 0.5)), "`outputs: {checkpoints: newest}`"),
            ("newest", Some(trial(0, JobStatus::Failed)), "it has not succeeded"),
            ("newest", None, "it has not succeeded"),
        ];
        for (checkpoints, trial, expected) in cases {
            let said = why_nothing(&plan(checkpoints), trial.as_ref());
            assert!(said.contains(expected), "{said}");
        }
    }
}
