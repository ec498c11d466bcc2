//! Measures the cases, and writes them as rows of a table.

use std::io;
use std::path::Path;
use std::time::Duration;

use spotsweep_protocol::words::size;

use super::{Client, Kind, Link, Objects, Server, Target, Usage};

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The data set.
    pub objects: &'a Objects,
    /// S3's latency before the first byte.
    pub latency: Duration,
    /// The link to the server.
    pub link: &'a Link,
    /// Where to fetch to; none for a file system in memory.
    pub parent: Option<&'a Path>,
    /// How often to measure.
    pub runs: usize,
}

/// The medians of one client's runs.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The process that fetches the set.
    pub first: Usage,
    /// The seconds of the next process, which finds all there.
    pub second_seconds: f64,
    /// The seconds of a runner without a data set.
    pub without_seconds: Option<f64>,
}

/// Measures one client.
///
/// # Errors
/// If the server, the folder or the client fail.
pub fn measure(client: &Client, case: &Case<'_>) -> io::Result<Row> {
    let server = Server::start(case.objects.clone(), case.latency)?;
    let at = (case.link, server.port());
    let (mut firsts, mut seconds, mut withouts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..case.runs {
        let target = Target::make(case.parent, case.objects)?;
        let before = server.sent();
        firsts.push(client.fetch(at, target.path(), true)?);
        let after = server.sent();
        seconds.push(client.fetch(at, target.path(), true)?.seconds);
        if (after - before < case.objects.total()) || server.sent() > after {
            let problem = format!("{} does not fetch all objects first, and none later", client.name());
            return Err(io::Error::other(problem));
        }
        if client.kind == Kind::Runner {
            withouts.push(client.fetch(at, target.path(), false)?.seconds);
        }
    }
    firsts.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let first = firsts.get(firsts.len() / 2).copied().ok_or_else(|| io::Error::other("no run"))?;
    Ok(Row { first, second_seconds: median(seconds).unwrap_or_default(), without_seconds: median(withouts) })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The header of the table, in Markdown.
pub fn rows_header() -> String {
    let titles = "| data set | link | first byte after | client | seconds | MB/s | share of the link | CPU seconds | \
                  cores | peak memory | seconds when all is there |";
    format!("{titles}\n{}|\n", "|---".repeat(titles.matches('|').count() - 1))
}

/// Returns a row of the table, in Markdown.
pub fn row(client: &Client, case: &Case<'_>, row: &Row) -> String {
    let Usage { seconds, cpu_seconds, peak_bytes } = row.first;
    let rate = case.objects.total() as f64 / seconds;
    let share = case.link.share(rate).map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let second = match row.without_seconds {
        Some(without) => format!("{:.2}, {:.2} without data", row.second_seconds, without),
        None => format!("{:.2}", row.second_seconds),
    };
    format!(
        "| {} × {} | {} | {} ms | {} | {seconds:.1} | {:.0} | {share} | {cpu_seconds:.1} | {:.2} | {} | {second} |\n",
        case.objects.number,
        size(case.objects.bytes),
        case.link,
        case.latency.as_millis(),
        client.name(),
        rate / 1e6,
        cpu_seconds / seconds,
        size(peak_bytes),
    )
}
