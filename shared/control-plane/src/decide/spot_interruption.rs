//! Passes EC2's notice about an instance on to every trial that runs there.

use super::{Decision, workspace};
use crate::store::View;
use spotsweep_protocol::claim::NoticeKind;
use spotsweep_records::workspace::Fact;

pub(super) fn noticed(view: &View, instance: &str, kind: NoticeKind) -> Decision {
    workspace::pass_on(view, instance, &Fact::Noticed { instance: instance.to_owned(), kind })
}
