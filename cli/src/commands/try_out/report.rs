//! Prints the table of interruptions, the problems, and what is not proven.

use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{counted, figure, size};

use super::attempt::Attempt;
use super::lost::Group;
use super::moments::INTERRUPTIONS;
use super::problems::Problem;
use super::proof::Made;
use super::trial::Trial;
use super::verdict::{Answer, Verdict, proof, verdict};
use super::watch::{End, Outcome};
use crate::{out, show};

/// With more billed hours than these for each useful one, the training never ends.
const NEVER: f64 = 1000.0;
/// Most places with lost files that are listed.
const MOST_LOST: usize = 8;

/// Prints what was seen, and those problems of an `earlier` try of the same script that this one does not have. Returns
/// what was proven.
pub(super) fn print(
    trial: &Trial,
    outcome: &Outcome,
    made: &Made<'_>,
    earlier: Vec<Problem>,
) -> Result<Answer, Failure> {
    let mut problems = trial.problems();
    let Verdict { mut answer, gaps, on_spot } = verdict(&trial.facts());
    problems.extend(earlier.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
    if !problems.is_empty() {
        answer = Answer::Problem;
    }
    let mut text = Vec::new();
    show::table(&mut text, &rows(trial, made.notice)).context(|| "cannot lay out the table")?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let metrics: Vec<String> =
        outcome.metrics.iter().map(|(name, value)| format!("{name} = {}", figure(*value))).collect();
    text.push_str(&format!("\nmetrics: {}\n", if metrics.is_empty() { "none".to_owned() } else { metrics.join(", ") }));
    text.push_str(&lost(outcome));
    text.push_str(&collected(outcome));
    text.push_str(&expected(trial.billed_hours(on_spot, made.args.hours), made.args.hours));
    for Problem { what, fix } in &problems {
        text.push_str(&format!("problem: {}\n  → {fix}\n", show::line(what)));
    }
    let gaps: Vec<(String, String)> = gaps.iter().map(|gap| made.explain(gap)).collect();
    for (place, (what, proof)) in gaps.iter().enumerate() {
        text.push_str(&format!("not proven: {}\n", show::line(what)));
        // One command may prove several things.
        if gaps.get(place + 1).is_none_or(|(_, next)| next != proof) {
            text.push_str(&format!("  → {}\n", show::line(proof)));
        }
    }
    if answer == Answer::Proven {
        let times = counted(INTERRUPTIONS.len() as u64, "interruption");
        text.push_str(&format!("proven: {}\n", proof(&trial.starts, &times)));
    }
    out::results(|to| write!(to, "{text}"))?;
    Ok(answer)
}

/// What an hour costs, as far as it is known.
fn expected(billed: Option<f64>, hours: f64) -> String {
    let record = "with as many interruptions as in the record of docs/replay.md";
    match billed {
        None => "expected on Spot: not known\n".to_owned(),
        Some(billed) if billed > NEVER => {
            format!("expected on Spot: a training of {hours} h would practically never finish, {record}\n")
        }
        Some(billed) => format!(
            "expected on Spot: {billed:.2} billed hours for each useful hour of a training of {hours} h, {record}\n"
        ),
    }
}

/// Some of what is lost with the container.
fn lost(outcome: &Outcome) -> String {
    let groups = outcome.lost.groups();
    if groups.is_empty() {
        return "written outside of the workspace: nothing\n".to_owned();
    }
    let mut text = "written outside of the workspace, and lost with the container:\n".to_owned();
    for Group { name, files, bytes } in groups.iter().take(MOST_LOST) {
        text.push_str(&format!("  {} ({}, {})\n", show::line(name), counted(*files as u64, "file"), size(*bytes)));
    }
    if groups.len() > MOST_LOST {
        text.push_str(&format!("  and {} more\n", groups.len() - MOST_LOST));
    }
    text
}

/// What the bucket gets.
fn collected(outcome: &Outcome) -> String {
    let what = match (&outcome.bucket, outcome.end) {
        (Some(bucket), _) => bucket.described(),
        (None, End::Over) => ": no checkpoint, because the training did not succeed".to_owned(),
        (None, End::Back | End::OutOfTime) => ": not known, as no attempt had its volume at the end".to_owned(),
    };
    format!("collected in the bucket{what}\n")
}

fn rows(trial: &Trial, notice: u16) -> Vec<Vec<String>> {
    let header = ["attempt", "interrupted", "notice", "ended after", "found", "steps", "repeated", "exit"];
    let rows = trial.attempts.iter().enumerate().map(|(place, attempt)| row(trial, place, attempt, notice));
    [header.map(str::to_owned).to_vec()].into_iter().chain(rows).collect()
}

fn row(trial: &Trial, place: usize, attempt: &Attempt, notice: u16) -> Vec<String> {
    let none = || "–".to_owned();
    let (moment, notice) = match attempt.interrupted {
        Some((interruption, _)) => (
            interruption.moment.to_string(),
            if interruption.with_notice { format!("{notice} s") } else { "none".to_owned() },
        ),
        None => (none(), String::new()),
    };
    let ended = match attempt.seconds_to_stop() {
        Some(seconds) if attempt.said.was_killed => format!("killed at {seconds:.1} s"),
        Some(seconds) => {
            let limit = attempt.grace.map_or_else(String::new, |grace| format!(" of {grace:.1}"));
            format!("{seconds:.1}{limit} s")
        }
        None => none(),
    };
    let steps = attempt.said.steps.map_or_else(none, |(first, last)| format!("{first} to {last}"));
    vec![
        (place + 1).to_string(),
        moment,
        notice,
        ended,
        attempt.said.found.as_deref().map_or_else(none, show::line),
        steps,
        trial.repeated(place).map_or_else(none, |repeated| repeated.to_string()),
        attempt.said.code.map_or_else(none, |code| code.to_string()),
    ]
}
