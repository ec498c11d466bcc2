//! `data-fetch` measures how fast the runner fetches a data set, beside `aws s3 sync` and `s5cmd`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_studies::fetch::{Case, Client, Kind, Link, Objects, measure, row, rows_header, watch};

/// Measure how fast a data set is fetched from an S3 in this process
///
/// Linux with root, `ip` and `tc` (iproute2) and `unshare`; without --links also without root, if --target is given.
/// docs/performance.md has the results.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Measure this `spotsweep-runner`
    #[arg(long, value_name = "PATH")]
    runner: Option<PathBuf>,
    /// Measure this `aws`, with its defaults and with 64 requests at once
    #[arg(long, value_name = "PATH")]
    aws: Option<PathBuf>,
    /// Measure this `s5cmd`
    #[arg(long, value_name = "PATH")]
    s5cmd: Option<PathBuf>,
    /// Data sets: objects and bytes of each
    #[arg(long, value_name = "NxBYTES,…", value_delimiter = ',', value_parser = objects,
          default_value = "1000x10737418,100000x102400")]
    sets: Vec<Objects>,
    /// Links in Gbit/s besides the loopback device, such as 1,10
    #[arg(long, value_name = "GBIT,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100))]
    links: Vec<u32>,
    /// Leave out the loopback device
    #[arg(long, requires = "links")]
    no_loopback: bool,
    /// Milliseconds until S3 sends an answer's first byte; AWS says 100 to 200
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html>)
    #[arg(long, value_name = "MS,…", value_delimiter = ',', default_value = "100")]
    latency: Vec<u64>,
    /// Fetch to this folder instead of a file system in memory
    #[arg(long, value_name = "DIR")]
    target: Option<PathBuf>,
    /// How often each is measured; the table has the medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    runs: usize,
    /// A few MiB over the loopback device, once
    #[arg(long, conflicts_with_all = ["sets", "links", "latency", "runs"])]
    quick: bool,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Run a command, and print what it takes as JSON
    #[command(hide = true)]
    Watch {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

fn objects(text: &str) -> Result<Objects, String> {
    let parse = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let both = text.split_once('x').and_then(|(number, bytes)| Some((parse(number)?, parse(bytes)?)));
    both.map(|(number, bytes)| Objects::new(number, bytes)).ok_or_else(|| "it is not like 1000x102400".to_owned())
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if let Some(Part::Watch { command }) = &arguments.part {
        let usage = watch(command).context(|| "cannot measure the command")?;
        return writeln!(out, "{}", serde_json::json!(usage)).context(|| "cannot write to standard output");
    }
    let clients = arguments.clients();
    if clients.is_empty() {
        return Err(Failure::usage("nothing to measure: give --runner, --aws or --s5cmd"));
    }
    let arguments = if arguments.quick { arguments.shortened() } else { arguments };
    let loopback = (!arguments.no_loopback).then_some(None);
    out.write_all(rows_header().as_bytes()).context(|| "cannot write to standard output")?;
    for rate in loopback.into_iter().chain(arguments.links.iter().copied().map(Some)) {
        let link = Link::make(rate).context(|| "cannot make the link")?;
        for objects in &arguments.sets {
            for latency in arguments.latency.iter().copied().map(Duration::from_millis) {
                let (parent, runs) = (arguments.target.as_deref(), arguments.runs);
                let case = Case { objects, latency, link: &link, parent, runs };
                for client in &clients {
                    let found = measure(client, &case).context(|| format!("cannot measure {}", client.name()))?;
                    let written = out.write_all(row(client, &case, &found).as_bytes()).and_then(|()| out.flush());
                    written.context(|| "cannot write to standard output")?;
                }
            }
        }
    }
    Ok(())
}

impl Arguments {
    fn clients(&self) -> Vec<Client> {
        let aws = [Kind::Aws(None), Kind::Aws(Some(64))].map(|kind| (kind, &self.aws));
        let all = [(Kind::Runner, &self.runner)].into_iter().chain(aws).chain([(Kind::S5cmd, &self.s5cmd)]);
        all.filter_map(|(kind, program)| Some(Client { kind, program: program.clone()? })).collect()
    }

    fn shortened(self) -> Self {
        Self { sets: vec![Objects::new(8, 1 << 20), Objects::new(200, 4096)], latency: vec![1], runs: 1, ..self }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn what_is_accepted_and_what_is_not() {
        Arguments::command().debug_assert();
        let parsed = |line: &str| Arguments::try_parse_from(format!("data-fetch {line}").split(' '));
        for line in
            ["--runner r --sets 10x5,3x1 --links 1,10 --no-loopback", "watch -- true --quick", "--quick --s5cmd s"]
        {
            assert!(parsed(line).is_ok(), "{line}");
        }
        for line in
            ["--sets 10", "--sets 0x5", "--runs 0", "--no-loopback", "--quick --runs 2", "--runner r watch -- true"]
        {
            assert!(parsed(line).is_err_and(|error| error.exit_code() == 2), "{line}");
        }
    }
}
