//! What can be seen of a running sweep: where each trial's attempts run, and what they print. It is read from the
//! emulator and the jobs' logs. The control plane is not asked, because the demo is to prove that it is right.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::log::AttemptLog;

/// One container run of a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// Id of the instance on which the container runs.
    pub instance: String,
    /// Zone of that instance.
    pub zone: String,
    /// What the attempt has printed so far.
    pub log: AttemptLog,
    /// CloudWatch log stream, which identifies the run.
    stream: String,
}

/// A live instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Its id, `i-…`.
    pub id: String,
    /// Zone of the instance.
    pub zone: String,
    /// Whether the instance is under notice.
    pub is_leaving: bool,
    /// Trials whose newest run is on the instance.
    pub trials: Vec<u32>,
}

/// The sweep's trials, runs and instances at the last look.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    logs: PathBuf,
    /// Trials by their job ids. A trial has a second job when Batch's attempts are used up.
    trials: HashMap<String, u32>,
    /// Each trial's runs so far, oldest first.
    pub runs: BTreeMap<u32, Vec<Run>>,
    /// Live instances, ordered by id.
    pub instances: Vec<Instance>,
    /// Number of live instances in each zone.
    pub live: BTreeMap<String, u32>,
}

impl RunState {
    /// Makes an empty state. `logs` is the folder of the jobs' log streams.
    pub(crate) fn new(logs: &Path) -> Self {
        Self { logs: logs.to_owned(), ..Self::default() }
    }

    /// Adds a job of a trial.
    pub(crate) fn knows(&mut self, job: String, trial: u32) {
        self.trials.insert(job, trial);
    }

    /// Ids of the jobs that run on live instances, from the emulator's state.
    pub(crate) fn jobs(state: &Value) -> Vec<String> {
        let jobs = live(state).flat_map(|instance| texts(instance, "jobs"));
        jobs.map(str::to_owned).collect()
    }

    /// Updates the state from the emulator's state, the description of the running jobs, and what they have printed.
    pub(crate) fn look(&mut self, state: &Value, jobs: &Value, now: f64) {
        self.instances.clear();
        self.live.clear();
        for instance in live(state) {
            let (id, zone) = (text(instance, "id").to_owned(), text(instance, "zone").to_owned());
            let is_leaving = instance.get("interruption").is_some_and(|at| !at.is_null());
            *self.live.entry(zone.clone()).or_default() += 1;
            let hosted: Vec<(u32, &str)> =
                texts(instance, "jobs").filter_map(|job| Some((*self.trials.get(job)?, job))).collect();
            for (trial, job) in &hosted {
                if let Some(stream) = stream_of(jobs, job) {
                    self.started(*trial, stream, &id, &zone);
                }
            }
            let trials = hosted.iter().map(|(trial, _)| *trial).filter(|trial| self.newest_is_on(*trial, &id));
            let trials = trials.collect();
            self.instances.push(Instance { id, zone, is_leaving, trials });
        }
        self.read(now);
    }

    /// The runs so far of each trial on an instance.
    pub(crate) fn runs_on<'a>(&'a self, instance: &'a Instance) -> impl Iterator<Item = &'a [Run]> {
        instance.trials.iter().map(|trial| self.runs.get(trial).map(Vec::as_slice).unwrap_or_default())
    }

    fn started(&mut self, trial: u32, stream: &str, instance: &str, zone: &str) {
        let runs = self.runs.entry(trial).or_default();
        if runs.last().is_none_or(|run| run.stream != stream) {
            runs.push(Run {
                instance: instance.to_owned(),
                zone: zone.to_owned(),
                log: AttemptLog::default(),
                stream: stream.to_owned(),
            });
        }
    }

    fn newest_is_on(&self, trial: u32, instance: &str) -> bool {
        self.runs.get(&trial).and_then(|runs| runs.last()).is_some_and(|run| run.instance == instance)
    }

    /// Reads what was added to the newest two logs of each trial. The second newest may still get its last lines.
    fn read(&mut self, now: f64) {
        for runs in self.runs.values_mut() {
            for run in runs.iter_mut().rev().take(2) {
                run.log.follow(&self.logs.join(&run.stream), now);
            }
        }
    }
}

fn live(state: &Value) -> impl Iterator<Item = &Value> {
    let instances = state.get("instances").and_then(Value::as_array).into_iter().flatten();
    instances.filter(|instance| matches!(text(instance, "state"), "pending" | "running"))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    value.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The log stream of a job's newest attempt, once its container was placed.
fn stream_of<'a>(jobs: &'a Value, id: &str) -> Option<&'a str> {
    let all = jobs.get("jobs").and_then(Value::as_array)?;
    let job = all.iter().find(|job| text(job, "jobId") == id)?;
    job.pointer("/container/logStreamName").and_then(Value::as_str).filter(|stream| !stream.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Instance, zone, trial, and what the trial has printed, one line a second.
    type Seen<'a> = (&'a str, &'a str, u32, &'a str);

    /// A state with one run for each trial.
    pub(in super::super) fn run_state(seen: &[Seen<'_>]) -> RunState {
        elsewhere(RunState::new(Path::new("/nowhere")), seen)
    }

    /// The same sweep later: the trials have new runs on other instances.
    pub(in super::super) fn elsewhere(mut run_state: RunState, seen: &[Seen<'_>]) -> RunState {
        let instances: Vec<Value> = seen
            .iter()
            .map(|(id, zone, trial, _)| json!({ "id": id, "zone": zone, "state": "running", "jobs": [format!("job:{trial}")] }))
            .collect();
        let jobs: Vec<Value> = seen
            .iter()
            .map(|(id, _, trial, _)| json!({ "jobId": format!("job:{trial}"), "container": { "logStreamName": id } }))
            .collect();
        seen.iter().for_each(|(_, _, trial, _)| run_state.knows(format!("job:{trial}"), *trial));
        run_state.look(&json!({ "instances": instances }), &json!({ "jobs": jobs }), 0.0);
        for (_, _, trial, text) in seen {
            for (second, line) in (1..).zip(text.split_inclusive('\n')) {
                run_state = printed(run_state, *trial, line, f64::from(second));
            }
        }
        run_state
    }

    /// Adds output to a trial's newest run.
    pub(in super::super) fn printed(mut run_state: RunState, trial: u32, text: &str, at: f64) -> RunState {
        if let Some(run) = run_state.runs.get_mut(&trial).and_then(|runs| runs.last_mut()) {
            run.log.take(text.as_bytes(), at);
        }
        run_state
    }

    #[test]
    fn a_trial_is_where_its_newest_run_is() {
        let first = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n"), ("i-2", "b", 1, "")]);
        assert_eq!(first.instances[0].trials, [0]);
        let second = elsewhere(first, &[("i-2", "b", 1, ""), ("i-3", "c", 0, "")]);
        let zones: Vec<&str> = second.runs[&0].iter().map(|run| run.zone.as_str()).collect();
        assert_eq!((zones, second.runs[&1].len()), (vec!["a", "c"], 1));
        assert!(second.instances.iter().all(|instance| !instance.is_leaving && instance.trials.len() == 1));
        let dying = json!({ "instances": [{ "id": "i-9", "zone": "a", "state": "shutting-down", "jobs": ["job:0"] }] });
        assert!(RunState::jobs(&dying).is_empty());
    }
}
