//! What was not as usual with a trial, for people.

use super::{Standing, Trial};
use spotsweep_protocol::words::figure;

/// Of a trial that has succeeded.
const NO_MODEL: &str = "no model was collected: the training left no file in $SPOTSWEEP_OUTPUT, and no checkpoint";

impl Trial {
    /// What was not as usual with its workspace, its outputs and its metrics, and last a silence and a stall: a sentence
    /// each.
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
        let last = self.kept_note().into_iter().chain(self.silence_note()).chain(self.stall_note());
        of_workspace.chain(no_model).chain(left_out).chain(unread).chain(doubtful).chain(last).collect()
    }

    /// What is kept of it after its end.
    pub fn kept_note(&self) -> Option<String> {
        let kept = self.workspace.as_ref()?.kept()?;
        Some(match kept.snapshot {
            Some(snapshot) => format!("workspace kept until {} as {snapshot}", kept.until),
            None => format!("workspace kept until {}, not saved in a snapshot yet", kept.until),
        })
    }
}
