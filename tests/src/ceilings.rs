//! Ceilings over what can be counted: neither too low nor, once less is used, too high.

/// A ceiling is at most so far above what is counted.
const SLACK: f64 = 1.15;

/// Collects what is off, so that one run shows all of it.
#[derive(Debug, Default)]
pub struct Ceilings(Vec<String>);

impl Ceilings {
    /// Holds one figure under its ceiling, and the ceiling close above it.
    #[expect(clippy::print_stdout, reason = "a test's output is shown where it fails")]
    pub fn hold(&mut self, what: &str, counted: f64, most: f64) {
        println!("{what}: {counted:.1} of {most:.1}");
        if counted > most {
            self.0.push(format!("{what}: {counted:.1}, at most {most:.1} is allowed"));
        } else if counted * SLACK < most {
            self.0.push(format!("{what}: {counted:.1} is well below {most:.1}: lower the ceiling"));
        }
    }
}

impl Drop for Ceilings {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
        }
    }
}
