//! Finds the last sweep of the same code: how long its trials took, and what they left in the bucket.
//!
//! A sweep's record does not identify its code. Two sweeps count as of the same code if they run the same command with
//! the same `code`, on the same job definition. A branch, or a tag of an image, may have moved between them.

use std::cmp::Reverse;
use std::iter;
use std::ops::Range;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::DateTime;
use serde::Serialize;
use serde_json::Value;
use spotsweep_aws::Reader;
use spotsweep_control_plane::decide::target::launcher;
use spotsweep_protocol::claim::{self, Patterns, Preparation};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::functions::CLAIM;
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::Plan;
use spotsweep_records::sweep::upload::{DROP_PREFIX, PLAN};
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_sweep_file::SweepFile;

use super::super::doctor::stack::Deployment;
use crate::download::{Page, pages_below};
use crate::target::Target;
use crate::{queue, show};

/// Most sweeps that are looked at, newest first. Each costs two reads, and the one that is found costs a few more.
pub(super) const MOST_SWEEPS: usize = 20;
/// Most calls that list the answers to sweep files. Each returns a thousand names.
const MOST_PAGES: usize = 20;
/// Most trials of it that are read. In a larger sweep these are stretches at equal distances, because neighbours differ
/// in the parameter that changes first, and stretches in the others.
const MOST_TRIALS: u32 = 1_000;
const STRETCHES: u32 = 10;

/// What its trials that have succeeded took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LastSweep {
    pub(super) sweep: SweepId,
    /// Number of trials that have succeeded, among those that were read.
    pub(super) succeeded: usize,
    /// How many of them were interrupted. Their hours include what they repeated.
    interrupted: usize,
    /// Mean hours in containers.
    pub(super) mean_hours: f64,
    shortest_hours: f64,
    longest_hours: f64,
    /// Bytes that such a trial left in the bucket, if the same files are collected now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mean_bytes: Option<f64>,
}

impl LastSweep {
    /// Among the newest sweeps of the deployment, the newest one with a trial that has succeeded.
    pub(super) async fn find(
        target: &Target,
        deployment: &Deployment,
        file: &SweepFile,
    ) -> Result<Option<Self>, Failure> {
        let function = format!("{}{CLAIM}", deployment.prefix());
        let (wanted, option) = (file.settings.job_definition.clone(), "`job_definition` in the sweep file");
        let definition = queue::named(target, &function, wanted, "SPOTSWEEP_JOB_DEFINITION", option).await?;
        let (bucket, table) = (deployment.required("Bucket")?, deployment.required("Table")?);
        let s3 = spotsweep_aws::path_style_s3(&target.config);
        let reader = Reader::new(&target.config, table.clone());
        let cannot_read = || format!("cannot read the table {table}");
        for key in newest_plans(&s3, &bucket).await? {
            let Some(id) = sweep_of(&s3, &bucket, &key).await? else { continue };
            let Some(sweep) = reader.sweep(&id).await.context(cannot_read)? else { continue };
            let Some(plan) = sweep.plan.filter(|plan| is_same_code(plan, file, &definition)) else { continue };
            let mut trials = Vec::new();
            for indexes in stretches(plan.trials) {
                trials.extend(reader.trials_among(&id, indexes).await.context(cannot_read)?);
            }
            let patterns = file.settings.outputs.clone().map(Patterns::from).unwrap_or_default();
            if let Some(found) = Self::of(&id, &trials, plan.patterns == patterns) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Figures of the trials that have succeeded, or none if there are none.
    fn of(sweep: &SweepId, trials: &[Trial], collects_the_same: bool) -> Option<Self> {
        let succeeded: Vec<&Trial> = trials.iter().filter(|trial| trial.standing() == Standing::Succeeded).collect();
        let hours: Vec<f64> = succeeded.iter().map(|trial| trial.run_seconds() / 3600.0).collect();
        let (shortest_hours, longest_hours) =
            (hours.iter().copied().reduce(f64::min)?, hours.iter().copied().reduce(f64::max)?);
        let bytes: Vec<f64> =
            succeeded.iter().filter_map(|trial| Some(trial.end.as_ref()?.outputs.bytes as f64)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // A trial has no length until Batch has reported its end.
        (longest_hours > 0.0).then(|| Self {
            sweep: sweep.clone(),
            succeeded: succeeded.len(),
            interrupted: succeeded.iter().filter(|trial| trial.interruptions().next().is_some()).count(),
            mean_hours: mean(&hours),
            shortest_hours,
            longest_hours,
            mean_bytes: (collects_the_same && !bytes.is_empty()).then(|| mean(&bytes)),
        })
    }

    /// One trial that took an hour and left so many bytes.
    #[cfg(test)]
    pub(super) fn with_bytes(sweep: SweepId, bytes: f64) -> Self {
        let hour = 1.0;
        Self {
            sweep,
            succeeded: 1,
            interrupted: 0,
            mean_hours: hour,
            shortest_hours: hour,
            longest_hours: hour,
            mean_bytes: Some(bytes),
        }
    }

    /// Text for people.
    pub(super) fn described(&self) -> String {
        let Self { sweep, succeeded, interrupted, mean_hours, shortest_hours, longest_hours, .. } = self;
        let [mean, shortest, longest] = [mean_hours, shortest_hours, longest_hours].map(|hours| show::hours(*hours));
        let repeated = match interrupted {
            0 => String::new(),
            1 => "; 1 of them was interrupted, and repeated a part".to_owned(),
            count => format!("; {count} of them were interrupted, and repeated a part"),
        };
        format!(
            "{mean}, the mean of {} of sweep {sweep}, which has the same command, code and job definition ({shortest} to \
             {longest}{repeated})",
            counted(*succeeded as u64, "succeeded trial"),
        )
    }
}

/// The keys of the answers to sweep files, newest first. An answer has the name of its file, so a later file of the
/// same name has replaced an earlier answer.
async fn newest_plans(s3: &Client, bucket: &str) -> Result<Vec<String>, Failure> {
    let mut plans: Vec<(i64, String)> = Vec::new();
    let mut listed = 0;
    let take = |page: Page| {
        listed += 1;
        if listed > MOST_PAGES {
            return Err(Failure::new(format!("s3://{bucket}/{DROP_PREFIX} has too many files to look for the newest")));
        }
        let answers = page.into_iter().filter(|(key, _)| key.ends_with(PLAN));
        plans.extend(answers.map(|(key, object)| (object.last_modified().map_or(0, DateTime::secs), key)));
        Ok(())
    };
    pages_below(s3, bucket, DROP_PREFIX, take).await?;
    plans.sort_by_key(|(put_at, _)| Reverse(*put_at));
    Ok(plans.into_iter().take(MOST_SWEEPS).map(|(_, key)| key).collect())
}

/// The sweep to which an answer belongs. None if the answer does not exist any more, or is of another product.
async fn sweep_of(s3: &Client, bucket: &str, key: &str) -> Result<Option<SweepId>, Failure> {
    let cannot_read = || format!("cannot read s3://{bucket}/{key}");
    let got = match s3.get_object().bucket(bucket).key(key).send().await {
        Err(error) if spotsweep_aws::is_gone(&error) => return Ok(None),
        got => got.context(cannot_read)?,
    };
    let answer = got.body.collect().await.context(cannot_read)?.to_vec();
    let answer: Option<Value> = serde_json::from_slice(&answer).ok();
    Ok(answer.and_then(|answer| SweepId::parse(answer.get("sweep")?.as_str()?)))
}

/// Whether a sweep ran what the file would run on this job definition. Credentials in the URL of its code are ignored.
fn is_same_code(plan: &Plan, file: &SweepFile, definition: &str) -> bool {
    let settings = &file.settings;
    // The text of a repository has no credentials. A folder may have changed, as a branch may have.
    let name = |code: claim::Code| match code {
        claim::Code::Git(git) | claim::Code::Private { private: git, .. } => format!("{git:?}"),
        claim::Code::Packed { .. } => String::new(),
    };
    let ran = plan.preparation.as_ref().and_then(Preparation::code).map(name);
    let runs = settings.code.as_ref().map(|code| code.fetched("").map(name).unwrap_or_default());
    let command = plan.command.as_deref().map(|command| &command[launcher(command).len()..]);
    let is_same = command == settings.command.as_deref() && ran == runs && plan.image == settings.image;
    is_same && is_of(&plan.definition, definition, plan.image.is_some())
}

/// Whether a definition that was pinned to a revision is the wanted one, which may name no revision. That of an image
/// has the name of the one that it is like, and no number of its revision.
fn is_of(pinned: &str, wanted: &str, has_image: bool) -> bool {
    // An ARN has the name and the revision after its last slash.
    let [pinned, wanted] = [pinned, wanted].map(|text| text.rsplit('/').next().unwrap_or(text));
    let name = |text: &str| text.split(':').next().map(str::to_owned);
    let is_like = || pinned.rsplit_once("-image-").is_some_and(|(like, _hash)| name(wanted).as_deref() == Some(like));
    pinned == wanted
        || pinned.rsplit_once(':').is_some_and(|(name, _revision)| name == wanted)
        || (has_image && is_like())
}

/// The trials that are read of so many.
fn stretches(trials: u32) -> Vec<Range<u32>> {
    if trials <= MOST_TRIALS {
        return iter::once(0..trials).collect();
    }
    let length = MOST_TRIALS / STRETCHES;
    let start = |place: u32| u64::from(trials - length) * u64::from(place) / u64::from(STRETCHES - 1);
    let starts = (0..STRETCHES).map(|place| u32::try_from(start(place)).unwrap_or(trials));
    starts.map(|start| start..start.saturating_add(length).min(trials)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use spotsweep_protocol::claim::Outputs;
    use spotsweep_protocol::ids::JobId;
    use spotsweep_records::trial::{End, JobStatus};

    use super::*;

    #[test]
    fn the_same_code_is_the_same_command_code_and_job_definition() {
        let file = |settings: &str| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}]\n");
            spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap()
        };
        let plan = json!({
            "trials": 1, "queue": "q", "definition": "train:7", "attempts": 9, "parts": [],
            "command": ["python", "a.py"], "code": { "git": "ssh://old@host/a.git", "ref": "v1" },
        });
        let plan: Plan = serde_json::from_value(plan).unwrap();
        let same = "command: [python, a.py], code: {git: 'ssh://new@host/a.git', ref: v1}";
        for (settings, definition, expected) in [
            (same, "train", true),
            (same, "train:7", true),
            (same, "arn:aws:batch:us-east-1:123456789012:job-definition/train", true),
            (same, "train:8", false),
            (same, "other", false),
            ("command: [python, b.py], code: {git: 'ssh://new@host/a.git', ref: v1}", "train", false),
            ("command: [python, a.py], code: {git: 'ssh://new@host/a.git', ref: v2}", "train", false),
            ("command: [python, a.py]", "train", false),
        ] {
            assert_eq!(is_same_code(&plan, &file(settings), definition), expected, "{settings} {definition}");
        }
        let of_image = |image: Option<&str>| Plan {
            image: image.map(str::to_owned),
            definition: "arn:aws:batch:us-east-1:123456789012:job-definition/train-image-0a1b:1".into(),
            command: Some(["/opt/spotsweep/spotsweep-runner", "--", "python", "a.py"].map(str::to_owned).into()),
            ..plan.clone()
        };
        for (ran, wanted, definition, expected) in [
            (Some("a:1"), ", image: 'a:1'", "train", true),
            (Some("a:1"), ", image: 'a:1'", "train:7", true),
            (Some("a:1"), ", image: 'a:2'", "train", false),
            (Some("a:1"), "", "train", false),
            (Some("a:1"), ", image: 'a:1'", "other", false),
            (None, "", "train", false),
        ] {
            let found = is_same_code(&of_image(ran), &file(&format!("{same}{wanted}")), definition);
            assert_eq!(found, expected, "{ran:?} {wanted} {definition}");
        }
        let own = Plan { command: None, preparation: None, ..plan };
        assert!(is_same_code(&own, &file("attempts: 3"), "train"), "both run the image's own command");
    }

    #[test]
    fn hours_are_those_of_trials_that_have_succeeded() {
        let sweep = SweepId::derive("b", "sweeps/digits.yaml", "v");
        let at = |second: i64| Some(jiff::Timestamp::from_second(second).unwrap());
        // A trial with its state, the seconds of its attempts, and the bytes that it left.
        let trial = |index, status, attempts: &[i64], bytes| {
            let mut trial = Trial::new(sweep.clone(), index, JobId::from(format!("j:{index}")));
            trial.status = status;
            for (number, seconds) in (1..).zip(attempts) {
                let attempt = trial.attempt(number);
                (attempt.started_at, attempt.stopped_at) = (at(1_000), at(1_000 + seconds));
                attempt.exit_code = Some(if usize::try_from(number) == Ok(attempts.len()) { 0 } else { 75 });
            }
            let outputs = Outputs { bytes, ..Outputs::default() };
            trial.end = Some(End { attempt: 1, exit_code: 0, outputs, seconds: 1.0, error: None });
            trial
        };
        let trials = [
            trial(0, JobStatus::Succeeded, &[3600], 1 << 30),
            trial(1, JobStatus::Succeeded, &[3600, 7200], 3 << 30),
            trial(2, JobStatus::Failed, &[90_000], 0),
            trial(3, JobStatus::Running, &[], 0),
        ];
        let found = LastSweep::of(&sweep, &trials, true).unwrap();
        assert_eq!((found.mean_hours, found.mean_bytes), (2.0, Some(f64::from(1 << 30) * 2.0)));
        let words = format!(
            "2.0 h, the mean of 2 succeeded trials of sweep {sweep}, which has the same command, code and job definition \
             (1.0 h to 3.0 h; 1 of them was interrupted, and repeated a part)"
        );
        assert_eq!(found.described(), words);
        assert_eq!(LastSweep::of(&sweep, &trials, false).unwrap().mean_bytes, None, "other files are collected now");
        assert_eq!(LastSweep::of(&sweep, &trials[2..], true), None);
    }

    #[test]
    fn a_bounded_number_of_trials_is_read() {
        for (trials, read) in [(24, 24), (1_000, 1_000), (1_001, 1_000), (100_000, 1_000)] {
            let ranges = stretches(trials);
            assert_eq!(ranges.iter().map(ExactSizeIterator::len).sum::<usize>(), read, "{ranges:?}");
            assert_eq!(ranges.first().map(|range| range.start), Some(0));
            assert_eq!(ranges.last().map(|range| range.end), Some(trials));
        }
    }
}
