//! Converts errors of the SDKs to errors of calls.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use spotsweep_control_plane::calls::CallError;

/// Converts an error by the code and the HTTP status, if there was an answer.
pub(super) fn call_error<E>(error: SdkError<E, HttpResponse>) -> CallError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    // S3 may answer with status 200 and an error in the body, which says nothing about the request.
    let Some(status) = status.filter(|status| *status >= 300) else {
        return CallError::Unclear(error.into());
    };
    let code = error.code().unwrap_or_default().to_owned();
    let message = error.message().unwrap_or("no reason given").to_owned();
    match CallError::answered(status, code, message) {
        // The SDK's error has more details.
        CallError::Unclear(_) => CallError::Unclear(error.into()),
        clear => clear,
    }
}
