//! An instance gets a notice: it counts for every trial that runs there.

use super::{Decision, workspace};
use crate::store::View;
use crate::workspace::Fact;
use spotsweep_protocol::claim::NoticeKind;

pub(super) fn noticed(view: &View, instance: &str, kind: NoticeKind) -> Decision {
    workspace::told(view, instance, &Fact::Noticed { instance: instance.to_owned(), kind })
}
