//! `spotsweep acceptance`: runs four trials of its own on a real account, interrupts two of their instances, and compares
//! what happens with what this product assumes of AWS.

mod access;
mod chaos;
mod checks;
mod course;
mod estimate;
mod full;
mod injection;
mod mask;
mod meter;
mod own;
mod page;
mod preflight;
mod recording;
mod remove;
mod subject;
mod sweep;
mod written;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::checks::{Verdict, judge};
use self::page::About;
use self::subject::Subject;
use crate::signals::unless_stopped;
use crate::target;
use spotsweep_protocol::failure::{FAILED, Failure};

/// `spotsweep acceptance`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs a sweep of four trials of thirteen minutes on CPUs, has FIS interrupt one of its instances, terminates another one, \
and judges what happens. Before that it looks at the deployment as `doctor` does, at FIS and at the quota of Spot vCPUs. \
Another sweep must not be open meanwhile. It makes the CloudFormation stack STACK-acceptance (infra/chaos.yaml), and \
deletes that and its objects at the end, also after Ctrl-C.

Into DIR go acceptance.md, acceptance.json, and in events/ one event of each kind, as in tests/events. Account ids, names \
in ARNs, resource ids, addresses, commands and variables are masked in all of them.

With --recorded, only the events of a recording are judged, and AWS is not called.

Examples:
  spotsweep acceptance --stack spotsweep
  spotsweep acceptance --stack spotsweep --queue my-cpu-queue --job-definition my-cpu-trial --max-usd 1
  spotsweep acceptance --stack spotsweep --queue my-two-gpu-queue --gpus --max-usd 10
  spotsweep acceptance --recorded recording.json --output acceptance

Exit codes: 0 every assumption held; of a recording, none was contradicted and one was seen. 1 one did not hold or was \
not seen. 2 wrong usage, unreadable recording, or an expected cost above --max-usd.")]
pub(crate) struct Acceptance {
    /// The deployment's CloudFormation stack; without it the local stack is used where one is running
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK")]
    stack: Option<String>,
    /// Do not start a run that is expected to cost more, and end its jobs before they do
    #[arg(long, value_name = "USD", default_value_t = 2.0, value_parser = usd)]
    max_usd: f64,
    /// Queue of the trials [default: the deployment's]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Job definition of the trials, with a POSIX shell and the runner in its image [default: the deployment's]
    #[arg(long, value_name = "NAME")]
    job_definition: Option<String>,
    /// Have each trial ask for a GPU, and check that two trials on one instance have one each: for a queue whose instances
    /// have several
    #[arg(long)]
    gpus: bool,
    /// Judge what `aws logs filter-log-events --output json` printed for a recording log group instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["max_usd", "queue", "job_definition", "gpus"])]
    recorded: Option<PathBuf>,
    /// Where the page, the document and the masked events go
    #[arg(long, value_name = "DIR", default_value = "acceptance")]
    output: PathBuf,
}

/// Parses a positive amount in USD.
fn usd(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
    amount.ok_or_else(|| "give an amount above zero, such as 2 or 0.5".to_owned())
}

/// Runs the command. The exit code is 1 if an assumption did not hold, or nothing could be judged.
pub(super) async fn run(args: Acceptance) -> Result<ExitCode, Failure> {
    match &args.recorded {
        Some(recorded) => of_recording(recorded, &args.output),
        None => {
            let find = async {
                Subject::find(target::stack(args.stack).await?, args.queue, args.job_definition, args.gpus).await
            };
            full::run(&unless_stopped(find).await?, args.max_usd, &args.output).await
        }
    }
}

fn of_recording(recorded: &Path, output: &Path) -> Result<ExitCode, Failure> {
    let unreadable = || format!("cannot read the recording {}", recorded.display());
    let text = fs::read(recorded).map_err(|error| Failure::usage(unreadable()).caused_by(error))?;
    let recording =
        recording::read(&text).map_err(|problem| Failure::usage(format!("{}: {problem}", recorded.display())))?;
    let checks = judge(&recording);
    written::write(output, &checks, &recording, &About::recording())?;
    let is_contradicted = checks.iter().any(|check| check.verdict == Verdict::DidNotHold);
    let is_judged = checks.iter().any(|check| check.verdict != Verdict::NotSeen);
    Ok(if is_judged && !is_contradicted { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};
    use spotsweep_control_plane::event;

    use super::*;

    /// Judges these events. Returns the exit code and the output folder.
    fn accept(events: &[Value]) -> (ExitCode, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let recorded = folder.path().join("recording.json");
        let line = |event: &Value| json!({ "message": event.to_string(), "ingestionTime": 1_795_262_401_500_i64 });
        let page = json!({ "events": events.iter().map(line).collect::<Vec<_>>(), "searchedLogStreams": [] });
        fs::write(&recorded, page.to_string()).unwrap();
        (of_recording(&recorded, &folder.path().join("out")).unwrap(), folder)
    }

    fn of_file(name: &str) -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/events/{name}.json"));
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn the_page_and_the_exit_code_say_what_did_not_hold() {
        let (warning, rebalance) = (of_file("ec2-spot-interruption-warning"), of_file("ec2-rebalance-recommendation"));
        let (code, folder) = accept(&[rebalance, warning.clone()]);
        assert_eq!(code, ExitCode::SUCCESS);
        let page = fs::read_to_string(folder.path().join("out/acceptance.md")).unwrap();
        assert!(!page.contains("did not hold") && !page.contains("1234567890abcdef0"), "{page}");
        let kept = folder.path().join("out/events/ec2-spot-instance-interruption-warning.json");
        assert!(event::parse(serde_json::from_slice(&fs::read(kept).unwrap()).unwrap()).is_ok());

        let (code, folder) = accept(&[warning]);
        assert_eq!(code, ExitCode::from(FAILED));
        let page = fs::read_to_string(folder.path().join("out/acceptance.md")).unwrap();
        assert!(page.contains("did not hold\n\n**rebalance.**"), "{page}");

        let mut strange = of_file("ec2-spot-interruption-warning");
        strange["detail"] = json!({ "instance": 7 });
        let (code, folder) = accept(&[strange]);
        assert_eq!(code, ExitCode::from(FAILED));
        assert!(folder.path().join("out/events/ec2-spot-instance-interruption-warning-not-understood.json").is_file());

        let mut foreign = of_file("reconcile");
        foreign["source"] = json!("foreign");
        assert_eq!(accept(&[foreign]).0, ExitCode::from(FAILED), "nothing was judged");
    }
}
