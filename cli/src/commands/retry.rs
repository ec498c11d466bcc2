//! `spotsweep retry`: runs trials again, as a new sweep.

mod collected;
mod continued;
mod file;
mod parameters;

pub(super) use file::code_value;

use std::collections::BTreeSet;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;
use spotsweep_protocol::claim::{DataSet, Preparation};
use spotsweep_records::sweep::upload::{Given, Upload};
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_sweep_file::{Code, MAX_FILE_BYTES, SweepFile};

use crate::download::all_below;
use crate::dropped::{Answer, Dropped, rejected, upload_to};
use crate::signals::unless_stopped;
use crate::sweeps::Found;
use crate::target::Table;
use crate::{out, sweep_file, sweeps};
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::{counted, size};

/// `spotsweep retry`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A retry is a new sweep, which trains these parameters from the beginning and has results of its own. Its file, \
sweeps/<name>-retry-<N>.yaml, lists the trials' parameters, with the settings, the metric and the early stopping of the \
file that the sweep came from, in the version that was dropped.

With --continue each trial starts from the checkpoints of the one that it repeats. Workspaces of trials that failed are \
there for as long as `workspace: {keep_failed: …}` says, three days by default; `status` shows until when. A trial that \
succeeded is continued from its newest checkpoint, which was collected with its outputs.

Examples:
  spotsweep retry digits-1a2b3c4d5e6f             the trials that have failed
  spotsweep retry digits-1a2b3c4d5e6f --cancelled the trials that were cancelled
  spotsweep retry digits-1a2b3c4d5e6f 3 7         these two, however they ended
  spotsweep retry digits-1a2b3c4d5e6f --continue  the trials that have failed, from their last checkpoints
  spotsweep retry digits-1a2b3c4d5e6f 5 --continue --set epochs=50   train one for longer; --add where the file names no epochs
  spotsweep retry digits-1a2b3c4d5e6f --dry-run   print the file instead of dropping it")]
pub(crate) struct Retry {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// These trials, by their index from 0 [default: those that have failed]
    #[arg(value_name = "INDEX")]
    indices: Vec<u32>,
    /// The trials that have failed, and those that are named
    #[arg(long)]
    failed: bool,
    /// The trials that were cancelled, and those that are named
    #[arg(long)]
    cancelled: bool,
    /// Start from the last checkpoints of these trials
    #[arg(long = "continue")]
    goes_on: bool,
    /// Give a parameter of all these trials another value; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<parameters::Set>,
    /// Give all these trials a parameter that they do not have, such as an option that the script has a default for; can
    /// be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    add: Vec<parameters::Set>,
    /// Print the new sweep file and drop nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the new sweep's plan as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: Table,
}

/// Runs the command. It fails if there is nothing to retry, or if the original file does not exist any more.
pub(super) async fn run(args: Retry) -> Result<ExitCode, Failure> {
    let Some((dropped, data)) = unless_stopped(retry(&args)).await? else { return Ok(ExitCode::SUCCESS) };
    match dropped.answer_unless_stopped().await? {
        Answer::Planned(plan) => {
            warn_of_changes(&data, &plan);
            if args.json {
                out::results(|to| writeln!(to, "{plan}"))?;
                return Ok(ExitCode::SUCCESS);
            }
            let sweep = plan.get("sweep").and_then(Value::as_str).unwrap_or_default();
            out::results(|to| writeln!(to, "{sweep}"))?;
            out::note(format_args!("follow with: spotsweep watch {sweep}"));
        }
        Answer::Rejected(rejection) => {
            sweep_file::explain(&rejected(&rejection));
            return Ok(ExitCode::from(FAILED));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the data sets that have other objects than those on which the sweep has trained.
fn warn_of_changes(before: &[DataSet], plan: &Value) {
    let now: Vec<DataSet> = plan.get("data").and_then(|data| Vec::deserialize(data).ok()).unwrap_or_default();
    for set in before {
        let Some(now) = now.iter().find(|now| now.name == set.name && now.listing != set.listing) else { continue };
        let of = |set: &DataSet| format!("{} in {}", size(set.listing.bytes), counted(set.listing.objects, "object"));
        out::note(format_args!(
            "warning: the data set {} has changed since the sweep was accepted: {} then, {} now",
            set.name,
            of(set),
            of(now)
        ));
    }
}

/// Drops the new file. Returns it with the sweep's data sets, or none if it is only to be printed.
async fn retry(args: &Retry) -> Result<Option<(Dropped, Vec<DataSet>)>, Failure> {
    let found = sweeps::find(args.table.clone(), &args.sweep).await?;
    let trials = found.trials().await?;
    let indices = wanted(&found, &trials, args)?;
    let text = text(&found, &trials, &indices, args).await?;
    if args.dry_run {
        out::file(|to| to.write_all(text.as_bytes()))?;
        return Ok(None);
    }
    let upload = free_upload(&found).await?;
    let key = upload.key.clone();
    let dropped = Dropped::put_body(found.s3(), upload, text.into_bytes().into(), Given::default()).await?;
    let count = counted(indices.len(), "trial");
    out::note(format_args!("{count} of {} as s3://{}/{key}, waiting for the plan …", found.sweep.id, found.bucket()));
    Ok(Some((dropped, found.plan()?.data().to_vec())))
}

fn wanted(found: &Found, trials: &[Trial], args: &Retry) -> Result<BTreeSet<u32>, Failure> {
    let mut wanted = found.indices(&args.indices)?;
    let is_by_default = args.indices.is_empty() && !args.cancelled;
    let standings = [(args.failed || is_by_default, Standing::Failed), (args.cancelled, Standing::Cancelled)];
    let standings: Vec<Standing> = standings.into_iter().filter_map(|(is_on, it)| is_on.then_some(it)).collect();
    wanted.extend(trials.iter().filter(|trial| standings.contains(&trial.standing())).map(|trial| trial.index));
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    let (sweep, stage) = (&found.sweep.id, found.sweep.stage.name());
    let names: Vec<&str> = standings.into_iter().map(Standing::name).collect();
    let those = match trials.iter().filter(|trial| trial.standing() == Standing::Cancelled).count() {
        0 => String::new(),
        count => format!("; {} cancelled: --cancelled retries those", counted(count, "trial")),
    };
    let names = names.join(" or ");
    Err(Failure::new(format!("no trial of {sweep}, which is {stage}, is {names}: name trials by their index{those}")))
}

/// The text of the new sweep file.
async fn text(found: &Found, trials: &[Trial], indices: &BTreeSet<u32>, args: &Retry) -> Result<String, Failure> {
    let Upload { key, version_id, fingerprint, .. } = &found.sweep.upload;
    let original = found.read_version(key, version_id.clone()).await?.ok_or_else(|| {
        let version = version_id.as_ref().map(|version| format!(" in version {version}")).unwrap_or_default();
        Failure::new(format!(
            "the file that the sweep came from, s3://{}/{key}{version}, is gone, and with it the settings that its \
             trials ran with: write a new file; `spotsweep export {} --format json` has the trials' parameters",
            found.bucket(),
            found.sweep.id
        ))
    })?;
    let unreadable = || {
        Failure::new(format!(
            "{key} is no sweep file of this version any more; drop it again: the answer has the reason"
        ))
    };
    let mut file = spotsweep_sweep_file::parse(key, fingerprint, &original).map_err(|_| unreadable())?;
    let plan = found.plan()?;
    // `submit` may have added to the file's own, and has packed a folder.
    file.settings.env = plan.preparation.as_ref().map(Preparation::env).unwrap_or_default();
    if let Some(sha256) = plan.packed_code() {
        file.settings.code = Code::packed(&sha256);
    }
    parameters::check_given(found.plan()?, trials, indices)?;
    let mut lines = parameters::read(&found.parameters().await?, indices)?;
    parameters::set(&mut lines, &args.set)?;
    parameters::add(&mut lines, &args.add)?;
    let id = &found.sweep.id;
    let mut comment = format!("Trials of {id} once more: spotsweep retry {id}");
    if args.goes_on {
        file.settings = continued::start(found, &file.settings, trials, indices, Timestamp::now()).await?;
        comment.push_str(" --continue");
    } else {
        file.settings = continued::again(&file.settings, indices);
    }
    let repeats = file.repeats().and_then(|repeats| file::Repeated::of(&lines, repeats));
    if let (Some(of), None) = (file.repeats(), &repeats) {
        let parameter = &of.parameter;
        out::note(format_args!(
            "these are not all repeats of their parameter sets: in the new sweep `{parameter}` is a parameter as the \
             others, and each trial a set of its own"
        ));
    }
    let text = file::text(&file, &lines, repeats.as_ref(), &comment);
    if text.len() as u64 > MAX_FILE_BYTES {
        let (count, limit) = (counted(indices.len(), "trial"), MAX_FILE_BYTES >> 20);
        return Err(Failure::new(format!("{count}: a file of over {limit} MiB; name some of them by their index")));
    }
    let is_same = |file: &SweepFile| file.trials().eq(lines.iter().map(|line| line.parameters.clone()));
    match spotsweep_sweep_file::parse("the new file", "", text.as_bytes()) {
        Ok(file) if is_same(&file) => Ok(text),
        Ok(_) => Err(Failure::new("the new file would not have the same trials: a defect, please report it")),
        Err(rejected) => {
            sweep_file::explain(&rejected);
            Err(Failure::new("the new file would be rejected, see above: a defect, please report it"))
        }
    }
}

/// The first key of `<name>-retry-<N>.yaml` under which there is no object yet.
async fn free_upload(found: &Found) -> Result<Upload, Failure> {
    let prefix = format!("{}-retry-", stem(&found.sweep.upload.key));
    let there = all_below(&found.s3(), found.bucket(), &prefix).await?;
    let highest = there.iter().filter_map(|(key, _)| number(key.strip_prefix(&prefix)?)).max().unwrap_or(0);
    Ok(upload_to(found.bucket(), format!("{prefix}{}.yaml", highest.saturating_add(1))))
}

/// The digits with which the rest of a key begins.
fn number(rest: &str) -> Option<u32> {
    rest.split_once('.')?.0.parse().ok()
}

/// The key without its extension, and without what an earlier retry has added.
fn stem(key: &str) -> &str {
    let stem = key.strip_suffix(".yaml").or_else(|| key.strip_suffix(".yml")).unwrap_or(key);
    match stem.rsplit_once("-retry-") {
        Some((before, number)) if number.parse::<u32>().is_ok() => before,
        Some(_) | None => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_of_a_retry_is_the_next() {
        for (key, expected) in [
            ("sweeps/digits.yaml", "sweeps/digits"),
            ("sweeps/team/digits.yml", "sweeps/team/digits"),
            ("sweeps/digits-retry-2.yaml", "sweeps/digits"),
            ("sweeps/digits-retry-x.yaml", "sweeps/digits-retry-x"),
        ] {
            assert_eq!(stem(key), expected);
        }
        for (rest, expected) in [("12.yaml", Some(12)), ("3.yaml.plan.json", Some(3)), ("x.yaml", None), ("3", None)] {
            assert_eq!(number(rest), expected, "{rest}");
        }
    }
}
