//! Notes for people about what was unusual with a trial.

use super::{Standing, Trial};
use spotsweep_protocol::words::figure;

/// The note of a trial that has succeeded without a model.
const NO_MODEL: &str = "no model was collected: the training left no file in $SPOTSWEEP_OUTPUT, and no checkpoint";

impl Trial {
    /// Returns what was unusual with the trial's workspace, its outputs and its metrics, and last its kept workspace, data
    /// that is being fetched, a silence and a stall. Each note is a sentence.
    pub fn notes(&self) -> Vec<String> {
        let of_workspace = self.workspace.iter().flat_map(|workspace| &workspace.notes).cloned();
        let left_out = self.end.iter().flat_map(|end| &end.outputs.left_out);
        let left_out = left_out.map(|output| format!("output not collected: {output}"));
        let unread = self.end.iter().flat_map(|end| &end.outputs.unread);
        let unread = unread.map(|what| format!("not searched for metrics: {what}"));
        let has_none = self.end.as_ref().is_some_and(|end| end.outputs.without_files);
        let no_model = (has_none && self.standing() == Standing::Succeeded).then(|| NO_MODEL.to_owned());
        let doubtful = self.metrics.iter().filter_map(|(name, metric)| {
            let (last, other) = (figure(metric.last), figure(metric.other?));
            let step = metric.step.map(|step| format!(" for step {}", figure(step))).unwrap_or_default();
            Some(format!("{name} was logged as {last} and as {other}{step}: {last} counts"))
        });
        let states = [self.kept_note(), self.fetch_note(), self.silence_note(), self.stall_note()];
        let last = states.into_iter().flatten();
        of_workspace.chain(no_model).chain(left_out).chain(unread).chain(doubtful).chain(last).collect()
    }

    /// Returns the note about the workspace that is kept after the trial's end.
    pub fn kept_note(&self) -> Option<String> {
        let kept = self.workspace.as_ref()?.kept()?;
        Some(match kept.snapshot {
            Some(snapshot) => format!("workspace kept until {} as {snapshot}", kept.until),
            None => format!("workspace kept until {}, not saved in a snapshot yet", kept.until),
        })
    }
}
