//! An instance gets a notice: it counts for every trial that runs there.

use super::{Decision, workspace};
use crate::store::View;
use spotsweep_protocol::claim::NoticeKind;
use spotsweep_records::workspace::Fact;

pub(super) fn noticed(view: &View, instance: &str, kind: NoticeKind) -> Decision {
    workspace::told(view, instance, &Fact::Noticed { instance: instance.to_owned(), kind })
}
