//! CloudFormation stacks: what they are now, and the course of a change.

pub(super) mod existing;
pub(super) mod progress;
