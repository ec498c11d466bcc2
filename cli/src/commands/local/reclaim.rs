//! `spotsweep local reclaim`: reclaims the instance of a trial, as EC2 does on Spot.

use std::time::Duration;

use spotsweep_aws::Reader;
use spotsweep_records::trial::{JobStatus, Trial};

use crate::target::note_found;
use crate::{out, sweeps};
use spotsweep_local_stack::emulated::reclaim;
use spotsweep_local_stack::installation::Installation;
use spotsweep_local_stack::sdk;
use spotsweep_local_stack::state::Desk;
use spotsweep_protocol::failure::{Context, Failure};

/// EC2 gives two minutes. A longer notice than this is a mistake.
const LONGEST_NOTICE_SECONDS: f64 = 3_600.0;

/// `spotsweep local reclaim`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The trial's next attempt starts on another instance, as on AWS. Without --notice the instance is gone at once, as where \
EC2's notice is lost: no signal, no last checkpoint. With it the training gets the stop signal, and has about so many \
seconds to save. The notice of a demo is 2 seconds, that of EC2 120.

Examples:
  spotsweep local reclaim                 the first trial that runs, without a notice
  spotsweep local reclaim --notice 120    the same, with as much time as EC2 gives
  spotsweep local reclaim digits-1a2b3c4d5e6f --trial 7 --notice 5

Exit codes: 0 the instance is taken, 1 no such trial runs, 2 wrong usage.")]
pub(crate) struct Reclaim {
    /// The sweep: its id, the beginning of its id, or `latest` [default: the one whose trials run]
    #[arg(value_name = "SWEEP")]
    pub(crate) sweep: Option<String>,
    /// The trial whose instance is taken, by its index from 0 [default: the first one that runs]
    #[arg(long, value_name = "N")]
    pub(crate) trial: Option<u32>,
    /// Announce it so many seconds before; without it the instance is gone at once
    #[arg(long, value_name = "SECONDS", value_parser = notice)]
    pub(crate) notice: Option<Duration>,
}

fn notice(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=LONGEST_NOTICE_SECONDS).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("give a number of seconds from 0 to {LONGEST_NOTICE_SECONDS}"))?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Where a trial runs.
struct Place {
    sweep: String,
    trial: u32,
    attempt: u32,
    instance: String,
    zone: String,
}

/// Takes it.
pub(super) async fn run(installation: &Installation, args: &Reclaim) -> Result<(), Failure> {
    let state = Desk::running_under(&installation.local())?.ok_or_else(super::not_running)?;
    note_found(&state.endpoint);
    let reader = Reader::new(&sdk::local(&state.endpoint), state.table.clone());
    let Place { sweep, trial, attempt, instance, zone } = choose(running(&reader, args).await?, args)?;
    reclaim(&state.emulator, &instance, args.notice).await?;
    let how = args
        .notice
        .map_or_else(|| "without notice".to_owned(), |notice| format!("with a notice of {} s", notice.as_secs_f64()));
    out::note(format_args!("reclaimed {instance} in {zone} {how}: trial {trial} attempt {attempt} of {sweep}"));
    out::note(format_args!("next: spotsweep explain {sweep} {trial}"));
    Ok(())
}

/// Where the trials run that the arguments name, ordered by sweep and trial.
async fn running(reader: &Reader, args: &Reclaim) -> Result<Vec<Place>, Failure> {
    let cannot_read = || "cannot read the local stack's table";
    let sweeps = match &args.sweep {
        Some(wanted) => vec![sweeps::look_up(reader, wanted).await.context(cannot_read)??],
        None => reader.open_sweeps().await.context(cannot_read)?,
    };
    let mut places = Vec::new();
    for sweep in sweeps {
        let mut trials = reader.trials(&sweep.id).await.context(cannot_read)?;
        trials.sort_by_key(|trial| trial.index);
        places.extend(
            trials.iter().filter(|trial| args.trial.is_none_or(|index| trial.index == index)).filter_map(place),
        );
    }
    Ok(places)
}

/// Place of the newest attempt, if it runs and its runner has reported its place.
fn place(trial: &Trial) -> Option<Place> {
    let (attempt, newest) = trial.attempts.last_key_value()?;
    let runs = trial.status == JobStatus::Running && newest.stopped_at.is_none();
    Some(Place {
        sweep: trial.sweep.to_string(),
        trial: trial.index,
        attempt: *attempt,
        instance: newest.instance.clone().filter(|_| runs)?,
        zone: newest.zone.clone()?,
    })
}

/// The first place, if all are of one sweep.
fn choose(places: Vec<Place>, args: &Reclaim) -> Result<Place, Failure> {
    let mut sweeps: Vec<String> = places.iter().map(|place| place.sweep.clone()).collect();
    sweeps.dedup();
    if sweeps.len() > 1 {
        return Err(Failure::usage(format!("trials of several sweeps run, name one: {}", sweeps.join(", "))));
    }
    places.into_iter().next().ok_or_else(|| {
        let of = args.sweep.as_ref().map(|sweep| format!(" of {sweep}")).unwrap_or_default();
        let none =
            args.trial.map_or_else(|| format!("no trial{of} runs"), |index| format!("trial {index}{of} does not run"));
        Failure::new(format!("{none} on an instance now; `spotsweep status SWEEP` shows how the trials are doing"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_a_number_of_seconds() {
        assert_eq!(notice("2.5"), Ok(Duration::from_millis(2_500)));
        assert_eq!(notice("0"), Ok(Duration::ZERO));
        for text in ["-1", "soon", "nan", "3601", ""] {
            assert!(notice(text).is_err(), "{text}");
        }
    }
}
