//! Defects, planted to see that the simulation finds them: one or more for each invariant.

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedBug {
    /// The source of a migration is deleted when its copy is made, as the published script does.
    DeleteSourceEarly,
    /// A copy is made from the oldest snapshot that is there.
    CopyOldSnapshot,
    /// A runner that must wait for its workspace takes it all the same.
    MountUnasked,
    /// Batch is never looked up before a job is submitted again.
    OverlookJobs,
    /// A record is written whatever has happened to it since it was read.
    CommitBlindly,
    /// Nothing is ever deleted.
    KeepEverything,
    /// The schedule never fires.
    StopSchedule,
    /// The function of EBS's events may not attach volumes.
    RevokeAttach,
    /// A volume is looked at fifty times in a row.
    AskAgainAndAgain,
    /// A claim of the runner leaves no audit entry.
    SkipAudits,
    /// A runner that begins on an instance under notice leaves it at once.
    LeaveAtOnce,
    /// Records forget which instance is under notice.
    ForgetNotices,
    /// What may not be deleted counts as deleted.
    ForgetDenied,
    /// Every refusal counts as one that passes.
    TakeAllForPassing,
    /// Every refusal counts as one that lasts.
    TakeAllForLasting,
    /// A runner takes exit code 0 after a stop signal for the end of the training.
    TrustExitCode,
    /// A runner whose place is not known ends its trial.
    FailWithoutPlace,
    /// Files are sealed that are not written out.
    SealUnwritten,
    /// A seal of a running command counts as one after its end: what is newer counts as torn.
    SealAsLast,
    /// Blocks that were never written go unnoticed.
    OverlookHoles,
    /// Nothing is kept of sealed checkpoints.
    KeepNothing,
    /// A training that fails on its checkpoint ends its trial.
    NeverRollBack,
    /// A runner trains on after the answer that its trial is stopped early.
    TrainOn,
    /// A record forgets that its trial is stopped early.
    ForgetStops,
    /// The newest report of a rung counts, not the first.
    ReplaceRungs,
    /// A record forgets which parameters its trial was given.
    ForgetSuggestions,
    /// Parameters are suggested without the other trials in view, and are not reserved.
    OverlookPeers,
    /// Trials are compared with the values of the others upside down.
    CompareReversed,
    /// A training knows the secret of the runner that has its trial.
    LeakSecrets,
    /// A training knows the claim token of its sweep.
    LeakTokens,
    /// A trial does not note the sweeps that go on from it.
    ForgetContinued,
    /// A runner does not look whether its instance can train.
    SkipInstanceCheck,
    /// An instance that cannot train is not drained.
    KeepUnfit,
    /// A runner ends its trial with the code of a training that has failed because of its instance.
    BlameTrial,
    /// A dead instance is not ended.
    KeepDead,
    /// A missing report counts as proof that an instance is dead.
    TrustSilence,
    /// A runner mounts the disk to which the link of its volume leads.
    TrustLink,
    /// A runner takes the first GPUs of its instance, whatever its grant says.
    TakeFirstGpus,
    /// The stop signal goes to the first process only, as Docker and ECS send it.
    SignalFirst,
    /// The stop signal goes to every process of the command.
    SignalAll,
    /// The id of a volume that was made is lost.
    LoseIds,
    /// Volumes and snapshots are not looked up by their operation.
    SkipLookUp,
    /// A volume whose initialization rate EC2 refuses is not asked for again without it.
    KeepRate,
    /// A volume is looked up by its trial instead of its operation, and the oldest one is taken.
    TakeOldest,
    /// The last trial of several pages is not read.
    DropPages,
    /// A runner unmounts its workspace before the last seal.
    SealAfterUnmount,
    /// A runner gives its trial back before the last seal.
    ReleaseBeforeSeal,
    /// A runner that stops its command ignores a second request.
    IgnoreSecondStop,
    /// A runner that is not answered asks on for ever.
    AskForever,
    /// A command gets its grace twice.
    CountGraceTwice,
}

impl InjectedBug {
    /// All of them.
    pub const ALL: [Self; 50] = [
        Self::DeleteSourceEarly,
        Self::CopyOldSnapshot,
        Self::MountUnasked,
        Self::OverlookJobs,
        Self::CommitBlindly,
        Self::KeepEverything,
        Self::StopSchedule,
        Self::RevokeAttach,
        Self::AskAgainAndAgain,
        Self::SkipAudits,
        Self::LeaveAtOnce,
        Self::ForgetNotices,
        Self::ForgetDenied,
        Self::TakeAllForPassing,
        Self::TakeAllForLasting,
        Self::TrustExitCode,
        Self::FailWithoutPlace,
        Self::SealUnwritten,
        Self::SealAsLast,
        Self::OverlookHoles,
        Self::KeepNothing,
        Self::NeverRollBack,
        Self::TrainOn,
        Self::ForgetStops,
        Self::ReplaceRungs,
        Self::ForgetSuggestions,
        Self::OverlookPeers,
        Self::CompareReversed,
        Self::LeakSecrets,
        Self::LeakTokens,
        Self::ForgetContinued,
        Self::SkipInstanceCheck,
        Self::KeepUnfit,
        Self::BlameTrial,
        Self::KeepDead,
        Self::TrustSilence,
        Self::TrustLink,
        Self::TakeFirstGpus,
        Self::SignalFirst,
        Self::SignalAll,
        Self::LoseIds,
        Self::SkipLookUp,
        Self::KeepRate,
        Self::TakeOldest,
        Self::DropPages,
        Self::SealAfterUnmount,
        Self::ReleaseBeforeSeal,
        Self::IgnoreSecondStop,
        Self::AskForever,
        Self::CountGraceTwice,
    ];

    /// Names of the invariants of which it breaks one first.
    pub fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::DeleteSourceEarly => &["what was sealed is held"],
            // The oldest snapshot changes: asked again under the same token, EC2 refuses, and the volume has no owner.
            Self::CopyOldSnapshot => &["what was sealed is held", "progress is not lost", "nothing is left over"],
            Self::MountUnasked => &["at most one attempt holds a workspace"],
            Self::OverlookJobs => &["one file, one submission"],
            // An older record has the only volume deleted, or takes back what has become of the trial.
            Self::CommitBlindly => &[
                "nothing is left over",
                "one file, one submission",
                "what was sealed is held",
                "every trial has succeeded",
            ],
            Self::KeepEverything | Self::ForgetDenied => &["nothing is left over"],
            Self::StopSchedule => &["nothing stands still"],
            Self::RevokeAttach => &["each function does only what its role allows"],
            // EC2 throttles so many calls, too.
            Self::AskAgainAndAgain => &["calls are bounded", "nothing stands still"],
            Self::SkipAudits => &["audit entries tell the way"],
            Self::LeaveAtOnce => &["a reclaim costs a trial at most one attempt"],
            Self::TakeAllForPassing => &["a refusal that lasts costs a trial that has not trained"],
            Self::TakeAllForLasting | Self::FailWithoutPlace => &["every trial has succeeded"],
            Self::TrustExitCode => &["a trial that has succeeded has trained to its end"],
            // The next attempt finds what was sealed to be torn, and may judge another checkpoint by that.
            Self::SealUnwritten => &[
                "what was sealed is held",
                "progress is not lost",
                "no complete checkpoint is put aside",
                "every trial has succeeded",
            ],
            Self::KeepNothing => &["what was sealed is held", "progress is not lost", "every trial has succeeded"],
            Self::SealAsLast => &["no complete checkpoint is put aside"],
            // A pointer of zeros, too: its training fails, and a checkpoint is put aside.
            Self::OverlookHoles => {
                &["a training goes on from what one save has written", "no complete checkpoint is put aside"]
            }
            Self::LeakSecrets => &["no forged request is taken"],
            // A forged claim of a later attempt ends the trial.
            Self::LeakTokens => &["no forged request is taken", "every trial has succeeded"],
            Self::ForgetContinued => &["a snapshot that an open sweep names outlives it"],
            // On two bad instances the same trial fails on both.
            Self::SkipInstanceCheck => {
                &["every trial has succeeded", "no trial fails because of its instance where others train"]
            }
            Self::KeepUnfit => &["an instance that cannot train takes one more attempt"],
            Self::BlameTrial => &["no trial fails because of its instance where others train"],
            Self::KeepDead => &["no dead instance is billed for long"],
            Self::TrustSilence => &["no instance is ended that works"],
            Self::TrustLink => &["a trial trains only on its own volume"],
            Self::SignalFirst | Self::SignalAll => &["a training saves at the stop signal"],
            Self::LoseIds => &["nothing stands still"],
            Self::SkipLookUp => &["nothing is left over"],
            // A trial whose attempts are all used up fails; one of which an attempt still waits goes on.
            Self::KeepRate => &["every trial has succeeded", "nothing stands still"],
            // The source of a copy, or a volume that is being deleted, counts as the new volume.
            Self::TakeOldest => &["what was sealed is held", "every trial has succeeded"],
            Self::DropPages => &["nothing stands still"],
            Self::SealAfterUnmount => &["every trial has succeeded", "progress is not lost", "what was sealed is held"],
            // The snapshot that is kept lacks the last seal: the error begins with the trial.
            Self::ReleaseBeforeSeal => &["sim-", "progress is not lost"],
            Self::IgnoreSecondStop | Self::CountGraceTwice => &["a runner that knows of its end has closed"],
            Self::AskForever => &["a runner that is not answered ends"],
            Self::TakeFirstGpus => &["no GPU is used by two trials at once"],
            Self::TrainOn => &["a trial that is stopped early trains no further"],
            Self::ForgetStops => {
                &["a decision at a rung is made once, and stays", "a trial that has succeeded has trained to its end"]
            }
            Self::OverlookPeers => &["no two trials are given the same parameters"],
            // The cut that was decided by is not the one of the figures that are on record later.
            Self::ReplaceRungs => {
                &["a decision at a rung is made once, and stays", "no trial better than the cut is stopped"]
            }
            Self::ForgetSuggestions => &["a decision at a rung is made once, and stays"],
            Self::CompareReversed => &["no trial better than the cut is stopped"],
            Self::NeverRollBack => &["every trial has succeeded"],
            Self::ForgetNotices => &["nothing is attached to an instance that is known to be under notice"],
        }
    }
}
