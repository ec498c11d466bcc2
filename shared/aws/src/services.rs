//! What a function opens in its main.rs: the commands of a noun, over the SDKs of the services that they reach.

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
#[cfg(all(feature = "eventbridge", feature = "sns"))]
use super::sns::SnsSdk;
#[cfg(feature = "sts")]
use super::sts::StsSdk;
#[cfg(any(feature = "batch", feature = "ec2"))]
use super::wait::Timer;

/// Issues credentials to attempts.
#[cfg(feature = "sts")]
pub fn access(config: &SdkConfig) -> impl Service + use<> {
    execute::access(StsSdk::new(config))
}

/// Submits, finds, describes and ends jobs.
#[cfg(feature = "batch")]
pub fn batch(config: &SdkConfig) -> impl Service + use<> {
    execute::batch(BatchSdk::new(config), Timer)
}

/// Makes, moves, copies and deletes trials' volumes.
#[cfg(feature = "ec2")]
pub fn ebs(config: &SdkConfig) -> impl Service + use<> {
    execute::ebs(Ec2Sdk::new(config), Timer)
}

/// Finds the instances that attempts are about to run on.
#[cfg(feature = "ecs")]
pub fn ecs(config: &SdkConfig) -> impl Service + use<> {
    execute::ecs(EcsSdk::new(config))
}

/// Says it on the bus.
#[cfg(feature = "eventbridge")]
pub fn bus(config: &SdkConfig) -> impl Service + use<> {
    execute::bus(EventBridgeSdk::new(config))
}

/// Says it on the bus, and tells the sweep's own topic.
#[cfg(all(feature = "eventbridge", feature = "sns"))]
pub fn bus_and_topics(config: &SdkConfig) -> impl Service + use<> {
    execute::bus_and_topics(EventBridgeSdk::new(config), SnsSdk::new(config))
}

/// Finds trials' lines.
#[cfg(feature = "s3")]
pub fn lines(config: &SdkConfig) -> impl Service + use<> {
    execute::lines(S3Sdk::new(config))
}

/// Gathers the results of a sweep, and publishes its report.
#[cfg(all(feature = "ec2", feature = "pricing", feature = "s3"))]
pub fn results(config: &SdkConfig) -> impl Service + use<> {
    let region = config.region().map(|region| region.to_string()).unwrap_or_default();
    execute::results(S3Sdk::new(config), (Ec2Sdk::new(config), PricingSdk::new(config), region))
}

/// Finds the GPUs of attempts' containers.
#[cfg(feature = "ecs")]
pub fn tasks(config: &SdkConfig) -> impl Service + use<> {
    execute::tasks(EcsSdk::new(config))
}

/// Drains the instances of attempts.
#[cfg(all(feature = "batch", feature = "ecs"))]
pub fn drains(config: &SdkConfig) -> impl Service + use<> {
    execute::drains(BatchSdk::new(config), EcsSdk::new(config))
}

/// Looks at the instances of attempts, and ends them.
#[cfg(all(feature = "batch", feature = "ec2", feature = "ecs"))]
pub fn hosts(config: &SdkConfig) -> impl Service + use<> {
    execute::hosts(BatchSdk::new(config), EcsSdk::new(config), Ec2Sdk::new(config))
}

/// Looks up what a sweep is to run on and with.
#[cfg(all(feature = "batch", feature = "ec2"))]
pub fn targets(config: &SdkConfig) -> impl Service + use<> {
    execute::targets(BatchSdk::new(config), Ec2Sdk::new(config))
}

/// Reads dropped files, writes trials and answers.
#[cfg(feature = "s3")]
pub fn uploads(config: &SdkConfig) -> impl Service + use<> {
    execute::uploads(S3Sdk::new(config), System)
}
