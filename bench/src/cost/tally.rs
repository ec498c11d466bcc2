//! The resources that invocations have used, by cause.

use std::collections::BTreeMap;

use serde_json::Value;
use spotsweep_simulation::calls::Call;
use spotsweep_tests::local::Units;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The dropped sweep file.
    Submission,
    /// An event of Batch about a job.
    Jobs,
    /// An event of EC2 about an instance, a volume or a snapshot.
    Workspaces,
    /// A runner's claim, mount, notice, release or end.
    Claims,
    /// A runner's report of figures and seals.
    Reports,
    /// An event for a sweep's report or its end.
    Results,
    Schedule,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) invocations: f64,
    /// The number of invocations that moved a record.
    pub(crate) moving: f64,
    pub(crate) units: Units,
    pub(crate) puts: f64,
    pub(crate) gets: f64,
    /// Our own events.
    pub(crate) events: f64,
    /// Calls of other services than the table's.
    pub(crate) calls: f64,
    /// Seconds of waiting for something other than an answer.
    pub(crate) waited: f64,
}

/// The used resources by cause.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(BTreeMap<Cause, Spent>);

impl Cause {
    pub(crate) const ALL: [Self; 7] =
        [Self::Submission, Self::Jobs, Self::Workspaces, Self::Claims, Self::Reports, Self::Results, Self::Schedule];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Submission => "submission",
            Self::Jobs => "job events",
            Self::Workspaces => "EC2's events",
            Self::Claims => "claims",
            Self::Reports => "reports",
            Self::Results => "results",
            Self::Schedule => "schedule",
        }
    }

    /// Whether each trial has invocations of this cause. The others come once a sweep, or by the clock.
    fn grows_with_trials(self) -> bool {
        match self {
            Self::Jobs | Self::Workspaces | Self::Claims | Self::Reports => true,
            Self::Submission | Self::Results | Self::Schedule => false,
        }
    }

    pub(super) fn of(event: &Value) -> Self {
        match event["source"].as_str() {
            Some("aws.s3") => Self::Submission,
            Some("aws.batch") => Self::Jobs,
            Some("aws.ec2") => Self::Workspaces,
            Some("aws.events") => Self::Schedule,
            Some(_our_own) => Self::Results,
            None if event["request"] == "report" => Self::Reports,
            None => Self::Claims,
        }
    }
}

impl Tally {
    pub(super) fn invoked(&mut self, cause: Cause, units: Units, calls: &[Call], waited: f64) {
        let made = |action: &str| calls.iter().filter(|call| call.action == action).count() as f64;
        let spent = self.0.entry(cause).or_default();
        spent.invocations += 1.0;
        spent.moving += f64::from(u8::from(units.moves > 0.0));
        spent.units += units;
        spent.puts += made("PutObject");
        spent.gets += made("GetObject");
        spent.events += made("PutEvents");
        spent.calls += calls.len() as f64;
        spent.waited += waited;
    }

    pub(crate) fn of(&self, cause: Cause) -> Spent {
        self.0.get(&cause).copied().unwrap_or_default()
    }

    /// Returns the resources for a cause in a sweep with `times` as many trials.
    pub(crate) fn scaled(&self, cause: Cause, times: f64) -> Spent {
        let Spent { invocations, moving, units, puts, gets, events, calls, waited } = self.of(cause);
        if cause.grows_with_trials() {
            return Spent {
                invocations: invocations * times,
                moving: moving * times,
                units: units * times,
                puts: puts * times,
                gets: gets * times,
                events: events * times,
                calls: calls * times,
                waited: waited * times,
            };
        }
        // Results read all trials' rows, and one curve of each up to a number of trials that small sweeps do not reach.
        let units = Units { reads: units.reads * times, ..units };
        Spent { units, gets: gets * times, ..self.of(cause) }
    }
}
