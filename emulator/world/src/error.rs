//! The errors of the AWS APIs.

/// The API that a call belongs to. Each API has its own error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// AWS Batch (restJson1).
    Batch,
    /// Amazon EC2 and EBS (query protocol).
    Ec2,
    /// Amazon ECS (JSON 1.1).
    Ecs,
    /// AWS Fault Injection Service (restJson1).
    Fis,
    /// Service Quotas (JSON 1.1).
    Quotas,
}

/// An error answer, with the code that the SDKs show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// AWS's error code, such as `ClientException`.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// What is wrong, with AWS's text where it is known.
    pub message: String,
}

impl ApiError {
    /// Makes Batch's error for a wrong request.
    pub fn client(message: impl Into<String>) -> Self {
        ApiError { code: "ClientException", status: 400, message: message.into() }
    }

    /// Makes ECS's error for a wrong request.
    pub fn ecs(code: &'static str, message: impl Into<String>) -> Self {
        ApiError { code, status: 400, message: message.into() }
    }

    /// Makes EC2's error for a wrong request, with one of EC2's many codes. It is also for missing capacity, which EC2
    /// lists among the server errors (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>).
    pub fn ec2(code: &'static str, message: impl Into<String>) -> Self {
        let status = if code.starts_with("Insufficient") { 500 } else { 400 };
        ApiError { code, status, message: message.into() }
    }

    /// Makes the error for a feature of AWS that this emulator does not have, so that it is not silently ignored.
    pub fn not_emulated(what: &str) -> Self {
        ApiError::client(format!("{what} is not emulated by spotsweep-emulator; leave it out."))
    }

    /// Makes the error for too many calls.
    pub fn throttled(service: Service) -> Self {
        let message = match service {
            Service::Batch => "Too Many Requests",
            Service::Ec2 => "Request limit exceeded.",
            Service::Ecs | Service::Fis | Service::Quotas => "Rate exceeded",
        };
        let (code, status) = match service {
            Service::Batch => ("TooManyRequestsException", 429),
            Service::Ec2 => ("RequestLimitExceeded", 503),
            Service::Ecs | Service::Fis => ("ThrottlingException", 400),
            Service::Quotas => ("TooManyRequestsException", 400),
        };
        ApiError { code, status, message: message.into() }
    }

    /// Makes a server error.
    pub fn server(service: Service) -> Self {
        let code = match service {
            Service::Batch | Service::Ecs => "ServerException",
            Service::Ec2 => "InternalError",
            Service::Fis => "InternalFailure",
            Service::Quotas => "ServiceException",
        };
        ApiError { code, status: 500, message: "An internal error has occurred.".into() }
    }
}
