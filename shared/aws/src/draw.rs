//! The source of secrets.

use std::io;

use spotsweep_control_plane::calls::Draw;
use spotsweep_protocol::secret::Secret;

/// Draws secrets from the operating system.
#[derive(Debug)]
pub(super) struct System;

impl Draw for System {
    #[expect(clippy::disallowed_methods, reason = "the outcome brings it to the decision")]
    fn draw(&self) -> io::Result<Secret> {
        Secret::draw()
    }
}
