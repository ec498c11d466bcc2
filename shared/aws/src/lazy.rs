//! Clients that are made when they are first used. Most invocations use one or two of a function's clients, and each
//! costs a cold start some tenths of a millisecond, fourteen times that with a 128 MB function's share of a CPU.

use std::sync::LazyLock;

use aws_config::SdkConfig;

/// Derefs to the client; the first time makes it.
pub(super) type Lazy<C> = LazyLock<C, Box<dyn FnOnce() -> C + Send>>;

/// A client that `make` makes of the configuration, once it is used.
pub(super) fn lazy<C: 'static>(config: &SdkConfig, make: fn(&SdkConfig) -> C) -> Lazy<C> {
    let config = config.clone();
    LazyLock::new(Box::new(move || make(&config)))
}
