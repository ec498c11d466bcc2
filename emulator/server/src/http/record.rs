//! Records the AWS requests that reach the emulator, with their answers, in a folder. `tests/botocore` validates them
//! against the SDK's service models, and `tests/iam` evaluates them against the roles of the template.
//!
//! There is one line of JSON for each form of a request. Ids, hashes and times do not make a new form, because no rule
//! of a service model depends on them. The signature and the session token are left out of the headers.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, request};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};

use super::dropped;
use crate::driver::Core;

/// The variable that names the folder. Nothing is recorded if it is not set.
const VARIABLE: &str = "SPOTSWEEP_RECORD";
/// The fewest digits of an id, a hash or a time. Fewer may be a count or a number of seconds, which models limit.
const LEAST_DIGITS: usize = 6;
/// Headers that must not be recorded.
const SECRET: [&str; 2] = ["authorization", "x-amz-security-token"];

/// The file that an emulator writes, and the forms that are in it.
#[derive(Debug)]
pub(crate) struct Recorder {
    written: Mutex<(File, HashSet<u64>)>,
}

impl Recorder {
    /// Returns the recorder that the environment asks for, with a file in the folder.
    ///
    /// # Errors
    /// If the folder or the file cannot be made.
    pub(crate) fn from_env() -> io::Result<Option<Self>> {
        static EMULATORS: AtomicU32 = AtomicU32::new(0);
        let Some(folder) = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) else { return Ok(None) };
        fs::create_dir_all(&folder)?;
        let number = EMULATORS.fetch_add(1, Ordering::Relaxed);
        let name = format!("emulator-{}-{number}.jsonl", std::process::id());
        // Each test may have a process of its own, and the number of an ended process is used again.
        let file = File::options().create(true).append(true).open(Path::new(&folder).join(name))?;
        Ok(Some(Self { written: Mutex::new((file, HashSet::new())) }))
    }

    /// Writes an exchange if its request, or a part of its answer, has a new form.
    fn write(&self, request: &Value, answer: &Value) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, forms) = &mut *written;
        let asked = forms.insert(hash(&form(&request.to_string())));
        let body = answer["body"].as_str().unwrap_or_default();
        let action = (&request["headers"]["x-amz-target"], &request["path"], action(request));
        let action = format!("{action:?} {}", answer["status"]);
        let mut is_new = asked;
        for part in body.split(['{', '<']) {
            is_new |= forms.insert(hash(&(&action, form(part))));
        }
        if is_new {
            let line = json!({ "request": request, "answer": answer }).to_string() + "\n";
            if let Err(error) = file.write_all(line.as_bytes()) {
                tracing::error!(%error, "the emulator cannot record a request");
            }
        }
    }
}

/// Returns EC2's action, which is in the body.
fn action(request: &Value) -> Option<&str> {
    request["body"].as_str()?.split('&').find(|parameter| parameter.starts_with("Action="))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the text with a zero for each character of an id, a hash or a time, so that lengths are unchanged.
fn form(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || "-:.%+TZ".contains(c);
    let mut form = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (run, behind) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        match run.chars().filter(char::is_ascii_digit).count() < LEAST_DIGITS {
            true => form.push_str(run),
            false => form.extend(run.chars().map(|_| '0')),
        }
        let (between, next) = behind.split_at(behind.find(is_part).unwrap_or(behind.len()));
        form.push_str(between);
        rest = next;
    }
    form
}

/// Passes a request on, and records it with its answer. The emulator's own API and the metadata service are not part of
/// a service model.
pub(super) async fn exchange(
    State((core, recorder)): State<(Arc<Core>, Arc<Recorder>)>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path.starts_with("/_emulator/") || path.starts_with("/imds/") {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    // A request that the client has aborted does not count.
    let Ok(body) = to_bytes(body, usize::MAX).await else { return dropped() };
    let asked = asked(&core, &head, &body);
    let (head, answer) = next.run(Request::from_parts(head, Body::from(body))).await.into_parts();
    let Ok(answer) = to_bytes(answer, usize::MAX).await else {
        recorder.write(&asked, &json!({ "status": null }));
        return dropped();
    };
    let body = String::from_utf8_lossy(&answer);
    recorder.write(&asked, &json!({ "status": head.status.as_u16(), "headers": plain(&head.headers), "body": body }));
    Response::from_parts(head, Body::from(answer))
}

fn asked(core: &Core, head: &request::Parts, body: &Bytes) -> Value {
    json!({
        "method": head.method.as_str(),
        "path": head.uri.path(),
        "query": head.uri.query().unwrap_or_default(),
        "headers": plain(&head.headers),
        "signed": signed(&head.headers),
        "body": String::from_utf8_lossy(body),
        "tags": tags(core, body),
    })
}

fn plain(headers: &HeaderMap) -> BTreeMap<&str, String> {
    let kept = headers.iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
    kept.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect()
}

/// Returns `KEY/DATE/REGION/SERVICE` of the signature, which is no secret: AWS's "Elements of an AWS API request
/// signature".
fn signed(headers: &HeaderMap) -> Option<&str> {
    let credential = headers.get("authorization")?.to_str().ok()?.split_once("Credential=")?.1;
    Some(credential.split_once("/aws4_request")?.0)
}

/// Returns the tags that the resources of a request to EC2 or ECS have before it, because conditions of roles refer to
/// them.
fn tags(core: &Core, body: &Bytes) -> BTreeMap<String, BTreeMap<String, String>> {
    let named = form_urlencoded::parse(body).map(|(_, value)| value.into_owned());
    let ids = named.filter(|value| ["vol-", "snap-", "i-"].iter().any(|kind| value.starts_with(kind)));
    let of_ecs = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let of_ecs = of_ecs["containerInstances"].as_array().into_iter().flatten();
    let ids: Vec<String> = ids.chain(of_ecs.filter_map(|arn| arn.as_str().map(str::to_owned))).collect();
    if ids.is_empty() {
        return BTreeMap::new();
    }
    core.with(|world, _now| ids.into_iter().filter_map(|id| world.tags(&id).map(|tags| (id, tags.0))).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_make_no_new_form_and_numbers_do() {
        assert_eq!(form("VolumeId=vol-0123456789abcdef0"), form("VolumeId=vol-0fedcba987654321a"));
        assert_eq!(form("at 2026-11-23T14:01:14Z."), form("at 2027-01-02T03:04:05Z."));
        assert_ne!(form("timeout=60"), form("timeout=59"));
        assert_ne!(form("vol-0123456789abcdef0"), form("vol-0123456789abcdef01"), "lengths are limited");
        assert_eq!(form("decade été effaced"), "decade été effaced");
    }

    #[test]
    fn a_signature_gives_its_scope_and_no_header_gives_a_secret() {
        let mut headers = HeaderMap::new();
        let signature =
            "AWS4-HMAC-SHA256 Credential=AKIA/20261123/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=ab";
        headers.insert("authorization", signature.parse().unwrap());
        headers.insert("x-amz-security-token", "secret".parse().unwrap());
        headers.insert("x-amz-target", "Logs.Get".parse().unwrap());
        assert_eq!(signed(&headers), Some("AKIA/20261123/us-east-1/ec2"));
        assert_eq!(plain(&headers), BTreeMap::from([("x-amz-target", "Logs.Get".to_owned())]));
    }
}
