//! Checks that the credentials of a trial reach its own outputs and nothing else. `TrialRole` in
//! `infra/control-plane.yaml` decides by the session's tags.

use std::error::Error;

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use spotsweep_protocol::claim::{Access, ClaimRequest, Reply, Request};
use spotsweep_protocol::secret::Secret;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;

use super::subject::Subject;
use super::sweep;
use spotsweep_protocol::failure::{Context, Failure};

/// Name of the object that is put into the trial's outputs.
const OBJECT: &str = "acceptance";

/// What was tried, and whether the role allowed and denied what it should.
pub(super) type Tried = Vec<Result<String, String>>;

/// Asks for credentials as the trial's attempt does, and tries them. None if the attempt has ended meanwhile.
pub(super) async fn probe(subject: &Subject, sweep: &Sweep, trial: &Trial) -> Result<Option<Tried>, Failure> {
    let Some(attempt) = trial.claimed_by else { return Ok(None) };
    let Some(access) = ask(subject, (sweep.claim_token.clone(), trial), attempt).await? else { return Ok(None) };
    let credentials =
        Credentials::new(access.access_key_id, access.secret_access_key, Some(access.session_token), None, "a trial's");
    let own_endpoint = subject.target.config.endpoint_url().is_some();
    let config = aws_sdk_s3::config::Builder::from(&subject.target.config)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .force_path_style(own_endpoint);
    let s3 = aws_sdk_s3::Client::from_conf(config.build());
    let (bucket, index) = (&subject.bucket, trial.index);
    let results = trial.sweep.results_prefix();
    let (own, other) = (trial.sweep.trial_prefix(index), trial.sweep.trial_prefix((index + 1) % sweep::trials()));
    let mut tried = Vec::new();
    for (prefix, whose, is_allowed) in [(&own, "its own outputs", true), (&other, "another trial's outputs", false)] {
        let key = format!("{prefix}{OBJECT}");
        let put = s3.put_object().bucket(bucket).key(key).body(b"put by spotsweep acceptance\n".to_vec().into());
        tried.push(case(&format!("trial {index} puts into {whose}"), is_allowed, put.send().await)?);
    }
    for (key, what, is_allowed) in [
        (format!("{results}trials.jsonl"), "its sweep's parameters", true),
        (format!("{own}{OBJECT}"), "its own outputs", false),
        (sweep::KEY.to_owned(), "the sweep file", false),
    ] {
        let got = s3.get_object().bucket(bucket).key(key).send().await;
        tried.push(case(&format!("trial {index} reads {what}"), is_allowed, got)?);
    }
    Ok(Some(tried))
}

async fn ask(
    subject: &Subject,
    (token, trial): (Option<Secret>, &Trial),
    attempt: u32,
) -> Result<Option<Access>, Failure> {
    let Trial { sweep, index, job, .. } = trial;
    let request = ClaimRequest {
        sweep: sweep.to_string(),
        index: *index,
        job: job.to_string(),
        attempt,
        // The table has the claim token of the sweep and the secret of the runner.
        token,
        secret: trial.secret.clone(),
        request: Request::Access,
    };
    let request = serde_json::to_vec(&request).context(|| "cannot write a request of a trial")?;
    let invoke = aws_sdk_lambda::Client::new(&subject.target.config).invoke();
    let answer = invoke.function_name(&subject.claim_function).payload(Blob::new(request)).send().await;
    let answer = answer.context(|| format!("cannot invoke {} (lambda:InvokeFunction)", subject.claim_function))?;
    let payload = answer.payload().map(Blob::as_ref).unwrap_or_default();
    match serde_json::from_slice(payload) {
        Ok(Reply::Access(access)) => Ok(Some(access)),
        Ok(Reply::Refused { .. }) => Ok(None),
        Ok(
            Reply::Granted(_)
            | Reply::Waiting { .. }
            | Reply::Unavailable { .. }
            | Reply::Accepted {}
            | Reply::Stop { .. },
        )
        | Err(_) => Err(Failure::new(format!(
            "{} issues no credentials to trial {index}; its log says why",
            subject.claim_function
        ))),
    }
}

/// Whether a call was allowed or denied as expected. Another error shows nothing about the role.
fn case<T, E>(what: &str, is_allowed: bool, outcome: Result<T, SdkError<E>>) -> Result<Result<String, String>, Failure>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let was_allowed = match outcome {
        Ok(_) => true,
        Err(error) if error.code() == Some("AccessDenied") => false,
        Err(error) => {
            return Err(Failure::new(format!("{what}: an error that is no refusal")).caused_by(error));
        }
    };
    let text = format!("{what}: {}", if was_allowed { "allowed" } else { "denied" });
    Ok(if was_allowed == is_allowed { Ok(text) } else { Err(text) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use aws_sdk_s3::operation::head_object::HeadObjectError;

    use super::*;

    #[test]
    fn an_unexpected_error_names_its_cause() {
        let error = SdkError::<HeadObjectError>::timeout_error("the very cause");
        let failure = case("HeadObject", true, Err::<(), _>(error)).unwrap_err();
        assert!(failure.to_string().contains("the very cause"), "{failure}");
    }
}
