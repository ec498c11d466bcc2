//! Draws a model. The result is the same text on a terminal, in a test and for `--once`.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::grid::{Standing, cells};
use super::losses::Losses;
use super::model::Model;
use super::spark;
use super::zone::Zone;
use spotsweep_protocol::words::{counted, duration};
use spotsweep_records::sweep::spent::sentence;

/// Rows of zones, and of what is waited for.
const MOST_ROWS: usize = 4;
/// Rows of warnings. Each warning is a sentence of some rows.
const MOST_WARNING_ROWS: usize = 5;
/// Least number of rows for events.
const LEAST_EVENTS: usize = 4;
/// Columns of the best value over time.
const SPARK_COLUMNS: usize = 30;

const KEYS: &str = "q quit   ↑ ↓ PgUp PgDn scroll   ? help";
const HELP: [&str; 14] = [
    "q, Esc, Ctrl-C    quit; the sweep goes on",
    "↑ ↓ PgUp PgDn     scroll through what happened; Home goes back to the newest",
    "?                 this page",
    "",
    "Each cell is a trial, in the order of their indices. Where there are more",
    "trials than cells, a cell has several and shows the one that needs a",
    "look: failed before cancelled, interrupted, running, starting, waiting and done.",
    "",
    "lost: the time between interrupted attempts and the next ones.",
    "left: an estimate, from the trials that have succeeded and from what ran lately.",
    "best: the value that leads now, and those that have led before it.",
    "",
    "spotsweep explain SWEEP INDEX shows one trial's history.",
    "spotsweep status SWEEP lists all of them.",
];

/// How the model is shown.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The present time.
    pub(crate) at: Timestamp,
    /// Number of newest events that are scrolled past.
    pub(crate) scroll: usize,
    /// Whether the keys are explained.
    pub(crate) help: bool,
    /// Whether there are colours.
    pub(crate) colours: bool,
    /// Content of the last row: keys, or why nothing new arrives. None for a text.
    pub(crate) foot: Option<Result<(), String>>,
}

impl View {
    /// A still view, for a text.
    pub(crate) fn still(at: Timestamp) -> Self {
        Self { at, scroll: 0, help: false, colours: false, foot: None }
    }
}

#[derive(Clone, Copy)]
enum Tone {
    Plain,
    Title,
    Dim,
    Alarm,
    Of(Standing),
}

impl Tone {
    fn style(self, colours: bool) -> Style {
        let colour = match self {
            Self::Plain => return Style::new(),
            Self::Title => return Style::new().add_modifier(Modifier::BOLD),
            Self::Dim => return Style::new().add_modifier(Modifier::DIM),
            Self::Alarm | Self::Of(Standing::Failed) => Color::Red,
            Self::Of(Standing::Waiting | Standing::Cancelled | Standing::Stopped) => Color::DarkGray,
            Self::Of(Standing::Starting) => Color::Yellow,
            Self::Of(Standing::Running) => Color::Cyan,
            Self::Of(Standing::Interrupted) => Color::Magenta,
            Self::Of(Standing::Succeeded) => Color::Green,
        };
        if colours { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Writes rows from the top down, and cuts off what does not fit.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    row: u16,
    colours: bool,
}

impl Pen<'_> {
    /// Number of rows that are left.
    fn left(&self) -> usize {
        usize::from(self.area.height.saturating_sub(self.row))
    }

    fn line(&mut self, parts: &[(&str, Tone)]) {
        if self.left() > 0 {
            let (mut x, y) = (self.area.x, self.area.y + self.row);
            for (text, tone) in parts {
                let room = usize::from(self.area.right().saturating_sub(x));
                (x, _) = self.buffer.set_stringn(x, y, text, room, tone.style(self.colours));
            }
        }
        self.row = self.row.saturating_add(1);
    }

    /// Writes a line, and a text at its right end if there is room.
    fn spread(&mut self, left: &[(&str, Tone)], right: &str) {
        let used: usize = left.iter().map(|(text, _)| crate::show::width(text)).sum();
        let gap = usize::from(self.area.width).checked_sub(used + crate::show::width(right)).filter(|gap| *gap > 0);
        let gap = " ".repeat(gap.unwrap_or(2));
        self.line(&[left, &[(gap.as_str(), Tone::Plain), (right, Tone::Plain)]].concat());
    }
}

/// Draws everything into the area.
pub(crate) fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    let foot = u16::from(view.foot.is_some() && area.height > 1);
    let above = Rect { height: area.height - foot, ..area };
    let mut pen = Pen { buffer, area: above, row: 0, colours: view.colours };
    header(&mut pen, model, view);
    if view.help {
        pen.line(&[]);
        HELP.iter().for_each(|line| pen.line(&[(line, Tone::Plain)]));
    } else {
        let warnings = warning_rows(model, pen.area.width);
        let best = usize::from(model.figures.best.is_some()) + usize::from(model.figures.leader.is_some());
        let below = zone_rows(model).len() + best + wait_rows(model) + with_title(&warnings) + 3;
        grid(&mut pen, model, below + LEAST_EVENTS);
        zones(&mut pen, model, view);
        blockers(&mut pen, model);
        if !warnings.is_empty() {
            section(&mut pen, "warnings");
            warnings.iter().for_each(|row| pen.line(&[(row, Tone::Alarm)]));
        }
        events(&mut pen, model, view);
    }
    if let Some(foot_line) = &view.foot {
        let mut pen = Pen { buffer, area, row: above.height, colours: view.colours };
        match foot_line {
            Ok(()) => pen.line(&[(KEYS, Tone::Dim)]),
            Err(trouble) => pen.line(&[(trouble, Tone::Alarm)]),
        }
    }
}

/// The same as text, with as many rows as are needed.
pub(crate) fn text(model: &Model, view: &View, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width.max(1), height.max(1));
    let mut buffer = Buffer::empty(area);
    draw(model, view, area, &mut buffer);
    rows(&buffer)
}

/// A buffer's rows without blanks at their ends.
pub(super) fn rows(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width.max(1));
    let row = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", text.trim_end())
    };
    let text: String = buffer.content.chunks(width).map(row).collect();
    format!("{}\n", text.trim_end())
}

fn header(pen: &mut Pen<'_>, model: &Model, view: &View) {
    let look = &model.look;
    let left = model.seconds_left.map(|seconds| format!(" · about {} left", duration(seconds))).unwrap_or_default();
    let time = format!("{}{left}", duration(model.elapsed(view.at)));
    let stage = format!("  {}", look.sweep.stage.name());
    pen.spread(&[(look.sweep.id.as_str(), Tone::Title), (&stage, Tone::Plain)], &time);
    let (trials, attempts) = (counted(look.total(), "trial"), counted(model.losses.attempts, "attempt"));
    let counts = format!("{} · {trials} · {attempts}", look.sweep.upload.key);
    let cost = model.cost.map(|(usd, on_demand_usd)| sentence(usd, on_demand_usd));
    pen.spread(&[(&counts, Tone::Plain)], &cost.unwrap_or_default());
    let Losses { interruptions, zone_moves, seconds_lost, .. } = model.losses;
    let (interruptions, moves) = (counted(interruptions, "interruption"), counted(zone_moves, "zone move"));
    let losses = format!("{interruptions} · {moves} · {} lost", duration(seconds_lost));
    pen.line(&[(&losses, Tone::Plain)]);
}

fn section(pen: &mut Pen<'_>, name: &str) {
    let rule = "─".repeat(usize::from(pen.area.width).saturating_sub(name.chars().count() + 4));
    pen.line(&[("── ", Tone::Dim), (name, Tone::Title), (" ", Tone::Plain), (&rule, Tone::Dim)]);
}

/// Draws the trials, and leaves `below` rows free.
fn grid(pen: &mut Pen<'_>, model: &Model, below: usize) {
    let mut legend: Vec<(String, Tone)> = Vec::new();
    for standing in Standing::ALL {
        let count = model.standings.iter().filter(|held| **held == standing).count();
        if count > 0 {
            legend.push((format!("{} ", standing.symbol()), Tone::Of(standing)));
            legend.push((format!("{count} {}  ", standing.name()), Tone::Plain));
        }
    }
    let width = usize::from(pen.area.width);
    let rows = pen.left().saturating_sub(below + 2).clamp(1, pen.left().max(1));
    let (cells, each) = cells(&model.standings, width * rows);
    let name = if each > 1 { format!("trials, {each} to a cell") } else { "trials".to_owned() };
    section(pen, &name);
    for row in cells.chunks(width.max(1)) {
        let row: Vec<(&str, Tone)> = row.iter().map(|cell| (cell.symbol(), Tone::Of(*cell))).collect();
        pen.line(&row);
    }
    pen.line(&legend.iter().map(|(text, tone)| (text.as_str(), *tone)).collect::<Vec<_>>());
}

fn zone_rows(model: &Model) -> Vec<String> {
    let row = |(name, zone): (&String, &Zone)| {
        let starting = if zone.starting > 0 { format!(", {} starting", zone.starting) } else { String::new() };
        let instances: Vec<&str> = zone.instances.iter().map(String::as_str).collect();
        format!("{name:<14} {} running{starting}   {}", zone.running, instances.join(" "))
    };
    let mut rows: Vec<String> = model.zones.iter().take(MOST_ROWS).map(row).collect();
    if model.zones.is_empty() {
        rows.push("nothing runs".to_owned());
    } else if model.zones.len() > MOST_ROWS {
        let last = format!("and {}", counted(model.zones.len() + 1 - MOST_ROWS, "more zone"));
        rows.pop();
        rows.push(last);
    }
    rows
}

fn zones(pen: &mut Pen<'_>, model: &Model, view: &View) {
    section(pen, "zones and instances");
    zone_rows(model).iter().for_each(|row| pen.line(&[(row, Tone::Plain)]));
    if let Some(best) = &model.figures.best {
        let text = format!("best {} (trial {})  ", best.figure(), best.trial);
        let (from, to) = (model.look.sweep.upload.uploaded_at, model.ended_at().unwrap_or(view.at));
        let spark = spark::line(&model.best, from, to, SPARK_COLUMNS);
        pen.line(&[(&text, Tone::Plain), (&spark, Tone::Of(Standing::Succeeded))]);
    }
    if let Some(leader) = &model.figures.leader {
        pen.line(&[(&leader.so_far(), Tone::Plain)]);
    }
}

fn wait_rows(model: &Model) -> usize {
    if model.blockers.is_empty() { 0 } else { model.blockers.len().min(MOST_ROWS) + 1 }
}

fn blockers(pen: &mut Pen<'_>, model: &Model) {
    if model.blockers.is_empty() {
        return;
    }
    section(pen, "waits for");
    let shown = if model.blockers.len() > MOST_ROWS { MOST_ROWS - 1 } else { MOST_ROWS };
    model.blockers.iter().take(shown).for_each(|wait| pen.line(&[(wait, Tone::Of(Standing::Starting))]));
    if model.blockers.len() > MOST_ROWS {
        pen.line(&[(&format!("and {} more", model.blockers.len() - shown), Tone::Plain)]);
    }
}

fn with_title(rows: &[String]) -> usize {
    if rows.is_empty() { 0 } else { rows.len() + 1 }
}

/// The warnings, with line breaks between words. If they do not fit, the text ends with a mark.
fn warning_rows(model: &Model, width: u16) -> Vec<String> {
    let width = usize::from(width);
    let mut rows: Vec<String> = Vec::new();
    for warning in &model.warnings {
        let mut row = String::new();
        for word in crate::show::line(warning).split(' ') {
            if !row.is_empty() && crate::show::width(&row) + 1 + crate::show::width(word) > width {
                rows.push(std::mem::take(&mut row));
            }
            row += if row.is_empty() { "" } else { " " };
            row += word;
        }
        rows.push(row);
    }
    if rows.len() > MOST_WARNING_ROWS {
        rows.truncate(MOST_WARNING_ROWS);
        let more = "… `spotsweep status` shows all";
        let room = width.saturating_sub(crate::show::width(more));
        if let Some(last) = rows.last_mut() {
            let kept: String = last.chars().take(room.saturating_sub(1)).collect();
            *last = format!("{kept} {more}");
        }
    }
    rows
}

fn events(pen: &mut Pen<'_>, model: &Model, view: &View) {
    let passed = view.scroll.min(model.events.len().saturating_sub(1));
    let name = if passed > 0 { format!("what happened, {passed} newer above") } else { "what happened".to_owned() };
    section(pen, &name);
    let rows = pen.left();
    for news in model.events.iter().rev().skip(passed).take(rows) {
        let at = clock(model.look.sweep.seconds_until(news.at));
        pen.line(&[(&format!("{at:>8}  "), Tone::Dim), (&news.text(), Tone::Plain)]);
    }
}

/// Seconds as on a clock.
pub(crate) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests;
