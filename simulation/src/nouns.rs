//! The nouns with which the functions are built, as their main.rs files name them.

use spotsweep_control_plane::decide::{
    BatchJobState, EbsState, Noun, Reconcile, SpotInterruption, SweepSettled, SweepUpload, TrialClaim,
};
use spotsweep_control_plane::event::Event;

/// The nouns of all functions.
pub const ALL: &[&dyn Noun] =
    &[&SweepUpload, &BatchJobState, &SpotInterruption, &EbsState, &TrialClaim, &SweepSettled, &Reconcile];

/// The nouns of the function that receives an event.
pub fn of(event: &Event) -> &'static [&'static dyn Noun] {
    match event {
        Event::SweepUploaded(_) | Event::SweepKeeping(_) => &[&SweepUpload],
        Event::JobChanged(_) => &[&BatchJobState],
        Event::InstanceNoticed { .. } => &[&SpotInterruption],
        Event::ResourceChanged { .. } => &[&EbsState],
        Event::TrialRequested(_) => &[&TrialClaim],
        Event::SweepSettling(..) | Event::SweepRunning(..) => &[&SweepSettled],
        Event::ReconcileDue => &[&Reconcile, &SweepUpload],
        Event::Unknown { .. } => &[],
    }
}
