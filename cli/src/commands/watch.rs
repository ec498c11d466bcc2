//! `spotsweep watch`: shows a sweep until its end.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_records::sweep::Stage;
use spotsweep_records::sweep::spent::sentence;
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval};

use crate::live::WatchEvent;
use crate::live::draw::{View, clock, draw, text};
use crate::live::look::{Look, Watcher, outcome};
use crate::live::model::Model;
use crate::live::screen::{Key, Screen, has_colours, is_there};
use crate::signals::unless_stopped;
use crate::sweeps::Found;
use crate::target::{self, Table, Target};
use crate::{out, show, sweeps};
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::counted;

/// Time between two frames. The clock goes on with each of them.
const FRAME: Duration = Duration::from_secs(1);
/// Size of a still: the width of the narrowest terminal that all of it fits into, and the height that it needs.
const STILL: (u16, u16) = (100, 40);
/// Events before the first look that are shown to people. JSON has all of them.
const MOST_EARLIER: usize = 20;

/// `spotsweep watch`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal: a view that is drawn every second. Anywhere else, and with --plain: a line for each
thing that happens. Either ends with the sweep, or with a demo's stack, and prints a summary. q
leaves the view; the sweep goes on.

The control plane is read every 2 seconds, every 5 where more than 500 trials have started, every
half where all of up to 500 have ended: one GetItem, and one Query over the trials that have started
(a request a megabyte, about 500 trials); while the sweep settles one GetObject, too. Where trials
wait for longer than 30 seconds, Batch is asked why, every 15 seconds: one DescribeJobs of 100 jobs
at most, and one DescribeJobQueues.

Exit codes: 0 every trial has succeeded, or the view was left before; 1 a trial has failed, the file
was rejected, or nothing could be read; 2 wrong usage.

Examples:
  spotsweep watch                                    the sweep that runs
  spotsweep watch digits-1a2b3c4d5e6f
  spotsweep watch digits-1a2b3c4d5e6f --plain >watch.log
  spotsweep watch digits-1a2b3c4d5e6f --json | jq -c 'select(.what == \"interrupted\")'
  spotsweep watch digits-1a2b3c4d5e6f --once         one frame as text")]
pub(crate) struct Watch {
    /// The sweep: its id, the beginning of its id, or `latest`
    /// [default: the one that runs, where there is only one]
    #[arg(value_name = "SWEEP")]
    sweep: Option<String>,
    /// A line for each thing that happens, on a terminal too
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// A JSON object for each thing that happens, the summary last; with --once, one object
    #[arg(long)]
    json: bool,
    /// Print one frame and leave
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    table: Table,
}

/// How a view has ended.
enum End {
    /// The sweep has ended.
    Over,
    /// The user has left the view.
    Left,
    /// The stack on this machine has ended before the sweep.
    Gone,
}

/// Runs the command. The exit code is 0 if every trial has succeeded, or if the view is left before the end. It is 1 if
/// a trial has failed, or the file was rejected.
pub(crate) async fn run(args: Watch) -> Result<ExitCode, Failure> {
    unless_stopped(watch(&args)).await
}

async fn watch(args: &Watch) -> Result<ExitCode, Failure> {
    let found = match &args.sweep {
        Some(sweep) => sweeps::find(args.table.clone(), sweep).await?,
        None => sweeps::only_open(args.table.clone()).await?,
    };
    #[cfg(feature = "local")]
    let _view = target::view_of_demo();
    let mut watcher = Watcher::new(found.clone());
    let first = watcher.look().await?;
    let (mut model, news) = Model::new(first);
    if args.once {
        let still = || text(&model, &View::still(model.look.at), STILL.0, STILL.1);
        out::results(|to| if args.json { writeln!(to, "{}", model.json()) } else { write!(to, "{}", still()) })?;
        return Ok(ExitCode::SUCCESS);
    }
    let looks = Looks { looks: watcher.follow(&model.look), target: &found.target };
    let end = if args.json {
        lines(&mut model, news, looks, json_line).await?
    } else if args.plain || !is_there() {
        let skipped = news.len().saturating_sub(MOST_EARLIER);
        if skipped > 0 {
            out::note(format_args!("{} not shown; --json shows all", counted(skipped, "earlier event")));
        }
        let news = news.into_iter().skip(skipped).collect();
        lines(&mut model, news, looks, plain_line).await?
    } else {
        on_screen(&mut model, looks).await?
    };
    match end {
        End::Over => settled(args, found, &model).await,
        End::Gone => gone(args, &model),
        End::Left => {
            let look = &model.look;
            out::note(format_args!("{} is {}; it goes on without a watcher", look.sweep.id, look.sweep.stage.name()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Looks at a sweep whose stack may end on this machine.
struct Looks<'a> {
    looks: Receiver<Result<Look, Failure>>,
    target: &'a Target,
}

/// What comes next.
enum Next {
    Look(Box<Look>),
    /// The look has failed, and is repeated.
    Trouble(Failure),
    Gone,
}

impl Looks<'_> {
    async fn next(&mut self) -> Result<Next, Failure> {
        match self.looks.recv().await {
            Some(Ok(look)) => Ok(Next::Look(Box::new(look))),
            Some(Err(_)) | None if self.target.has_ended() => Ok(Next::Gone),
            Some(Err(failure)) => Ok(Next::Trouble(failure)),
            None => Err(Failure::new("the control plane can't be read any more")),
        }
    }
}

/// A line for each thing that happens.
async fn lines(
    model: &mut Model,
    first: Vec<WatchEvent>,
    mut looks: Looks<'_>,
    line: fn(&Model, &WatchEvent) -> String,
) -> Result<End, Failure> {
    let (mut news, mut in_trouble) = (first, false);
    loop {
        if !out::stream(|to| news.iter().try_for_each(|news| writeln!(to, "{}", line(model, news))))? {
            return Ok(End::Left);
        }
        if model.look.is_over() {
            return Ok(End::Over);
        }
        news = match looks.next().await? {
            Next::Look(look) => {
                in_trouble = false;
                model.take(*look)
            }
            Next::Trouble(failure) => {
                if !in_trouble {
                    out::note(format_args!("{failure}\nlooking again …"));
                }
                in_trouble = true;
                Vec::new()
            }
            Next::Gone => return Ok(End::Gone),
        };
    }
}

fn json_line(_model: &Model, news: &WatchEvent) -> String {
    json!(news).to_string()
}

/// A line as in the demo: seconds since the file was dropped, and a sentence.
fn plain_line(model: &Model, news: &WatchEvent) -> String {
    let seconds = model.look.sweep.seconds_until(news.at).max(0.0);
    format!("{seconds:>6.1} s  {}", news.text())
}

async fn on_screen(model: &mut Model, mut looks: Looks<'_>) -> Result<End, Failure> {
    let mut screen = Screen::open()?;
    let mut view = View { colours: has_colours(), foot: Some(Ok(())), ..View::still(Timestamp::now()) };
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !model.look.is_over() {
        view.at = Timestamp::now();
        screen.draw(|area, buffer| draw(model, &view, area, buffer))?;
        tokio::select! {
            _ = frames.tick() => {}
            key = screen.key() => {
                if key == Key::Quit {
                    return Ok(End::Left);
                }
                turn(&mut view, key, model.events.len(), screen.height());
            }
            next = looks.next() => match next? {
                Next::Look(look) => {
                    let news = model.take(*look);
                    // The events that are being read stay at their place.
                    view.scroll += if view.scroll > 0 { news.len() } else { 0 };
                    view.foot = Some(Ok(()));
                }
                Next::Trouble(failure) => {
                    view.foot = Some(Err(format!("looking again: {failure}").replace('\n', " ")));
                }
                Next::Gone => return Ok(End::Gone),
            },
        }
    }
    Ok(End::Over)
}

/// Changes the view as a key asks for.
fn turn(view: &mut View, key: Key, events: usize, height: usize) {
    let page = isize::try_from(height / 2).unwrap_or(isize::MAX);
    let by = match key {
        Key::Scroll(lines) => lines,
        Key::Page(pages) => pages.saturating_mul(page),
        Key::Home => isize::MIN,
        Key::Help => {
            view.help = !view.help;
            return;
        }
        Key::Quit | Key::Resized => return,
    };
    view.scroll = view.scroll.saturating_add_signed(by).min(events.saturating_sub(1));
}

/// Prints the summary of a sweep that has ended.
async fn settled(args: &Watch, found: Found, model: &Model) -> Result<ExitCode, Failure> {
    let sweep = model.look.sweep.clone();
    let is_rejected = sweep.stage == Stage::Rejected;
    let outcome = match &model.look.outcome {
        Some(outcome) => outcome.clone(),
        None => outcome(&Found { sweep, ..found }).await?,
    };
    if args.json {
        let (what, field) = if is_rejected { ("rejected", "rejection") } else { ("settled", "summary") };
        let line = json!({ "at": Timestamp::now().to_string(), "what": what, field: outcome });
        out::results(|to| writeln!(to, "{line}"))?;
    } else {
        out::results(|to| writeln!(to, "{}", last_words(model, &outcome)))?;
    }
    Ok(if model.is_good() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Prints the last state of a sweep whose stack has ended.
fn gone(args: &Watch, model: &Model) -> Result<ExitCode, Failure> {
    let is_good = model.figures.trials > 0 && model.figures.succeeded == model.figures.trials;
    if args.json {
        let line = json!({ "at": Timestamp::now().to_string(), "what": "gone", "last": model.json() });
        out::results(|to| writeln!(to, "{line}"))?;
    } else {
        let Model { look, figures, .. } = model;
        let stage = look.sweep.stage.name();
        out::results(|to| {
            writeln!(to, "{}: the local stack has ended; the sweep was {stage}\n{figures}", look.sweep.id)
        })?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn last_words(model: &Model, outcome: &Value) -> String {
    let sweep = &model.look.sweep;
    if sweep.stage == Stage::Rejected {
        let count = counted(outcome.get("problems").and_then(Value::as_array).map_or(0, Vec::len), "problem");
        let place = show::line(format!("s3://{}/{}", sweep.upload.bucket, sweep.upload.rejected_key()));
        return format!("{}: rejected, {count}: see {place}", sweep.id);
    }
    let (losses, time) = (&model.losses, clock(model.elapsed(model.look.at)));
    let (interruptions, attempts) =
        (counted(losses.interruptions, "interruption"), counted(losses.attempts, "attempt"));
    let results = format!("s3://{}/{}", sweep.upload.bucket, sweep.id.results_prefix());
    let usd = |name: &str| outcome.get("cost").and_then(|cost| cost.get(name)).and_then(Value::as_f64).unwrap_or(0.0);
    let cost = match (usd("usd"), usd("on_demand_usd")) {
        (0.0, 0.0) => String::new(),
        (paid, on_demand) => format!("\n{}", sentence(paid, on_demand)),
    };
    let figures = &model.figures;
    format!("{}: finished after {time}, {attempts}, {interruptions}\n{figures}{cost}\n{results}", sweep.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_scroll_within_what_there_is() {
        let mut view = View::still(Timestamp::UNIX_EPOCH);
        let mut scrolled = |key| {
            turn(&mut view, key, 30, 24);
            view.scroll
        };
        let keys =
            [Key::Scroll(-1), Key::Scroll(1), Key::Page(1), Key::Page(1), Key::Page(1), Key::Page(-1), Key::Home];
        assert_eq!(keys.map(&mut scrolled), [0, 1, 13, 25, 29, 17, 0]);
        turn(&mut view, Key::Help, 30, 24);
        assert!(view.help);
        turn(&mut view, Key::Resized, 0, 0);
        turn(&mut view, Key::Scroll(1), 0, 0);
        assert_eq!(view.scroll, 0, "nothing has happened yet");
    }
}
