//! Injected bugs. They show that the simulation finds violations: one or more bugs for each invariant.

/// An injected bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedBug {
    /// The source of a migration is deleted when the new volume is created, as the published script does.
    DeleteSourceEarly,
    /// A volume is created from the oldest snapshot of its trial.
    CopyOldSnapshot,
    /// A runner mounts a workspace for which it must still wait.
    MountUnasked,
    /// A job is submitted again without looking it up at Batch.
    OverlookJobs,
    /// A record is written even if it has changed since it was read.
    CommitBlindly,
    /// Nothing is ever deleted.
    KeepEverything,
    /// The schedule never fires.
    StopSchedule,
    /// The function of EBS's events may not attach volumes.
    RevokeAttach,
    /// A volume is described fifty times in a row.
    AskAgainAndAgain,
    /// A claim of the runner leaves no audit entry.
    SkipAudits,
    /// A runner that begins on an instance under notice leaves it at once.
    LeaveAtOnce,
    /// A record forgets the instances under notice.
    ForgetNotices,
    /// A denied deletion counts as done.
    ForgetDenied,
    /// Every refusal counts as temporary.
    TakeAllForPassing,
    /// Every refusal counts as permanent.
    TakeAllForLasting,
    /// A runner takes exit code 0 after a stop signal for a complete training.
    TrustExitCode,
    /// A runner whose place is not known ends its trial.
    FailWithoutPlace,
    /// The seal takes files that are not written out.
    SealUnwritten,
    /// A seal of a running command counts as one after its end, so newer checkpoints count as incomplete.
    SealAsLast,
    /// Blocks that were never written are not detected.
    OverlookHoles,
    /// The runner makes no kept copies of sealed checkpoints.
    KeepNothing,
    /// If a training fails on its checkpoint, its trial ends.
    NeverRollBack,
    /// A runner continues its training after the answer that its trial is stopped early.
    TrainOn,
    /// A record forgets that its trial is stopped early.
    ForgetStops,
    /// The newest report of a rung counts instead of the first.
    ReplaceRungs,
    /// A record forgets the parameters that were suggested for its trial.
    ForgetSuggestions,
    /// Parameters are suggested without regard to the other trials, and are not reserved.
    OverlookPeers,
    /// Trials are compared with the inverted values of the others.
    CompareReversed,
    /// A training knows the secret of the runner that has its trial.
    LeakSecrets,
    /// A training knows the claim token of its sweep.
    LeakTokens,
    /// A trial does not record the sweeps that go on from it.
    ForgetContinued,
    /// A runner does not check whether its instance can train.
    SkipInstanceCheck,
    /// An instance that cannot train is not drained.
    KeepUnfit,
    /// If a training fails because of its instance, the runner ends the trial with the training's exit code.
    BlameTrial,
    /// A dead instance is not terminated.
    KeepDead,
    /// A missing report counts as proof that an instance is dead.
    TrustSilence,
    /// A runner mounts the disk to which its volume's link points.
    TrustLink,
    /// A runner uses the first GPUs of its instance and ignores its grant.
    TakeFirstGpus,
    /// The stop signal goes only to the first process, as Docker and ECS send it.
    SignalFirst,
    /// The stop signal goes to every process of the command.
    SignalAll,
    /// The id of a created volume is lost.
    LoseIds,
    /// Volumes and snapshots are not looked up by their operation.
    SkipLookUp,
    /// If EC2 refuses a volume's initialization rate, the volume is not requested again without it.
    KeepRate,
    /// A volume is looked up by its trial instead of its operation, and the oldest one is used.
    TakeOldest,
    /// The last trial of several pages is left out.
    DropPages,
    /// A runner unmounts its workspace before the last seal.
    SealAfterUnmount,
    /// A runner releases its workspace before the last seal.
    ReleaseBeforeSeal,
    /// A runner that stops its command ignores a second request.
    IgnoreSecondStop,
    /// A runner that gets no answer repeats its request forever.
    AskForever,
    /// A command gets its grace twice.
    CountGraceTwice,
    /// A runner uses what is on the disk of a data set, even if that is a part of it.
    TrustLeftovers,
    /// A runner uses a data set that was fetched before the last boot of its instance.
    TrustEarlierBoot,
    /// A runner makes room by removing data sets that others use.
    EvictUsed,
    /// A runner that has the shared lock of a data set does not look at its content again.
    SkipSecondLook,
    /// A runner changes the folder of a data set without its exclusive lock.
    FetchUnlocked,
    /// A runner gives up the shared locks of its data sets when its command starts.
    DropSharedLocks,
    /// A runner counts bytes as free that another one will still write.
    OverlookReserved,
    /// A record forgets how far attempts have fetched their data sets.
    ForgetFetches,
}

const DISTURBED: &[&str] = &[
    "no data set is changed while an attempt uses it",
    "a training reads only data sets that are complete",
    "no disk of data sets gets fuller than its size",
];
const FETCHED_TWICE: &[&str] = &[
    "no data set is fetched by two attempts of an instance at once",
    "a training reads only data sets that are complete",
    "no data set is changed while an attempt uses it",
];
const COSTLY: &[&str] =
    &["an interruption while data is fetched costs no trial its last attempt", "every trial has succeeded"];

impl InjectedBug {
    /// All injected bugs.
    pub const ALL: [Self; 58] = [
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
        Self::TrustLeftovers,
        Self::TrustEarlierBoot,
        Self::EvictUsed,
        Self::SkipSecondLook,
        Self::FetchUnlocked,
        Self::DropSharedLocks,
        Self::OverlookReserved,
        Self::ForgetFetches,
    ];

    /// The invariants of which this bug breaks one first.
    pub fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::DeleteSourceEarly => &["what was sealed is held"],
            // A repeated call names another snapshot under the same token. EC2 refuses it, and the volume has no owner.
            Self::CopyOldSnapshot => &["what was sealed is held", "progress is not lost", "nothing is left over"],
            Self::MountUnasked => &["at most one attempt holds a workspace"],
            Self::OverlookJobs => &["one file, one submission"],
            // An older record causes the deletion of the only volume, or overwrites the trial's outcome.
            Self::CommitBlindly => &[
                "nothing is left over",
                "one file, one submission",
                "what was sealed is held",
                "every trial has succeeded",
            ],
            Self::KeepEverything | Self::ForgetDenied => &["nothing is left over", "after all that was kept has gone"],
            // The sweep that continues from what is kept has no time limit of its own, but that of a run.
            Self::StopSchedule => &["nothing stands still", "not settled after"],
            Self::RevokeAttach => &["each function does only what its role allows"],
            // EC2 also throttles so many calls.
            Self::AskAgainAndAgain => &["calls are bounded", "nothing stands still"],
            Self::SkipAudits => &["audit entries tell the way"],
            Self::LeaveAtOnce => &["a reclaim costs a trial at most one attempt"],
            Self::TakeAllForPassing => &["a refusal that lasts costs a trial that has not trained"],
            Self::TakeAllForLasting | Self::FailWithoutPlace | Self::NeverRollBack => &["every trial has succeeded"],
            Self::TrustExitCode => &["a trial that has succeeded has trained to its end"],
            // The next attempt finds an incomplete checkpoint that was sealed, and may misjudge another one because of
            // it.
            Self::SealUnwritten => &[
                "what was sealed is held",
                "progress is not lost",
                "no complete checkpoint is put aside",
                "every trial has succeeded",
            ],
            Self::KeepNothing => &["what was sealed is held", "progress is not lost", "every trial has succeeded"],
            Self::SealAsLast => &["no complete checkpoint is put aside"],
            // A pointer of zeros also goes undetected: the training fails, and a checkpoint is quarantined.
            Self::OverlookHoles => {
                &["a training goes on from what one save has written", "no complete checkpoint is put aside"]
            }
            Self::LeakSecrets => &["no forged request is taken"],
            // A forged claim for a later attempt ends the trial.
            Self::LeakTokens => &["no forged request is taken", "every trial has succeeded"],
            Self::ForgetContinued => &["a snapshot that an open sweep names outlives it"],
            // The same trial fails on two unfit instances.
            Self::SkipInstanceCheck => {
                &["every trial has succeeded", "no trial fails because of its instance where others train"]
            }
            Self::KeepUnfit => &["an instance that cannot train takes one more attempt"],
            Self::BlameTrial => &["no trial fails because of its instance where others train"],
            Self::KeepDead => &["no dead instance is billed for long"],
            Self::TrustSilence => &["no instance is ended that works"],
            Self::TrustLink => &["a trial trains only on its own volume"],
            Self::SignalFirst | Self::SignalAll => &["a training saves at the stop signal"],
            Self::LoseIds | Self::DropPages => &["nothing stands still"],
            // What is kept of a trial hides it until the keep time has ended.
            Self::SkipLookUp => &["nothing is left over", "after all that was kept has gone"],
            // A trial fails once its attempts are used up. While an attempt still waits, the trial goes on.
            Self::KeepRate => &["every trial has succeeded", "nothing stands still"],
            // The source of a migration, or a volume that is being deleted, counts as the new volume.
            Self::TakeOldest => &["what was sealed is held", "every trial has succeeded"],
            Self::SealAfterUnmount | Self::ReleaseBeforeSeal => &["an attempt that has the time seals its workspace"],
            Self::IgnoreSecondStop | Self::CountGraceTwice => &["a runner that knows of its end has closed"],
            Self::AskForever => &["a runner that is not answered ends"],
            Self::TakeFirstGpus => &["no GPU is used by two trials at once"],
            Self::TrainOn => &["a trial that is stopped early trains no further"],
            Self::ForgetStops => {
                &["a decision at a rung is made once, and stays", "a trial that has succeeded has trained to its end"]
            }
            Self::OverlookPeers => &["no two trials are given the same parameters"],
            // The threshold of the decision differs from that of the values on record later.
            Self::ReplaceRungs => {
                &["a decision at a rung is made once, and stays", "no trial better than the cut is stopped"]
            }
            Self::ForgetSuggestions => &["a decision at a rung is made once, and stays"],
            Self::CompareReversed => &["no trial better than the cut is stopped"],
            Self::TrustLeftovers | Self::TrustEarlierBoot | Self::SkipSecondLook | Self::DropSharedLocks => {
                &["a training reads only data sets that are complete"]
            }
            // What is removed may be about to be used, or about to be complete.
            Self::EvictUsed => DISTURBED,
            Self::FetchUnlocked => FETCHED_TWICE,
            Self::OverlookReserved => &["no disk of data sets gets fuller than its size"],
            // The last attempt may be one that counts.
            Self::ForgetFetches => COSTLY,
            Self::ForgetNotices => &["nothing is attached to an instance that is known to be under notice"],
        }
    }
}
