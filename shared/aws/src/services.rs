//! What a function opens in its main.rs: the commands of a noun, over the SDKs of the services that they reach.

use aws_config::SdkConfig;
use spotsweep_control_plane::execute::{self, Service};

#[cfg(feature = "batch")]
use super::batch::BatchSdk;
#[cfg(feature = "ec2")]
use super::ec2::Ec2Sdk;
#[cfg(feature = "ecs")]
use super::ecs::EcsSdk;
#[cfg(any(feature = "batch", feature = "ec2"))]
use super::wait::Timer;

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
