//! What the end-to-end tests share: the product as it runs, in real processes.

pub mod local;
