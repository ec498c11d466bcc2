//! The local stack: ministack (S3, DynamoDB, EventBridge, Lambda, CloudFormation) with the real control plane, and the
//! emulator of Batch, EC2 and IMDS.

pub mod batch;
mod build;
pub mod deploy;
pub mod emulated;
pub mod group;
pub mod installation;
mod job_role;
pub mod killed;
pub mod leftovers;
mod ministack;
pub mod package;
pub mod reclaims;
pub mod release;
pub mod run_folder;
pub mod sdk;
pub mod stack;
pub mod state;
mod template;
mod venv;
