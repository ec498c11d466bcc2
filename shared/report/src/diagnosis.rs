//! The cause of a trial's failure, with advice for the next step.
//!
//! Batch's reasons ([job errors](https://docs.aws.amazon.com/batch/latest/userguide/job_states.html), [ECS stopped-task
//! codes](https://docs.aws.amazon.com/AmazonECS/latest/developerguide/stopped-task-error-codes.html)) and the end of
//! the trial's log are compared with the table below. The first line that matches counts.

use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::{counted, duration};
use spotsweep_records::trial::{JobStatus, MAX_FALSE_STARTS, Reason, Trial};

/// Why a trial failed, as far as its end shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The cause in a few words, which replaces Batch's reason; absent where nothing better is known.
    pub cause: Option<String>,
    /// The next step to take.
    pub advice: Option<String>,
    /// The last lines of the log, oldest first.
    pub log_lines: Vec<String>,
}

/// The text in which a line of the table is searched.
#[derive(Clone, Copy)]
enum In {
    /// Batch's reason.
    Reason,
    /// The end of the log.
    Log,
    /// Batch's reason and the end of the log.
    Both,
}

/// The searched text, the strings of which one has to be in it, the cause, and the advice.
type Line = (In, &'static [&'static str], &'static str, &'static str);

const TABLE: [Line; 9] = [
    (
        In::Reason,
        &["OutOfMemoryError"],
        "out of memory: the container used more than it was given",
        "raise `resources: {memory: …}` in the sweep file, or load less at once: smaller batches, fewer workers",
    ),
    (
        In::Log,
        &[
            "CUDA out of memory",
            "OutOfMemoryError: CUDA",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "RESOURCE_EXHAUSTED: Out of memory",
        ],
        "the GPU is out of memory",
        "use smaller batches, mixed precision or gradient accumulation, or a queue with larger GPUs",
    ),
    (
        In::Reason,
        &["CannotPull"],
        "the image could not be pulled",
        "check the image's name and tag in the job definition, and that the instance role may read its repository",
    ),
    (
        In::Both,
        &[
            "No CUDA GPUs are available",
            "Found no NVIDIA driver",
            "no CUDA-capable device",
            "CUDA driver version is insufficient",
            "could not select device driver",
            "nvidia-container-cli",
        ],
        "no GPU is visible in the container",
        "ask for one (`resources: {gpus: 1}`, or in the job definition), use a GPU AMI, and a CUDA version that its driver knows",
    ),
    (
        In::Reason,
        &["JobStateTimeLimit", "MISCONFIGURATION"],
        "never placed: no instance of the queue can run it",
        "ask for less (vCPUs, memory, GPUs), or let the compute environment use larger types; `spotsweep doctor` looks",
    ),
    (
        In::Both,
        &["No space left on device"],
        "the disk is full",
        "raise `workspace: {size: …}`, or keep fewer checkpoints; outside of the workspace, the instances' root volume",
    ),
    (
        In::Log,
        &["ModuleNotFoundError", "ImportError"],
        "a Python package is missing in the image",
        "install it in the image that the job definition names",
    ),
    (
        In::Reason,
        &["CannotStartContainer", "CannotCreateContainer", "DockerTimeoutError", "ResourceInitializationError"],
        "the container could not be started",
        "Batch's words say why; most often the command, a mount or the instance's disk",
    ),
    (
        In::Reason,
        &["Task failed to start", "AGENT"],
        "the container could not be started",
        "Docker, the image's registry or the ECS agent refused it; the instance's own log says more",
    ),
];

const TOO_LONG: &str = "raise `timeout` in the sweep file, or train for fewer steps; `spotsweep retry --continue` goes on \
     from its last checkpoint";

const EARLY: &str = "delete `early_terminate` in the sweep file to train every trial to its end";

/// Returns why a trial failed, as all places that do not read its log say it.
pub fn why(trial: &Trial) -> String {
    diagnose(trial, Vec::new()).cause_of(trial)
}

/// Returns why a trial failed or was stopped early. For another trial it returns Batch's reason, if there is one.
pub fn reason(trial: &Trial) -> Option<String> {
    let of_batch = || trial.reason.as_ref().map(ToString::to_string);
    if trial.status == JobStatus::Failed || trial.stopped.is_some() { Some(why(trial)) } else { of_batch() }
}

/// Returns the diagnosis of a failed trial.
pub fn diagnose(trial: &Trial, log_lines: Vec<String>) -> Diagnosis {
    let found = |(cause, advice): (String, &str)| (Some(cause), Some(advice.to_owned()));
    let error = trial.end.as_ref().and_then(|end| end.error.as_deref());
    let (cause, advice) = stopped(trial)
        .or_else(|| timed_out(trial))
        .or_else(|| known(trial, &log_lines, error))
        .or_else(|| worn_out(trial))
        .or_else(|| never_started(trial))
        .or_else(|| exited(trial, &log_lines, error))
        .map_or((None, None), found);
    Diagnosis { cause, advice, log_lines }
}

impl Diagnosis {
    /// Returns the cause, or else the exit code, or else Batch's reason. Batch's reason comes last, because for a
    /// failed command it says only that the container has ended.
    pub fn cause_of(&self, trial: &Trial) -> String {
        let last = trial.attempts.values().next_back();
        let exit_code = last.and_then(|attempt| attempt.exit_code).filter(|code| *code != 0);
        let reason =
            last.and_then(|attempt| attempt.reason.as_ref()).or(trial.reason.as_ref()).map(ToString::to_string);
        let by_code = || exit_code.map(|code| format!("exit code {code}"));
        let by_batch = || reason.filter(|reason| !reason.is_empty());
        self.cause.clone().or_else(by_code).or_else(by_batch).unwrap_or_else(|| "no reason was given".to_owned())
    }
}

/// Returns the cause if an attempt ran for longer than the job's timeout.
fn timed_out(trial: &Trial) -> Option<(String, &'static str)> {
    let last = trial.attempts.values().next_back().filter(|last| last.has_timed_out())?;
    let by_runner = trial.end.as_ref().filter(|end| trial.attempts.keys().next_back() == Some(&end.attempt));
    if let Some(error) = by_runner.and_then(|end| end.error.clone()) {
        return Some((error, TOO_LONG));
    }
    let time = last.started_at.zip(last.stopped_at).map(|(from, to)| to.duration_since(from).as_secs_f64());
    let cause = time.map_or_else(|| "timed out".to_owned(), |seconds| format!("timed out after {}", duration(seconds)));
    Some((cause, TOO_LONG))
}

/// Returns the cause if spotsweep itself stopped the trial.
fn stopped(trial: &Trial) -> Option<(String, &'static str)> {
    if let Some(stop) = &trial.stopped {
        return Some((stop.to_string(), EARLY));
    }
    let last = trial.attempts.values().next_back().and_then(|attempt| attempt.reason.as_ref());
    let reason = last.and_then(Reason::stopped).or_else(|| trial.reason.as_ref()?.stopped())?;
    let (cause, advice) = match reason {
        StopReason::Budget { .. } => {
            ("stopped: the sweep's budget was reached", "raise `budget` in the sweep file and run `spotsweep retry`")
        }
        StopReason::FailingFast { .. } => (
            "not started: the sweep's first trials failed at once",
            "fix what they failed of and run `spotsweep retry`, or let all trials start with `fail_fast: off`",
        ),
        StopReason::TimedOut { .. } => ("", TOO_LONG),
        StopReason::StoppedEarly { .. } => ("", EARLY),
        StopReason::Target { .. } => ("", "raise `metric: {target: …}` to go on"),
        StopReason::Cancelled { .. } => ("", "`spotsweep retry --cancelled` runs it again"),
        StopReason::Stalled { .. } => (
            "",
            "look for what it waits for: its log ends with a stack dump, where the script registers `faulthandler` for \
             SIGUSR1; raise `stalled` if it only computes for so long; `spotsweep retry --continue` goes on from its \
             checkpoint",
        ),
        StopReason::UnfitInstance { .. } => {
            ("", "look at the image of the instances: driver, container toolkit and free space on the root disk")
        }
        StopReason::Workspace { .. } => (
            "",
            "fix what EC2 names (a permission of the control plane's roles, the KMS key, or the snapshot that \
             `workspace` names), and run `spotsweep retry`",
        ),
        StopReason::JobLost => (
            "lost: Batch had deleted the job before its end was recorded",
            "look into the log group; `spotsweep retry` runs it again",
        ),
        StopReason::Resubmission { .. } => {
            ("Batch refused to start it again", "fix what the reason names, and run `spotsweep retry`")
        }
        // The end of another attempt, or Batch's reason of a failed start, says more than these.
        StopReason::NeverStarts { .. }
        | StopReason::Fenced { .. }
        | StopReason::AttemptEnded { .. }
        | StopReason::NotClaimed { .. }
        | StopReason::OtherRunner { .. }
        | StopReason::NoSecret
        | StopReason::Unproven
        | StopReason::TrialEnded
        | StopReason::NotFound { .. }
        | StopReason::Withdrawn
        | StopReason::Other => return None,
    };
    Some((if cause.is_empty() { reason.to_string() } else { cause.to_owned() }, advice))
}

/// Returns the cause from the table.
fn known(trial: &Trial, log: &[String], error: Option<&str>) -> Option<(String, &'static str)> {
    let last = trial.attempts.values().next_back().and_then(|attempt| attempt.reason.as_ref());
    let reasons = [last, trial.reason.as_ref()].map(|reason| reason.map(Reason::of_batch));
    let in_reason = |text: &&str| reasons.iter().flatten().any(|reason| reason.contains(*text));
    let in_log = |text: &&str| log.iter().map(String::as_str).chain(error).any(|line| line.contains(*text));
    let (_, _, cause, advice) = TABLE.iter().find(|(place, texts, _, _)| match place {
        In::Reason => texts.iter().any(in_reason),
        In::Log => texts.iter().any(in_log),
        In::Both => texts.iter().any(|text| in_reason(text) || in_log(text)),
    })?;
    let starts = trial.false_starts();
    let times = if starts > 1 { format!(", {starts} times in a row") } else { String::new() };
    Some((format!("{cause}{times}"), advice))
}

/// Returns the cause if the container never started and Batch gives no known reason.
fn never_started(trial: &Trial) -> Option<(String, &'static str)> {
    let starts = trial.false_starts();
    (starts >= MAX_FALSE_STARTS).then(|| {
        let cause = format!("the container could not be started, {starts} times in a row");
        (cause, "look at the instances in ECS: the agent, Docker, and the image's registry")
    })
}

/// Returns the cause if the last attempt was interrupted. A trial fails with an interruption only when no attempt is
/// left.
fn worn_out(trial: &Trial) -> Option<(String, &'static str)> {
    let tried = trial.tried();
    trial.was_interrupted(trial.ended).then(|| {
        let cause = format!("interrupted {}, as often as `attempts` allows", counted(tried, "time"));
        (cause, "raise `attempts`, or give the queue more instance types and zones")
    })
}

/// Returns the cause from the exit code, with the error that the runner found in the output. Without one, it uses the
/// log's last line, because a Python traceback ends with its exception.
fn exited(trial: &Trial, log: &[String], error: Option<&str>) -> Option<(String, &'static str)> {
    let code = trial.attempts.values().next_back()?.exit_code.filter(|code| *code != 0)?;
    let last_line = || log.iter().rev().map(|line| line.trim()).find(|line| !line.is_empty());
    let word = error.or_else(last_line);
    let detail = word.map(|word| format!(": {word}")).unwrap_or_default();
    Some(match code {
        126 | 127 => (
            format!("the command was not found (exit code {code}){detail}"),
            "check `command`, and that the image has it",
        ),
        137 => (
            format!("killed (exit code 137){detail}"),
            "most often for memory: raise `resources: {memory: …}`, or load less at once",
        ),
        _ => (format!("exit code {code}{detail}"), "its log says more: `spotsweep logs SWEEP INDEX`"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use spotsweep_protocol::claim::Outputs;
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_records::trial::{End, INTERRUPTED_EXIT_CODE, JobStatus};

    fn failed(exit_code: Option<i32>, reason: &str) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("job:0".to_owned()));
        (trial.status, trial.ended) = (JobStatus::Failed, 1);
        let attempt = trial.attempt(1);
        attempt.exit_code = exit_code;
        attempt.reason = (!reason.is_empty()).then(|| reason.into());
        trial
    }

    /// Each case has the exit code, Batch's reason, the log's last lines, and a part of the expected cause.
    #[test]
    fn each_kind_of_end_has_its_own_words() {
        let usual = "Essential container in task exited";
        let ends = [
            (Some(137), "OutOfMemoryError: Container killed due to memory usage", "epoch 3", "more than it was given"),
            (Some(1), usual, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "GPU is out of"),
            (None, "CannotPullContainerError: pull image manifest has been retried", "", "image could not be pulled"),
            (None, "CannotStartContainerError: … could not select device driver \"nvidia\"", "", "no GPU is visible"),
            (None, "Task failed to start", "", "container could not be started"),
            (Some(1), usual, "RuntimeError: No CUDA GPUs are available", "no GPU is visible"),
            (Some(137), "Job attempt duration exceeded timeout", "epoch 9", "timed out"),
            (Some(INTERRUPTED_EXIT_CODE), "Job attempt duration exceeded timeout", "", "timed out"),
            (Some(1), usual, "OSError: [Errno 28] No space left on device", "disk is full"),
            (Some(1), usual, "ModuleNotFoundError: No module named 'timm'", "package is missing"),
            (Some(127), usual, "sh: 1: pyhton: not found", "command was not found"),
            (Some(INTERRUPTED_EXIT_CODE), usual, "", "interrupted 1 time,"),
            (None, "Host EC2 (instance i-1) terminated.", "", "interrupted 1 time,"),
            (Some(3), usual, "ValueError: lr must be positive\n\n", "exit code 3: ValueError: lr must be positive"),
            (None, "spotsweep: cancelled by jo", "", "cancelled by jo"),
            (None, "spotsweep: budget reached: 5 USD", "", "budget was reached"),
        ];
        for (code, reason, log, wanted) in ends {
            let lines = log.lines().map(str::to_owned).collect();
            let diagnosis = diagnose(&failed(code, reason), lines);
            let cause = diagnosis.cause.unwrap_or_default();
            assert!(cause.contains(wanted), "{reason} {log}: {cause}");
            assert!(diagnosis.advice.is_some_and(|advice| !advice.is_empty()), "{cause} without a next step");
        }
        assert_eq!(diagnose(&failed(None, ""), vec![]), Diagnosis::default(), "no end, no cause");

        let mut trial = failed(Some(1), usual);
        assert_eq!(why(&trial), "exit code 1");
        let error = Some("ZeroDivisionError: division by zero".to_owned());
        trial.end = Some(End { attempt: 1, exit_code: 1, outputs: Outputs::default(), seconds: 1.0, error });
        assert_eq!(why(&trial), "exit code 1: ZeroDivisionError: division by zero");
        let with_log = diagnose(&trial, vec!["ZeroDivisionError: division by zero".to_owned(), "bye".to_owned()]);
        assert_eq!(with_log.cause_of(&trial), why(&trial), "with the log and without");
    }
}
