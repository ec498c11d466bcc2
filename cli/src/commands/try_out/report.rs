//! The table of interruptions, and the problems.

use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{counted, figure};

use super::attempt::Attempt;
use super::findings::{Problem, SAVE_SECONDS, Trial};
use super::lost::Group;
use super::moments::INTERRUPTIONS;
use super::watch::Outcome;
use crate::{out, show};

/// Places with lost files that are listed.
const MOST_LOST: usize = 8;

/// Prints both; whether there is no problem.
pub(super) fn print(trial: &Trial<'_>, outcome: &Outcome, (notice, hours): (u16, f64)) -> Result<bool, Failure> {
    let problems = trial.problems();
    let mut text = Vec::new();
    show::table(&mut text, &rows(trial, notice)).context(|| "cannot lay out the table")?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let metrics: Vec<String> =
        outcome.metrics.iter().map(|(name, value)| format!("{name} = {}", figure(*value))).collect();
    text.push_str(&format!("\nmetrics: {}\n", if metrics.is_empty() { "none".to_owned() } else { metrics.join(", ") }));
    text.push_str(&lost(outcome));
    let interrupted = trial.attempts.iter().filter(|attempt| attempt.interrupted.is_some()).count();
    if interrupted < INTERRUPTIONS.len() {
        let why = if outcome.is_over { "the training was over" } else { "the time was over" };
        text.push_str(&format!(
            "tried: {interrupted} of {} interruptions, because {why} before\n",
            INTERRUPTIONS.len()
        ));
    }
    let billed = trial.billed_hours(hours);
    let expected = if billed > 1000.0 {
        format!("a training of {hours} h would practically never finish")
    } else {
        format!("{billed:.2} billed hours for each useful hour of a training of {hours} h")
    };
    text.push_str(&format!(
        "expected on Spot: {expected}, with as many interruptions as in the record of docs/replay.md\n"
    ));
    for Problem { what, fix } in &problems {
        text.push_str(&format!("problem: {}\n  → {fix}\n", show::line(what)));
    }
    if problems.is_empty() {
        text.push_str("no problem found\n");
    }
    out::results(|to| write!(to, "{text}"))?;
    Ok(problems.is_empty())
}

/// What is lost with the container, at most some of it.
fn lost(outcome: &Outcome) -> String {
    let groups = outcome.lost.groups();
    if groups.is_empty() {
        return "written outside of the workspace: nothing\n".to_owned();
    }
    let mut text = "written outside of the workspace, and lost with the container:\n".to_owned();
    for Group { name, files, bytes } in groups.iter().take(MOST_LOST) {
        text.push_str(&format!(
            "  {} ({}, {})\n",
            show::line(name),
            counted(*files as u64, "file"),
            show::bytes(*bytes)
        ));
    }
    if groups.len() > MOST_LOST {
        text.push_str(&format!("  and {} more\n", groups.len() - MOST_LOST));
    }
    text
}

fn rows(trial: &Trial<'_>, notice: u16) -> Vec<Vec<String>> {
    let header = ["attempt", "interrupted", "notice", "ended after", "found", "steps", "repeated", "exit"];
    let rows = trial.attempts.iter().enumerate().map(|(place, attempt)| row(trial, place, attempt, notice));
    [header.map(str::to_owned).to_vec()].into_iter().chain(rows).collect()
}

fn row(trial: &Trial<'_>, place: usize, attempt: &Attempt, notice: u16) -> Vec<String> {
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
        Some(seconds) => format!("{seconds:.1} of {SAVE_SECONDS:.0} s"),
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
