//! What the metadata of a dropped object changes in its file.

use super::Context;
use spotsweep_protocol::claim::Environment;
use spotsweep_records::sweep::upload::{CODE_METADATA, ENV_METADATA, Given, RUN_CAP_METADATA, Upload};
use spotsweep_sweep_file::{Code, Defaults, Problem, Rejected, SweepFile, parse_with, variable_problem};

/// Parses the file, with the number of trials, the code and the variables that the metadata has.
pub(super) fn parse(upload: &Upload, bytes: &[u8], given: &Given, context: Context<'_>) -> Result<SweepFile, Rejected> {
    let run_cap = limit(upload, given.run_cap.as_deref())?;
    let defaults = Defaults { run_cap, ..context.settings.defaults };
    let mut file = parse_with(&upload.key, &upload.fingerprint, bytes, &defaults)?;
    if let (Some(sha256), Some(Code::Folder(_))) = (&given.code, &file.settings.code) {
        file.settings.code = Some(packed(upload, sha256)?);
    }
    let variables = variables(upload, given.env.as_deref())?;
    if let Some(name) = variables.keys().find(|name| file.settings.secrets.contains_key(*name)) {
        let message =
            format!("`{name}` is in the object's metadata `{ENV_METADATA}`, and in `secrets` of the file too");
        return Err(vec![upload.problem(message, "leave out `--env`, or delete the name from `secrets`")].into());
    }
    file.settings.env.extend(variables);
    Ok(file)
}

/// Returns the number of trials.
fn limit(upload: &Upload, run_cap: Option<&str>) -> Result<Option<u64>, Vec<Problem>> {
    let Some(written) = run_cap else { return Ok(None) };
    match written.parse() {
        Ok(0) | Err(_) => {
            let message = format!("the object's metadata `{RUN_CAP_METADATA}` is no number of trials: {written:?}");
            Err(vec![upload.problem(message, "drop the file with `spotsweep submit --trials 20`, or without it")])
        }
        Ok(run_cap) => Ok(Some(run_cap)),
    }
}

fn packed(upload: &Upload, sha256: &str) -> Result<Code, Vec<Problem>> {
    let message = || format!("the object's metadata `{CODE_METADATA}` is no SHA-256: {sha256:?}");
    let help = "drop the file with `spotsweep submit`, which packs and sends the folder";
    Code::packed(sha256).ok_or_else(|| vec![upload.problem(message(), help)])
}

fn variables(upload: &Upload, written: Option<&str>) -> Result<Environment, Vec<Problem>> {
    let Some(written) = written else { return Ok(Environment::new()) };
    let help = "drop the file with `spotsweep submit --env NAME=VALUE`, or without it";
    let of = |message: String| vec![upload.problem(message, help)];
    let variables: Environment = serde_json::from_str(written)
        .map_err(|error| of(format!("the object's metadata `{ENV_METADATA}` has no variables: {error}")))?;
    match variables.iter().find_map(|(name, value)| variable_problem(name, value)) {
        Some((message, _)) => Err(of(message)),
        None => Ok(variables),
    }
}
