//! What a function opens in its main.rs: the commands of a noun, over the SDKs of the services that they reach.

use aws_config::SdkConfig;
use spotsweep_control_plane::execute::{self, Service};

use super::ec2::ec2;
use super::wait::Timer;

/// Makes, moves, copies and deletes trials' volumes.
pub fn ebs(config: &SdkConfig) -> impl Service + use<> {
    execute::ebs(ec2(config), Timer)
}
