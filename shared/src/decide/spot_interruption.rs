//! An instance is warned: every trial that runs there hears of it.

use super::Decision;
use crate::claim::NoticeKind;
use crate::event::Event;
use crate::store::View;
use crate::workspace::Fact;

pub(super) fn noticed(view: &View, instance: &str, kind: NoticeKind) -> Decision {
    if view.referring.is_empty() {
        return Decision::ignore(format!("no trial runs on {instance}"));
    }
    let decision = Decision::advance(format!("{} trials on {instance}", view.referring.len()));
    view.referring.iter().cloned().fold(decision, |decision, trial| {
        decision.next(Event::Workspace(trial, Fact::Noticed { instance: instance.to_owned(), kind }))
    })
}
