//! `spotsweep top`: every sweep that is not over, at a glance.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use ratatui::style::Style;
use spotsweep_aws::Reader;
use tokio::time::{Instant, sleep_until};

use crate::live::look::{Batch, Look};
use crate::live::model::Model;
use crate::live::screen::{Key, Screen, is_there};
use crate::signals::unless_stopped;
use crate::target::Table;
use crate::{out, show, target};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{dollars, duration};

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);
/// Sweeps whose trials are read, newest first.
const MOST_SWEEPS: usize = 20;

/// `spotsweep top`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal: a table that is read again every 5 seconds until q. Anywhere else: once. The newest 20
sweeps are shown; their trials are read, one Query a sweep.

Examples:
  spotsweep top
  spotsweep top --json | jq -r 'select(.interruptions > 0) | .sweep'")]
pub(crate) struct Top {
    /// One line of JSON per sweep, once
    #[arg(long)]
    json: bool,
    /// Print the table once, on a terminal too
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    table: Table,
}

/// Once; on a terminal again and again.
pub(crate) async fn run(args: Top) -> Result<ExitCode, Failure> {
    unless_stopped(top(args)).await
}

async fn top(args: Top) -> Result<ExitCode, Failure> {
    let target = target::table(args.table.name).await?;
    let reader = Reader::new(&target.config, target.name.clone());
    let mut open = look(&reader, &target.name).await?;
    if args.json {
        out::results(|to| open.iter().try_for_each(|model| writeln!(to, "{}", model.json())))?;
    } else if args.once || !is_there() {
        out::results(|to| write!(to, "{}", table(&open)))?;
    } else {
        let mut screen = Screen::open()?;
        loop {
            let text = table(&open);
            screen.draw(|area, buffer| {
                let foot = format!("{}   every {} s   q quit", Timestamp::now().strftime("%H:%M:%SZ"), PAUSE.as_secs());
                let rows = text.lines().take(usize::from(area.height.saturating_sub(1))).chain([foot.as_str()]);
                for (y, row) in (area.y..area.bottom()).zip(rows) {
                    buffer.set_stringn(area.x, y, row, usize::from(area.width), Style::new());
                }
            })?;
            let next = Instant::now() + PAUSE;
            tokio::select! {
                () = sleep_until(next) => open = look(&reader, &target.name).await?,
                key = screen.key() => if key == Key::Quit { break },
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest sweeps that are not over.
async fn look(reader: &Reader, table: &str) -> Result<Vec<Model>, Failure> {
    let cannot_read = || format!("cannot read the table {table}");
    let mut models = Vec::new();
    for sweep in reader.open_sweeps().await.context(cannot_read)?.into_iter().take(MOST_SWEEPS) {
        let trials = reader.trials(&sweep.id).await.context(cannot_read)?;
        let (model, _) =
            Model::new(Look { at: Timestamp::now(), sweep, trials, batch: Batch::default(), outcome: None });
        models.push(model);
    }
    Ok(models)
}

fn table(open: &[Model]) -> String {
    if open.is_empty() {
        return "no sweep is open; `spotsweep ls` lists all of them\n".to_owned();
    }
    let header = [
        "SWEEP",
        "STAGE",
        "TIME",
        "TRIALS",
        "WAIT",
        "START",
        "RUN",
        "DONE",
        "FAIL",
        "CANCELLED",
        "INTERRUPTED",
        "INSTANCES",
        "COST",
        "BEST",
    ];
    let rows: Vec<Vec<String>> = std::iter::once(header.map(String::from).into()).chain(open.iter().map(row)).collect();
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = show::table(&mut text, &rows);
    String::from_utf8_lossy(&text).into_owned()
}

fn row(model: &Model) -> Vec<String> {
    let figures = &model.figures;
    let instances: usize = model.zones.values().map(|zone| zone.instances.len()).sum();
    let best = figures.best.as_ref().map(|best| format!("{} ({})", best.figure(), best.trial));
    let sweep = &model.look.sweep;
    vec![
        sweep.id.to_string(),
        sweep.stage.name().to_owned(),
        duration(model.elapsed(model.look.at)),
        figures.trials.to_string(),
        figures.waiting.to_string(),
        figures.starting.to_string(),
        figures.running.to_string(),
        figures.succeeded.to_string(),
        figures.failed.to_string(),
        figures.cancelled.to_string(),
        model.toll.interruptions.to_string(),
        instances.to_string(),
        model.cost.map_or_else(String::new, |(usd, _)| dollars(usd)),
        best.unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_open_sweep_is_said() {
        assert!(table(&[]).starts_with("no sweep is open"));
    }
}
