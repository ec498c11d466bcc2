//! TerminateJobs and CancelJobs, which take so many jobs a call.

use spotsweep_control_plane::command::STOPPED_IDS;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::stop::StopReason;
use spotsweep_world::batch::StopJobs;

use super::{Cloud, Executed};

impl Cloud {
    pub(super) async fn terminate_jobs(&self, sweep: SweepId, jobs: &[String], reason: &StopReason) -> Executed {
        for request in requests(jobs, reason) {
            self.batch("TerminateJobs", |world| world.terminate_jobs(&request)).await??;
        }
        Ok(vec![Outcome::JobsTerminated(sweep)])
    }

    pub(super) async fn cancel_jobs(&self, sweep: SweepId, jobs: &[String], reason: &StopReason) -> Executed {
        for request in requests(jobs, reason) {
            self.batch("CancelJobs", |world| world.cancel_jobs(&request)).await??;
        }
        Ok(vec![Outcome::WaitingCancelled(sweep)])
    }
}

fn requests(jobs: &[String], reason: &StopReason) -> impl Iterator<Item = StopJobs> {
    jobs.chunks(STOPPED_IDS).map(|jobs| StopJobs { jobs: jobs.to_vec(), reason: reason.for_batch() })
}
