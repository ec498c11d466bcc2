//! Ceilings for figures that can be counted. A test fails if a figure exceeds its ceiling, and also if the figure has
//! fallen so far that the ceiling should be lowered.

/// A ceiling may be higher than the counted figure by this factor at most.
const SLACK: f64 = 1.15;

/// Collects all figures that are off, so that one run shows all of them.
#[derive(Debug, Default)]
pub struct Ceilings(Vec<String>);

impl Ceilings {
    /// Checks that a figure is below its ceiling, and that the ceiling is not much higher.
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
