//! Scenarios: what happens to a trial's workspace, step by step. `given` makes the trial, and each `when` is an event
//! or a `wait`. The `then` lines under it are everything that follows: the new stage, a note for people, the commands,
//! the reply. Scenarios are played through `decide`. They are also written from a trial's inputs in a simulated run.

mod runner;
mod timeline;
mod words;

use runner::ScenarioRunner;
pub use timeline::Timeline;

/// The scenario without the steps that have no effect. What is done to volumes and snapshots, and in which stage,
/// stays.
///
/// # Errors
/// Those of [`play`].
pub fn trim(text: &str) -> Result<String, String> {
    let mut steps: Vec<&str> = text.lines().filter(|line| !line.starts_with("then")).collect();
    let essence = essence(&play(text)?);
    let mut at = steps.len();
    while at > 0 {
        at -= 1;
        if steps[at].starts_with("when") {
            let without: Vec<&str> = [&steps[..at], &steps[at + 1..]].concat();
            if play(&without.join("\n")).is_ok_and(|played| self::essence(&played) == essence) {
                steps = without;
            }
        }
    }
    play(&steps.join("\n"))
}

/// The `then` lines that matter: without look-ups, ignored events and replies to wait.
fn essence(played: &str) -> Vec<String> {
    let is_idle = |what: &str| {
        ["ignore", "reply waiting", "command describe", "command find", "command await", "command locate"]
            .iter()
            .any(|idle| what.starts_with(idle))
    };
    let follows = played.lines().filter_map(|line| line.strip_prefix("then  "));
    follows.filter(|what| !is_idle(what)).map(str::to_owned).collect()
}

/// The scenario with the `then` lines that `decide` gives.
///
/// # Errors
/// The line that cannot be played, and why.
pub fn play(text: &str) -> Result<String, String> {
    let mut played = String::new();
    let mut runner = None;
    for (number, line) in text.lines().enumerate() {
        let text = line.split('#').next().unwrap_or_default().trim();
        let at = |problem: String| format!("line {}, {line:?}: {problem}", number + 1);
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        match verb {
            "then" => continue,
            "" => played.push_str(&format!("{line}\n")),
            "given" => {
                runner = Some(ScenarioRunner::given(rest.trim()).map_err(at)?);
                played.push_str(&format!("{line}\n"));
            }
            "when" => {
                let runner = runner.as_mut().ok_or_else(|| at("nothing is given".into()))?;
                let follows = runner.when(rest.trim()).map_err(at)?;
                played.push_str(&format!("{line}\n"));
                follows.iter().for_each(|what| played.push_str(&format!("then  {what}\n")));
            }
            other => return Err(at(format!("{other:?} is none of given, when, then"))),
        }
    }
    Ok(played)
}
