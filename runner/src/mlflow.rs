//! MLflow, if the job names a server: all attempts of a trial are one run.
//!
//! The runner makes no run: a script chooses its experiment itself, and `mlflow.start_run` fails if `MLFLOW_RUN_ID`
//! names a run of another one. Instead the runner tags every run of the script with the trial. It finds the run by this
//! tag and gives it to a later attempt.

use std::time::Duration;

use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::base64;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// The server's address (mlflow 3.17, `mlflow/environment_variables.py`).
const SERVER: &str = "MLFLOW_TRACKING_URI";
const USER: &str = "MLFLOW_TRACKING_USERNAME";
const PASSWORD: &str = "MLFLOW_TRACKING_PASSWORD";
const TOKEN: &str = "MLFLOW_TRACKING_TOKEN";
const EXPERIMENT: &str = "MLFLOW_EXPERIMENT_ID";
/// Names the run that `mlflow.start_run` goes on with.
pub(crate) const RUN: &str = "MLFLOW_RUN_ID";
/// Tags of each new run, as a JSON object (`mlflow/tracking/context/system_environment_context.py`).
const CONTEXT: &str = "MLFLOW_RUN_CONTEXT";
const OF_SWEEP: &str = "spotsweep.sweep";
const OF_TRIAL: &str = "spotsweep.trial";
/// The tag of a run within another run.
const PARENT: &str = "mlflow.parentRunId";
/// The limit for each request. After it the training starts in any case.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// The most experiments that are searched, the newest first.
const MOST_EXPERIMENTS: u32 = 1000;
/// MLflow's messages if a run cannot go on: a parameter has another value than in the attempt before, or the script has
/// chosen another experiment.
const REFUSALS: [&str; 2] =
    ["Changing param values is not allowed", "active experiment ID does not match environment run ID"];

/// Reads a variable of the job.
type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The variable with a trial's tags and the job's own tags. `None` without a server.
pub(crate) fn tags(sweep: &str, trial: &str, inherited: Inherited<'_>) -> Option<(String, String)> {
    set(SERVER, inherited)?;
    let own = set(CONTEXT, inherited).and_then(|own| serde_json::from_str::<Map<String, Value>>(&own).ok());
    let mut tags = own.unwrap_or_default();
    for (name, value) in [(OF_SWEEP, sweep), (OF_TRIAL, trial)] {
        tags.insert(name.to_owned(), value.into());
    }
    Some((CONTEXT.to_owned(), Value::Object(tags).to_string()))
}

/// Whether MLflow has refused to go on with the run that it was given. `log` is the end of the training's output.
pub(crate) fn has_refused(log: &[u8]) -> bool {
    let log = String::from_utf8_lossy(log);
    REFUSALS.iter().any(|refusal| log.contains(refusal))
}

fn set(name: &str, inherited: Inherited<'_>) -> Option<String> {
    inherited(name).filter(|value| !value.is_empty())
}

/// A server that answers MLflow's REST API.
pub(crate) struct Server {
    url: String,
    authorization: Option<String>,
    /// The only experiment that is searched, if the job names it.
    experiment: Option<String>,
    connector: Connector,
}

impl Server {
    /// The job's server, if it is reached by HTTP and the job does not choose a run itself.
    pub(crate) fn of(connector: Connector, inherited: Inherited<'_>) -> Option<Self> {
        let url = set(SERVER, inherited).filter(|url| url.starts_with("http://") || url.starts_with("https://"))?;
        if set(RUN, inherited).is_some() {
            return None;
        }
        // As in mlflow/utils/rest_utils.py, a name and password take precedence over a token.
        let basic = set(USER, inherited).zip(set(PASSWORD, inherited));
        let basic = basic.map(|(user, password)| format!("Basic {}", base64::encode(format!("{user}:{password}"))));
        let authorization = basic.or_else(|| set(TOKEN, inherited).map(|token| format!("Bearer {token}")));
        let url = url.trim_end_matches('/').to_owned();
        Some(Self { url, authorization, experiment: set(EXPERIMENT, inherited), connector })
    }

    /// The run of the trial's earlier attempts. `None` if there is none, or if there are several: then it is not known
    /// which one the script goes on with.
    ///
    /// # Errors
    /// What is wrong with the server's answer, or that there is none.
    pub(crate) async fn run_of(&self, trial: &str) -> Result<Option<String>, String> {
        let experiments = match &self.experiment {
            Some(experiment) => vec![json!(experiment)],
            None => self.experiments().await?,
        };
        let filter = format!("tags.`{OF_TRIAL}` = '{trial}'");
        let wanted = json!({"experiment_ids": experiments, "filter": filter, "max_results": 100});
        let found = self.post("runs/search", &wanted).await?;
        let all = found["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut outer = all.iter().filter(|run| !is_within_another(run));
        let only = outer.next().filter(|_| outer.next().is_none());
        Ok(only.and_then(|run| run["info"]["run_id"].as_str()).map(str::to_owned))
    }

    async fn experiments(&self) -> Result<Vec<Value>, String> {
        let newest = json!({"max_results": MOST_EXPERIMENTS, "order_by": ["last_update_time DESC"]});
        let found = self.post("experiments/search", &newest).await?;
        let experiments = found["experiments"].as_array().into_iter().flatten();
        Ok(experiments.map(|experiment| experiment["experiment_id"].clone()).collect())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let mut request = HttpRequest::new(SdkBody::from(body.to_string()));
        request.set_method("POST").map_err(|error| error.to_string())?;
        request
            .set_uri(format!("{}/api/2.0/mlflow/{path}", self.url))
            .map_err(|_error| "its URL is none".to_owned())?;
        let headers = request.headers_mut();
        headers.insert("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            headers
                .try_insert("authorization", authorization.clone())
                .map_err(|_error| "its token is none".to_owned())?;
        }
        let answer = async {
            let answer = self.connector.call(request).await.map_err(|error| error.to_string())?;
            let status = answer.status();
            let body = ByteStream::new(answer.into_body()).collect().await.map_err(|error| error.to_string())?;
            if !status.is_success() {
                return Err(format!("it answers with status {}", status.as_u16()));
            }
            serde_json::from_slice(&body.into_bytes()).map_err(|error| error.to_string())
        };
        timeout(ANSWER_LIMIT, answer).await.unwrap_or_else(|_elapsed| Err("it does not answer".to_owned()))
    }
}

fn is_within_another(run: &Value) -> bool {
    let tags = run["data"]["tags"].as_array().into_iter().flatten();
    tags.into_iter().any(|tag| tag["key"] == PARENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn runs_get_the_trial_beside_the_jobs_own_tags() {
        let job = |context: &'static str| {
            move |name: &str| match name {
                SERVER => Some("http://server".to_owned()),
                CONTEXT => Some(context.to_owned()),
                _ => None,
            }
        };
        let tagged = |context| {
            let (name, value) = tags("s-1", "s-1-7", &job(context)).unwrap();
            assert_eq!(name, CONTEXT);
            serde_json::from_str::<Value>(&value).unwrap()
        };
        assert_eq!(tagged(""), json!({"spotsweep.sweep": "s-1", "spotsweep.trial": "s-1-7"}));
        assert_eq!(
            tagged(r#"{"team": "vision"}"#),
            json!({"spotsweep.sweep": "s-1", "spotsweep.trial": "s-1-7", "team": "vision"})
        );
        assert_eq!(tags("s-1", "s-1-7", &|_| None), None);
    }

    #[test]
    fn a_refused_run_shows() {
        let log = "mlflow.exceptions.MlflowException: INVALID_PARAMETER_VALUE: Changing param values is not allowed. \
                   Param with key='host' was already logged with value='a' for run ID='1'.";
        assert!(has_refused(log.as_bytes()) && !has_refused(b"MlflowException: no such run"));
    }
}
