//! Fault points: an invocation that reaches the chosen one never goes on, as after `kill -9`.

use std::sync::Mutex;

use tokio::sync::Notify;

/// Counts the calls that an invocation makes, and stops it at one of them.
#[derive(Debug, Default)]
pub struct Crash {
    state: Mutex<State>,
    dead: Notify,
}

#[derive(Debug, Default)]
struct State {
    passed: usize,
    stop_at: Option<usize>,
    calls: Vec<String>,
}

impl Crash {
    /// Starts an invocation, which dies at its `stop_at`th fault point (each call has two: before
    /// and after its effect).
    pub fn arm(&self, stop_at: Option<usize>) {
        let mut state = self.lock();
        *state = State { passed: 0, stop_at, calls: Vec::new() };
    }

    /// Waits until the invocation has died.
    pub async fn dead(&self) {
        self.dead.notified().await;
    }

    /// The calls that the invocation has made.
    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    /// Fault points that the invocation has passed.
    pub fn passed(&self) -> usize {
        self.lock().passed
    }

    /// One call: dies before it, or makes it and dies after it, or just makes it.
    pub async fn call<T>(&self, name: &str, effect: impl FnOnce() -> T) -> T {
        self.point().await;
        self.lock().calls.push(name.to_owned());
        let result = effect();
        self.point().await;
        result
    }

    async fn point(&self) {
        let dies = {
            let mut state = self.lock();
            let here = state.passed;
            state.passed += 1;
            state.stop_at == Some(here)
        };
        if dies {
            self.dead.notify_one();
            std::future::pending::<()>().await;
        }
        tokio::task::yield_now().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
