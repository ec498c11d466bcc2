//! Suggests another try that would prove that a training goes on, if that was not seen.

use super::TryOut;
use super::attempt::Attempt;
use super::more_steps::Steps;
use super::one_trial::OneTrial;
use super::trial::Trial;
use super::verdict::Gap;
use super::watch::End;
use crate::commands::local::quoted;

/// A notice that gives most trainings enough time to save, and ends soon.
const SHORT_NOTICE: u16 = 15;
/// The shortest notice, and the default one.
pub(super) const NOTICES: (u16, u16) = (5, 120);
/// Largest share of a training's time that its notice may take.
const OF_TRAINING: f64 = 0.25;
/// The default limit, in seconds.
pub(super) const LIMIT: u32 = 900;

/// A try that was made.
#[derive(Debug)]
pub(super) struct Made<'a> {
    pub(super) args: &'a TryOut,
    pub(super) trial: &'a OneTrial,
    pub(super) notice: u16,
    /// The argument that says how long the script trains.
    steps: Option<Steps>,
    /// For how many seconds it trained.
    seconds: f64,
    end: End,
}

impl<'a> Made<'a> {
    /// The try of `trial`, whose scripts have the text `source`. It has shown `seen`.
    pub(super) fn new(
        (args, notice): (&'a TryOut, u16),
        (trial, source): (&'a OneTrial, &str),
        (seen, end): (&Trial, End),
    ) -> Self {
        let last = seen.attempts.iter().filter_map(|attempt| attempt.said.steps).map(|(_, last)| last);
        let steps = Steps::of(trial, source, last.reduce(f64::max));
        let seconds = seen.attempts.iter().filter_map(Attempt::seconds).sum();
        Self { args, trial, notice, steps, seconds, end }
    }

    /// The same trial with more steps and a short notice, for a training that ended too soon. If no argument for the
    /// steps was found, only the notice is shorter. `None` if neither is possible.
    pub(super) fn for_longer(&self) -> Option<(OneTrial, u16)> {
        let share = (self.seconds * OF_TRAINING).clamp(f64::from(NOTICES.0), f64::from(SHORT_NOTICE)) as u16;
        match &self.steps {
            Some(steps) => Some((steps.set(self.trial, steps.enough(self.seconds)), self.notice.min(SHORT_NOTICE))),
            None if share < self.notice => Some((self.trial.clone(), share)),
            None => None,
        }
    }

    /// For how many seconds the training ran.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// What is changed in it, such as `--epochs 150 in place of 30`.
    pub(super) fn change(&self) -> String {
        self.steps.as_ref().map_or_else(String::new, |steps| {
            format!("{} {} in place of {}, and ", steps.name, steps.enough(self.seconds), steps.value)
        })
    }

    /// What was not seen, and what would show it.
    pub(super) fn explain(&self, gap: &Gap) -> (String, String) {
        let again = || self.command(self.trial, self.notice, self.args.limit);
        let early = || match self.end {
            End::Over => self.with_more_steps(),
            End::OutOfTime | End::Back => self.command(self.trial, self.notice, self.args.limit.saturating_mul(2)),
        };
        match gap {
            Gap::NotResumed => ("no attempt was seen to train from a checkpoint".to_owned(), early()),
            Gap::NoStep => (
                "no steps can be compared from one attempt to the next: whether the training goes on or starts from its \
                 beginning is not known"
                    .to_owned(),
                format!("print `step=N` or `epoch=N` at once (docs/metrics.md), and try it again: {}", again()),
            ),
            Gap::FirstStep => (
                "no attempt came further than the first step: it is not known whether the training starts from its \
                 beginning each time"
                    .to_owned(),
                format!("try it with shorter epochs, or a longer notice: {}", {
                    self.command(self.trial, NOTICES.1, self.args.limit.saturating_mul(2))
                }),
            ),
            Gap::Unclear => (
                "the steps after an interruption fit neither a training that goes on nor one that starts from its \
                 beginning: they may count from each start"
                    .to_owned(),
                format!("print the number of all steps that were trained, also before, and try it again: {}", again()),
            ),
            Gap::Mixed => (
                "the training was lost in the middle of a save, and not all files of the checkpoint went back to the \
                 version before: the steps do not show what its weights have seen"
                    .to_owned(),
                format!(
                    "save the weights and the number of the step in one file, or write each file under another name and \
                     put it in place by `os.replace`, and try it again: {}",
                    again()
                ),
            ),
            Gap::Untried(moments) => {
                let why = match self.end {
                    End::Over => "the training was over before",
                    End::OutOfTime => "the time was over before",
                    End::Back => "the training had not come back",
                };
                let moments: Vec<String> = moments.iter().map(ToString::to_string).collect();
                (format!("not interrupted {}: {why}", moments.join(", ")), early())
            }
        }
    }

    fn with_more_steps(&self) -> String {
        match (self.for_longer(), &self.steps) {
            (Some((trial, notice)), Some(steps)) if steps.is_in_command() => {
                self.command(&trial, notice, self.args.limit)
            }
            (Some((_, notice)), Some(steps)) => format!(
                "give {} the value {} in the sweep file: {}",
                steps.name,
                steps.enough(self.seconds),
                self.command(self.trial, notice, self.args.limit)
            ),
            (longer, _) => format!(
                "let it train for more steps: {}",
                self.command(self.trial, longer.map_or(self.notice, |(_, notice)| notice), self.args.limit)
            ),
        }
    }

    /// A command line for the shell.
    fn command(&self, trial: &OneTrial, notice: u16, limit: u32) -> String {
        let mut words = vec!["spotsweep".to_owned(), "try".to_owned()];
        words.extend(self.args.sweep.iter().map(|file| file.display().to_string()));
        for (option, folder) in [("--code", &self.args.code), ("--binaries", &self.args.stack.binaries)] {
            words.extend(folder.iter().flat_map(|folder| [option.to_owned(), folder.display().to_string()]));
        }
        if notice != NOTICES.1 {
            words.extend(["--notice".to_owned(), notice.to_string()]);
        }
        if limit != LIMIT {
            words.extend(["--limit".to_owned(), limit.to_string()]);
        }
        words.extend(self.args.stack.words());
        if !self.args.command.is_empty() || trial.command != self.trial.command {
            words.push("--".to_owned());
            words.extend(trial.command.iter().cloned());
        }
        words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word for a POSIX shell, in quotes if it needs them.
fn shell_word(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '=' | ',' | ':' | '+' | '@' | '%');
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        own: TryOut,
    }

    /// The proof for a gap of a try with these arguments, of a training of 60 s that ends as `end` says.
    fn proof(arguments: &str, source: &str, end: End, gap: &Gap) -> String {
        let args = Arguments::parse_from(arguments.split(' ')).own;
        let trial = OneTrial::new(None, &args.command);
        let steps = Steps::of(&trial, source, None);
        let made = Made { notice: args.notice, args: &args, trial: &trial, steps, seconds: 60.0, end };
        made.explain(gap).1
    }

    #[test]
    fn a_gap_has_the_command_that_closes_it() {
        let with_default = "add_argument('--epochs', type=int, default=30)";
        for (arguments, source, end, gap, expected) in [
            (
                "try -- python t.py",
                with_default,
                End::Over,
                Gap::NotResumed,
                "spotsweep try --notice 15 -- python t.py --epochs 150",
            ),
            (
                "try --notice 10 -- python t.py --epochs=3",
                "",
                End::Over,
                Gap::Untried(vec![]),
                "spotsweep try --notice 10 -- python t.py --epochs=15",
            ),
            (
                "try -- python t.py",
                "",
                End::Over,
                Gap::NotResumed,
                "let it train for more steps: spotsweep try --notice 15 -- python t.py",
            ),
            (
                "try --notice 5 -- python t.py",
                "",
                End::Over,
                Gap::NotResumed,
                "let it train for more steps: spotsweep try --notice 5 -- python t.py",
            ),
            (
                "try --limit 60 -- sh -c it's",
                "",
                End::OutOfTime,
                Gap::NotResumed,
                "spotsweep try --limit 120 -- sh -c 'it'\\''s'",
            ),
            (
                "try --notice 20 a.yaml",
                "",
                End::OutOfTime,
                Gap::Untried(vec![]),
                "spotsweep try a.yaml --notice 20 --limit 1800",
            ),
        ] {
            assert_eq!(proof(arguments, source, end, &gap), expected, "{arguments}");
        }
        let longer = proof("try --notice 20 -- t", "", End::Back, &Gap::FirstStep);
        assert!(longer.ends_with("spotsweep try --limit 1800 -- t"), "{longer}");
    }
}
