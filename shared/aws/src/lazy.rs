//! Clients that are made when they are first used. Most invocations use one or two of a function's clients. Each client
//! costs a cold start some tenths of a millisecond, and fourteen times that with the CPU share of a function with 128
//! MB.

use std::sync::LazyLock;

use aws_config::SdkConfig;

/// Dereferences to the client, which is made at the first time.
pub(super) type Lazy<C> = LazyLock<C, Box<dyn FnOnce() -> C + Send>>;

/// Returns a client that `make` makes from the configuration when it is first used.
pub(super) fn lazy<C: 'static>(config: &SdkConfig, make: fn(&SdkConfig) -> C) -> Lazy<C> {
    let config = config.clone();
    LazyLock::new(Box::new(move || make(&config)))
}
