//! What was not as usual with a trial, for people.

use super::Trial;

impl Trial {
    /// What was not as usual with its workspace and its outputs, and last a silence and a stall: a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let of_workspace = self.workspace.iter().flat_map(|workspace| &workspace.notes).cloned();
        let left_out = self.end.iter().flat_map(|end| &end.outputs.left_out);
        let left_out = left_out.map(|output| format!("output not collected: {output}"));
        let last = self.kept_note().into_iter().chain(self.silence_note()).chain(self.stall_note());
        of_workspace.chain(left_out).chain(last).collect()
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
