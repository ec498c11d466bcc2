//! The local stack: ministack (S3, DynamoDB, EventBridge, Lambda, CloudFormation) with the real
//! control plane deployed on it, and our emulator of Batch, EC2 and IMDS.

pub(crate) mod batch;
pub(crate) mod build;
pub(crate) mod checkout;
pub(crate) mod deploy;
pub(crate) mod group;
pub(crate) mod job_role;
pub(crate) mod leftovers;
pub(crate) mod ministack;
pub(crate) mod package;
pub(crate) mod run_folder;
pub(crate) mod stack;
pub(crate) mod state;
pub(crate) mod template;
pub(crate) mod venv;
