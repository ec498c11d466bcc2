//! One attempt at a trial, from the claim to the end report.

use std::time::Instant;

use spotsweep::claim::{Grant, Outputs, TrialLine};
use spotsweep::sweep::command::expand;
use tokio::sync::oneshot;

use crate::child::{Cause, Child, Ended};
use crate::claim::{Answer, Claims};
use crate::clients::Clients;
use crate::config::Config;
use crate::exit::{Failure, chain, say};
use crate::metrics::Figures;
use crate::parameters;
use crate::place::Place;
use crate::record::Recording;
use crate::reports;
use crate::signals::Signals;
use crate::upload::{UploadError, Uploader};
use crate::workplace::Workplace;

/// Runs the trial; returns the job's exit code: the command's own, unless the runner itself has
/// a reason to fail.
pub(crate) async fn run(config: &Config, command: &[String]) -> Result<u8, Failure> {
    let mut signals = Signals::catch().map_err(|source| Failure::System("catch signals", source))?;
    let clients = Clients::connect().await?;
    let claims = Claims::new(clients.lambda.clone(), config);
    let (grant, trial) = tokio::select! {
        prepared = prepare(&clients, &claims, config) => prepared?,
        signal = signals.next() => return Err(Failure::Stopped(signal.as_raw())),
    };
    let place = Workplace::make(&config.root, &trial)?;
    let uploader = Uploader::new(clients.s3, grant.outputs, place.output.clone());

    let inherited = |name: &str| std::env::var(name).ok();
    let variables = place.variables(&trial.parameters, &inherited);
    let variable = |name: &str| {
        let own = variables.iter().rev().find(|(key, _)| key == name);
        own.map(|(_, value)| value.clone()).or_else(|| inherited(name))
    };
    let json_file = place.parameters().to_string_lossy().into_owned();
    let command = expand(command, &trial.parameters, &variable, &json_file)?;

    let started = Instant::now();
    let (child, stdout, stderr) = Child::start(&command, variables)?;
    let (recording, figures) = Recording::start(stdout, stderr, &place)?;
    let (uploading, stop_uploading) = uploader.run(config.upload_every);
    let (fence, fenced) = oneshot::channel();
    let reporting = async {
        reports::report(&claims, figures, config.report_every, fence).await;
        std::future::pending().await
    };
    let ended = tokio::select! {
        ended = child.supervise(&mut signals, fenced, config.grace) => ended?,
        never = reporting => never,
    };
    let seconds = started.elapsed().as_secs_f64();
    let recorded = recording.finish().await;
    if let Cause::Fenced(reason) = ended.cause {
        // The folder in S3 is the newer attempt's now: nothing more goes there.
        uploading.abort();
        return Err(Failure::Refused(reason));
    }

    // Fails only where the background upload is gone, which the line after tells.
    let _ = stop_uploading.send(());
    let collected = match uploading.await {
        Ok(uploader) => uploader.finish(recorded.log, place.metrics_record()).await,
        Err(broken) => Err(UploadError::Broken(broken)),
    };
    conclude(&claims, &ended, recorded.figures, collected, seconds).await
}

/// Everything that comes before the command: who we are, what is ours, what it says.
async fn prepare(clients: &Clients, claims: &Claims, config: &Config) -> Result<(Grant, TrialLine), Failure> {
    let place = Place::find(&clients.imds).await;
    let grant = claims.claim(place).await?;
    let trial = parameters::fetch(&clients.s3, &grant.parameters, config.index).await?;
    say(&format!(
        "sweep {} trial {} attempt {}: {}",
        config.sweep,
        trial.index,
        config.attempt,
        serde_json::Value::Object(trial.parameters.clone())
    ));
    Ok((grant, trial))
}

/// Tells the control plane how it went, and decides the job's exit code.
async fn conclude(
    claims: &Claims,
    ended: &Ended,
    figures: Figures,
    collected: Result<Outputs, UploadError>,
    seconds: f64,
) -> Result<u8, Failure> {
    let (outputs, failure) = match collected {
        Ok(outputs) => (outputs, None),
        Err(error) => (Outputs::default(), Some(Failure::Upload(error))),
    };
    let code = match &failure {
        // The command's own failure says more than what it did to the outputs.
        Some(failure) if ended.code == 0 => i32::from(failure.code()),
        Some(_) | None => ended.code,
    };
    say(&format!(
        "the command ended with code {} after {seconds:.1} s; {} files, {} bytes collected",
        ended.code, outputs.files, outputs.bytes
    ));
    match claims.end(code, figures.metrics(), outputs, seconds).await {
        Ok(Answer::Accepted) => {}
        // Either a newer attempt has the trial, and then nobody asks for our exit code, or this
        // end was heard before and its answer lost; the command's code is right in both cases.
        Ok(Answer::Refused(reason)) => say(&format!("the end was not taken: {reason}")),
        // Batch's own event carries the exit code all the same.
        Err(error) => say(&format!("the end could not be told: {}", chain(&error))),
    }
    match failure {
        Some(failure) if ended.code == 0 => Err(failure),
        Some(failure) => {
            say(&chain(&failure));
            Ok(exit_code(code))
        }
        None => Ok(exit_code(code)),
    }
}

/// Exit codes are one byte; `wait` never gives more.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
