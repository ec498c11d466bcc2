//! The environment of a trial: the variables that `sweep-upload` and AWS Batch set.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid};
use spotsweep_attempt::Terms;
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_protocol::silence::REPORT_WITHIN;

use crate::user::{User, accounts};
use spotsweep_protocol::claim::{DATA_CACHE, GPUS_VARIABLE};

/// Seconds from SIGTERM to the kill by ECS, by default (`ECS_CONTAINER_STOP_TIMEOUT`).
const STOP_SECONDS: f64 = 30.0;
const TIMEOUT: &str = "SPOTSWEEP_TIMEOUT_SECONDS";

/// The runner's settings from outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// The sweep's id.
    pub(crate) sweep: String,
    /// The trial's index within the sweep.
    pub(crate) index: u32,
    /// The Batch job id, `<parent>:<array index>` for a child of an array job.
    pub(crate) job: String,
    /// The attempt's number, from 1: Batch's own count, plus the attempts of earlier jobs of the same trial
    /// (`SPOTSWEEP_FIRST_ATTEMPT`; Batch counts to ten at most).
    pub(crate) attempt: u32,
    /// Name of the `trial-claim` function.
    pub(crate) claim_function: String,
    /// The sweep's claim token ([`TOKEN_VARIABLE`]).
    pub(crate) token: Option<Secret>,
    /// The folder of `storage/` and `dltraining/`.
    pub(crate) root: PathBuf,
    /// `SPOTSWEEP_DEV`: the folder of attached volumes: `/dev`, or where the job mounts the host's.
    pub(crate) devices: PathBuf,
    /// `SPOTSWEEP_CACHE`: where the job mounts the instance's cache of packages.
    pub(crate) cache: Option<PathBuf>,
    /// `SPOTSWEEP_DATA`: where the job mounts the instance's cache of data sets.
    pub(crate) data: Option<PathBuf>,
    /// `SPOTSWEEP_GPUS`: how many GPUs the job asks for.
    pub(crate) gpus: usize,
    /// `SPOTSWEEP_USER`: the user that the command runs as. If absent, the command runs as the container's user.
    pub(crate) user: Option<User>,
    /// Shortest time between two metric reports.
    pub(crate) report_every: Duration,
    /// `SPOTSWEEP_REPORT_WITHIN_SECONDS`: longest time between two reports.
    pub(crate) report_within: Duration,
    /// Time between two scans of the output folder.
    pub(crate) upload_every: Duration,
    /// `SPOTSWEEP_SEAL_SECONDS`: time between two seals while the command runs.
    pub(crate) seal_every: Duration,
    /// `SPOTSWEEP_IMDS_POLL_SECONDS`: time between two queries for a notice (fact 32).
    pub(crate) notice_every: Duration,
    /// `SPOTSWEEP_STOP_SIGNAL`, `SPOTSWEEP_GRACE_SECONDS`, `SPOTSWEEP_STOP_SECONDS`, `SPOTSWEEP_TIMEOUT_SECONDS`.
    pub(crate) terms: Terms,
    /// When the runner started.
    pub(crate) started: Instant,
    /// How long a claim or an end is retried.
    pub(crate) patience: Duration,
    /// `SPOTSWEEP_WORKSPACE_SECONDS`: the total time that the attempt waits for its workspace.
    pub(crate) workspace_limit: Duration,
}

/// All problems of the environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigError(Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for ConfigError {}

/// Reads variables and collects the problems.
struct Reader<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

/// What sets a variable, for messages.
const BY_UPLOAD: &str = "sweep-upload sets it when it submits the job";
const BY_BATCH: &str = "AWS Batch sets it in every container";

impl Reader<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.read)(name).filter(|value| !value.is_empty())
    }

    fn required(&mut self, name: &str, origin: &str) -> String {
        self.get(name).unwrap_or_else(|| {
            self.problems.push(format!("{name} is missing ({origin})"));
            String::new()
        })
    }

    fn number(&mut self, name: &str, value: &str) -> u32 {
        value.parse().unwrap_or_else(|_| {
            self.problems.push(format!("{name}={value} is not a whole number from 0 to {}", u32::MAX));
            0
        })
    }

    fn required_number(&mut self, name: &str, origin: &str) -> u32 {
        let problems_before = self.problems.len();
        let value = self.required(name, origin);
        if self.problems.len() > problems_before { 0 } else { self.number(name, &value) }
    }

    fn token(&mut self) -> Option<Secret> {
        let text = Some(self.required(TOKEN_VARIABLE, BY_UPLOAD)).filter(|text| !text.is_empty())?;
        Secret::try_from(text).map_err(|problem| self.problems.push(format!("{TOKEN_VARIABLE}: {problem}"))).ok()
    }

    fn stop_signal(&mut self) -> Signal {
        let Some(value) = self.get("SPOTSWEEP_STOP_SIGNAL") else {
            return Signal::TERM;
        };
        signal(&value).unwrap_or_else(|| {
            self.problems.push(format!(
                "SPOTSWEEP_STOP_SIGNAL={value} is no signal that asks for an end; give TERM, INT, HUP, QUIT, USR1, \
                 USR2 or the number of one of them"
            ));
            Signal::TERM
        })
    }

    fn gpus(&mut self) -> usize {
        let given = self.get(GPUS_VARIABLE).map_or(0, |value| self.number(GPUS_VARIABLE, &value));
        usize::try_from(given).unwrap_or(usize::MAX)
    }

    fn user(&mut self) -> Option<User> {
        let value = self.get("SPOTSWEEP_USER")?;
        if !geteuid().is_root() {
            self.problems.push(format!("SPOTSWEEP_USER={value} needs a container that starts as root; leave it out"));
        }
        User::find(&value, &accounts("/etc/passwd"), &accounts("/etc/group"))
            .map_err(|problem| self.problems.push(format!("SPOTSWEEP_USER={value}: {problem}")))
            .ok()
    }

    fn seconds(&mut self, name: &str, default: f64) -> Duration {
        let Some(value) = self.get(name) else {
            return Duration::from_secs_f64(default);
        };
        let parsed = value.parse::<f64>().ok().filter(|&seconds| (0.01..=86_400.0).contains(&seconds));
        parsed.map(Duration::from_secs_f64).unwrap_or_else(|| {
            self.problems.push(format!("{name}={value} is not a number of seconds from 0.01 to 86400"));
            Duration::ZERO
        })
    }
}

/// Signals that ask a process to end, by their names without `SIG`.
const SIGNALS: [(&str, Signal); 6] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("HUP", Signal::HUP),
    ("QUIT", Signal::QUIT),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

/// The signal with this name (with or without `SIG`) or number.
fn signal(text: &str) -> Option<Signal> {
    let name = text.strip_prefix("SIG").unwrap_or(text);
    SIGNALS
        .into_iter()
        .find_map(|(known, signal)| (known == name || signal.as_raw().to_string() == text).then_some(signal))
}

/// A name such as `SIGTERM`, or the number of a signal that is not in `SIGNALS`.
pub(crate) fn signal_name(signal: Signal) -> String {
    let name = SIGNALS.into_iter().find(|(_, known)| *known == signal).map(|(name, _)| name);
    name.map_or_else(|| format!("signal {}", signal.as_raw()), |name| format!("SIG{name}"))
}

impl Config {
    /// Reads the variables. `None` without `SPOTSWEEP_SWEEP`: the container was started by hand.
    pub(crate) fn read(read: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, ConfigError> {
        let mut reader = Reader { read, problems: Vec::new() };
        let Some(sweep) = reader.get("SPOTSWEEP_SWEEP") else {
            return Ok(None);
        };
        let first_index = reader.required_number("SPOTSWEEP_FIRST_INDEX", BY_UPLOAD);
        // Absent for a job that is not an array job.
        let array_index = reader
            .get("AWS_BATCH_JOB_ARRAY_INDEX")
            .map_or(0, |value| reader.number("AWS_BATCH_JOB_ARRAY_INDEX", &value));
        let index = first_index.checked_add(array_index).unwrap_or_else(|| {
            reader.problems.push(format!("trial index {first_index} + {array_index} is out of range"));
            0
        });
        let batch_attempt = reader.required_number("AWS_BATCH_JOB_ATTEMPT", BY_BATCH);
        let first_attempt =
            reader.get("SPOTSWEEP_FIRST_ATTEMPT").map_or(0, |value| reader.number("SPOTSWEEP_FIRST_ATTEMPT", &value));
        let config = Self {
            sweep,
            index,
            job: reader.required("AWS_BATCH_JOB_ID", BY_BATCH),
            attempt: first_attempt.saturating_add(batch_attempt),
            claim_function: reader.required("SPOTSWEEP_CLAIM_FUNCTION", BY_UPLOAD),
            token: reader.token(),
            root: reader.get("SPOTSWEEP_ROOT").unwrap_or_else(|| "/".to_owned()).into(),
            devices: reader.get("SPOTSWEEP_DEV").unwrap_or_else(|| "/dev".to_owned()).into(),
            cache: reader.get("SPOTSWEEP_CACHE").map(PathBuf::from),
            data: reader.get(DATA_CACHE).map(PathBuf::from),
            gpus: reader.gpus(),
            user: reader.user(),
            report_every: reader.seconds("SPOTSWEEP_REPORT_SECONDS", 15.0),
            report_within: reader.seconds("SPOTSWEEP_REPORT_WITHIN_SECONDS", REPORT_WITHIN.as_secs_f64()),
            upload_every: reader.seconds("SPOTSWEEP_UPLOAD_SECONDS", 60.0),
            seal_every: reader.seconds("SPOTSWEEP_SEAL_SECONDS", 30.0),
            notice_every: reader.seconds("SPOTSWEEP_IMDS_POLL_SECONDS", 5.0),
            terms: Terms {
                signal: reader.stop_signal(),
                grace: reader.get("SPOTSWEEP_GRACE_SECONDS").map(|_| reader.seconds("SPOTSWEEP_GRACE_SECONDS", 0.0)),
                stop_after: reader.seconds("SPOTSWEEP_STOP_SECONDS", STOP_SECONDS),
                timeout: reader.get(TIMEOUT).map(|_| reader.seconds(TIMEOUT, 0.0)),
            },
            started: Instant::now(),
            patience: reader.seconds("SPOTSWEEP_PATIENCE_SECONDS", 300.0),
            workspace_limit: reader.seconds("SPOTSWEEP_WORKSPACE_SECONDS", 1800.0),
        };
        if reader.problems.is_empty() { Ok(Some(config)) } else { Err(ConfigError(reader.problems)) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Config>, ConfigError> {
        Config::read(&|name| variables.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    const WHOLE: [(&str, &str); 6] = [
        ("SPOTSWEEP_SWEEP", "digits-1a2b"),
        ("SPOTSWEEP_FIRST_INDEX", "10000"),
        ("SPOTSWEEP_CLAIM_FUNCTION", "trial-claim"),
        ("SPOTSWEEP_CLAIM_TOKEN", "00112233445566778899aabbccddeeff"),
        ("AWS_BATCH_JOB_ID", "0f:7"),
        ("AWS_BATCH_JOB_ATTEMPT", "2"),
    ];

    #[test]
    fn the_index_counts_through_all_parts_of_a_sweep() {
        let single = read(&WHOLE).unwrap().unwrap();
        assert_eq!((single.index, single.attempt), (10_000, 2));
        assert_eq!(single.root, PathBuf::from("/"));
        assert_eq!(single.report_every, Duration::from_secs(15));

        let mut child = WHOLE.to_vec();
        child.extend([("AWS_BATCH_JOB_ARRAY_INDEX", "7"), ("SPOTSWEEP_REPORT_SECONDS", "0.5")]);
        child.extend([("SPOTSWEEP_FIRST_ATTEMPT", "10"), ("SPOTSWEEP_STOP_SIGNAL", "SIGUSR1")]);
        let child = read(&child).unwrap().unwrap();
        assert_eq!((child.attempt, child.terms.signal), (12, Signal::USR1));
        assert_eq!(child.index, 10_007);
        assert_eq!(child.report_every, Duration::from_millis(500));
    }

    #[test]
    fn a_container_started_by_hand_is_no_trial() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("SPOTSWEEP_SWEEP", "")]), Ok(None));
    }

    #[test]
    fn every_problem_is_named_at_once_with_its_origin() {
        let message = read(&[
            ("SPOTSWEEP_SWEEP", "digits"),
            ("SPOTSWEEP_FIRST_INDEX", "-1"),
            ("SPOTSWEEP_CLAIM_TOKEN", "0011223344"),
            ("AWS_BATCH_JOB_ARRAY_INDEX", "x"),
            ("SPOTSWEEP_GRACE_SECONDS", "soon"),
            ("SPOTSWEEP_UPLOAD_SECONDS", "nan"),
            ("SPOTSWEEP_STOP_SIGNAL", "KILL"),
            ("SPOTSWEEP_USER", "no-such-user"),
        ])
        .unwrap_err()
        .to_string();
        assert!(!message.contains("0011223344"), "most of a token: {message}");
        for part in [
            "SPOTSWEEP_FIRST_INDEX=-1",
            "AWS_BATCH_JOB_ARRAY_INDEX=x",
            "AWS_BATCH_JOB_ID is missing (AWS Batch",
            "AWS_BATCH_JOB_ATTEMPT is missing",
            "SPOTSWEEP_CLAIM_FUNCTION is missing (sweep-upload",
            "SPOTSWEEP_CLAIM_TOKEN: a secret has 32 hex digits",
            "SPOTSWEEP_GRACE_SECONDS=soon",
            "SPOTSWEEP_UPLOAD_SECONDS=nan",
            "SPOTSWEEP_STOP_SIGNAL=KILL",
            "SPOTSWEEP_USER=no-such-user",
        ] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }
}
