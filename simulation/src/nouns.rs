//! The nouns that the functions are built with, as each main.rs names them.

use spotsweep_control_plane::decide::{
    BatchJobState, EbsState, Noun, Reconcile, SpotInterruption, SweepSettled, SweepUpload, TrialClaim,
};
use spotsweep_control_plane::event::Event;

/// Those of all functions.
pub const ALL: &[&dyn Noun] =
    &[&SweepUpload, &BatchJobState, &SpotInterruption, &EbsState, &TrialClaim, &SweepSettled, &Reconcile];

/// Those of the function that an event reaches.
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
