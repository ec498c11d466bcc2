//! `spotsweep acceptance`: holds events that a real account has recorded against what this product assumes of AWS.

mod checks;
mod mask;
mod page;
mod recording;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use spotsweep::event;

use self::checks::{Check, Verdict, delays, judge};
use self::mask::Masks;
use self::recording::Recorded;
use crate::failure::{Context, FAILED, Failure};
use crate::{out, show};

/// `spotsweep acceptance`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Only reads the recording; calls no AWS. docs/operations.md says how to record while EC2 interrupts your trials. Into DIR \
go acceptance.md, acceptance.json, and in events/ one event of each kind, as in tests/events. Account ids, names in ARNs, \
resource ids, addresses, commands and variables are masked in all of them.

Example:
  spotsweep acceptance --recorded recording.json --output acceptance

Exit codes: 0 no assumption was contradicted, 1 one was, or none was seen, 2 wrong usage or unreadable recording.")]
pub(crate) struct Acceptance {
    /// What `aws logs filter-log-events --output json` printed for the recording log group
    #[arg(long, value_name = "FILE")]
    recorded: PathBuf,
    /// Where the page, the document and the masked events go
    #[arg(long, value_name = "DIR", default_value = "acceptance")]
    output: PathBuf,
}

/// Exit code 1 where an assumption did not hold, and where nothing could be judged.
pub(super) fn run(args: &Acceptance) -> Result<ExitCode, Failure> {
    let unreadable = || format!("cannot read the recording {}", args.recorded.display());
    let text = fs::read(&args.recorded).map_err(|error| Failure::usage(unreadable()).caused_by(error))?;
    let recording =
        recording::read(&text).map_err(|problem| Failure::usage(format!("{}: {problem}", args.recorded.display())))?;
    let mut masks = Masks::default();
    let checks: Vec<Check> = judge(&recording).iter().map(|check| masked(check, &mut masks)).collect();
    let delays = delays(&recording);
    let cannot_write = || format!("cannot write into {}", args.output.display());
    fs::create_dir_all(args.output.join("events")).context(cannot_write)?;
    let document = format!("{:#}\n", page::document(&checks, &delays));
    fs::write(args.output.join("acceptance.json"), document).context(cannot_write)?;
    fs::write(args.output.join("acceptance.md"), page::markdown(&checks, &delays)).context(cannot_write)?;
    keep(&recording, &mut masks, &args.output.join("events")).context(cannot_write)?;
    out::results(|to| {
        checks.iter().try_for_each(|check| show::row(to, &[14, 0], [check.verdict.name(), check.name].iter()))
    })?;
    out::note(format_args!("page: {}", args.output.join("acceptance.md").display()));
    let is_contradicted = checks.iter().any(|check| check.verdict == Verdict::DidNotHold);
    let is_judged = checks.iter().any(|check| check.verdict != Verdict::NotSeen);
    Ok(if is_judged && !is_contradicted { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn masked(check: &Check, masks: &mut Masks) -> Check {
    Check { recorded: check.recorded.iter().map(|line| masks.text(line)).collect(), ..*check }
}

/// The first event of each kind and state; one that the functions do not understand under a name of its own.
fn keep(recording: &[Recorded], masks: &mut Masks, folder: &Path) -> std::io::Result<()> {
    let mut kept: BTreeMap<String, &Recorded> = BTreeMap::new();
    for recorded in recording {
        kept.entry(file_name(recorded)).or_insert(recorded);
    }
    kept.iter().try_for_each(|(name, recorded)| {
        fs::write(folder.join(format!("{name}.json")), format!("{:#}\n", masks.event(&recorded.event)))
    })
}

fn file_name(recorded: &Recorded) -> String {
    let detail = ["status", "event", "result"].map(|field| recorded.text(&format!("/detail/{field}")).trim());
    let is_read = event::parse(recorded.event.clone()).is_ok();
    let words = std::iter::once(recorded.kind()).chain(detail).chain((!is_read).then_some("not understood"));
    let words = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    words.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The exit code for events of `tests/events`, and the output folder.
    fn accept(events: &[Value]) -> (ExitCode, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let recorded = folder.path().join("recording.json");
        let line = |event: &Value| json!({ "message": event.to_string(), "ingestionTime": 1_795_262_401_500_i64 });
        let page = json!({ "events": events.iter().map(line).collect::<Vec<_>>(), "searchedLogStreams": [] });
        fs::write(&recorded, page.to_string()).unwrap();
        (run(&Acceptance { recorded, output: folder.path().join("out") }).unwrap(), folder)
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
