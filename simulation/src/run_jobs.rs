//! Runs the jobs of a harness without runners: a function of the attempt says how each container ends.

use std::time::Duration;

use serde_json::Value;
use spotsweep_world::{AttemptKey, Start};

use crate::harness::Harness;
use crate::kernel::{Kernel, Moment};

impl Harness {
    /// Runs Batch until no work is left, and returns the emitted events. `run` gives each attempt's duration in seconds
    /// and its exit code. A negative exit code stands for a reclaim of the instance.
    pub fn run_jobs(&mut self, run: impl Fn(&AttemptKey) -> (u64, i32)) -> Vec<Value> {
        let (mut kernel, mut emitted) = (Kernel::default(), Vec::new());
        loop {
            while let Some(moment) = kernel.due(self) {
                match moment {
                    Moment::Emitted(event) => emitted.push(event),
                    Moment::Started(start) => {
                        let (seconds, exit_code) = run(&start.attempt);
                        kernel.at(self.now + Duration::from_secs(seconds), (start, exit_code));
                    }
                    Moment::Killed(attempt) | Moment::Stopped(attempt, _) => {
                        kernel.cancel(|(start, _): &(Start, i32)| start.attempt == attempt);
                    }
                    // The instance may already be gone by another attempt's reclaim. This is no error.
                    Moment::Own((start, exit_code)) if exit_code < 0 => {
                        let _ = self.cloud.world().reclaim(&start.instance, None, self.now);
                    }
                    Moment::Own((start, exit_code)) => {
                        self.cloud.world().job_exited(&start.attempt, exit_code, self.now);
                    }
                    Moment::Deliver(delivery) => unreachable!("nothing is delivered here: {delivery:?}"),
                }
            }
            let Some(next) = kernel.next_due(self) else { return emitted };
            self.advance(next);
        }
    }
}
