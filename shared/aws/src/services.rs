//! The services that a function's main.rs adds: the commands of a noun over the SDKs that they use.

use aws_config::SdkConfig;
use spotsweep_control_plane::execute::{self, Service};

#[cfg(feature = "batch")]
use super::batch::BatchSdk;
#[cfg(feature = "s3")]
use super::draw::System;
#[cfg(feature = "ec2")]
use super::ec2::Ec2Sdk;
#[cfg(feature = "ecs")]
use super::ecs::EcsSdk;
#[cfg(feature = "eventbridge")]
use super::events::EventBridgeSdk;
#[cfg(all(feature = "ec2", feature = "pricing", feature = "s3"))]
use super::pricing::PricingSdk;
#[cfg(feature = "s3")]
use super::s3::S3Sdk;
#[cfg(feature = "secretsmanager")]
use super::secrets_manager::SecretsManagerSdk;
#[cfg(all(feature = "eventbridge", feature = "sns"))]
use super::sns::SnsSdk;
#[cfg(feature = "ssm")]
use super::ssm::SsmSdk;
#[cfg(feature = "sts")]
use super::sts::StsSdk;
#[cfg(any(feature = "batch", feature = "ec2"))]
use super::wait::Timer;

/// Returns the service that issues credentials to attempts.
#[cfg(feature = "sts")]
pub fn access(config: &SdkConfig) -> impl Service + use<> {
    execute::access(StsSdk::new(config))
}

/// Returns the service that submits, finds, describes and ends jobs.
#[cfg(feature = "batch")]
pub fn batch(config: &SdkConfig) -> impl Service + use<> {
    execute::batch(BatchSdk::new(config), Timer)
}

/// Returns the service that creates, attaches, copies and deletes trials' volumes.
#[cfg(feature = "ec2")]
pub fn ebs(config: &SdkConfig) -> impl Service + use<> {
    execute::ebs(Ec2Sdk::new(config), Timer)
}

/// Returns the service that finds the instances on which attempts are placed.
#[cfg(feature = "ecs")]
pub fn ecs(config: &SdkConfig) -> impl Service + use<> {
    execute::ecs(EcsSdk::new(config))
}

/// Returns the service that puts events on the bus.
#[cfg(feature = "eventbridge")]
pub fn bus(config: &SdkConfig) -> impl Service + use<> {
    execute::bus(EventBridgeSdk::new(config))
}

/// Returns the service that puts events on the bus and publishes notifications to the sweep's own topic.
#[cfg(all(feature = "eventbridge", feature = "sns"))]
pub fn bus_and_topics(config: &SdkConfig) -> impl Service + use<> {
    execute::bus_and_topics(EventBridgeSdk::new(config), SnsSdk::new(config))
}

/// Returns the service that finds trials' lines.
#[cfg(feature = "s3")]
pub fn lines(config: &SdkConfig) -> impl Service + use<> {
    execute::lines(S3Sdk::new(config))
}

/// Returns the service that gathers the inputs of results, and publishes the results.
#[cfg(all(feature = "ec2", feature = "pricing", feature = "s3"))]
pub fn results(config: &SdkConfig) -> impl Service + use<> {
    let region = config.region().map(|region| region.to_string()).unwrap_or_default();
    execute::results(S3Sdk::new(config), (Ec2Sdk::new(config), PricingSdk::new(config), region))
}

/// Returns the service that finds the GPUs of attempts' containers.
#[cfg(feature = "ecs")]
pub fn tasks(config: &SdkConfig) -> impl Service + use<> {
    execute::tasks(EcsSdk::new(config))
}

/// Returns the service that drains the instances of attempts.
#[cfg(all(feature = "batch", feature = "ecs"))]
pub fn drains(config: &SdkConfig) -> impl Service + use<> {
    execute::drains(BatchSdk::new(config), EcsSdk::new(config))
}

/// Returns the service that looks up the instances of attempts, and terminates them.
#[cfg(all(feature = "batch", feature = "ec2", feature = "ecs"))]
pub fn hosts(config: &SdkConfig) -> impl Service + use<> {
    execute::hosts(BatchSdk::new(config), EcsSdk::new(config), Ec2Sdk::new(config))
}

/// Returns the service that looks up what a sweep names in AWS.
#[cfg(all(feature = "batch", feature = "ec2", feature = "secretsmanager", feature = "ssm"))]
pub fn targets(config: &SdkConfig) -> impl Service + use<> {
    let (batch, ec2) = (BatchSdk::new(config), Ec2Sdk::new(config));
    execute::targets(batch, ec2, SsmSdk::new(config), SecretsManagerSdk::new(config))
}

/// Returns the service that reads dropped files, and writes trials and answers.
#[cfg(feature = "s3")]
pub fn uploads(config: &SdkConfig) -> impl Service + use<> {
    execute::uploads(S3Sdk::new(config), System)
}
