//! Dictionaries as Python prints them, such as the lines of Hugging Face's Trainer: `{'loss': 0.69, 'epoch': 1.0}`.

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::number::leading;
use crate::step;

/// The numbers of a dictionary in a line, also those in strings; not those of dictionaries and lists in it. `None`
/// where the line has no dictionary.
pub(crate) fn parse(line: &str) -> Option<Logged> {
    let start = line.find("{'")?;
    let mut found = Logged::default();
    let (mut depth, mut rest) = (0_usize, &line[start..]);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            '\'' | '"' => {
                let length = after.find(c)?;
                let (text, next) = (&after[..length], &after[length + 1..]);
                rest = next;
                if let Some(value) = next.strip_prefix(':').filter(|_| depth == 1) {
                    let value = value.trim_start();
                    let value = value.strip_prefix(['\'', '"']).unwrap_or(value);
                    if let Some(number) = leading(value) {
                        found.add(text, number.value, Source::Text);
                    }
                }
                continue;
            }
            _ => {}
        }
        rest = after;
    }
    found.step = step::take(&mut found.values);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outer_numbers_are_metrics() {
        let parsed = |line| {
            parse(line).map(|found| {
                let values: Vec<_> = found.values.into_iter().map(|value| (value.name, value.value)).collect();
                (found.step, values)
            })
        };
        let of = |name: &str, value| (name.to_owned(), value);
        assert_eq!(
            parsed("{'loss': '0.6958', 'learning_rate': '4.5e-05', 'epoch': '0.2083'}"),
            Some((Some(0.2083), vec![of("loss", 0.6958), of("learning_rate", 4.5e-5)]))
        );
        assert_eq!(
            parsed(
                "INFO - {'eval_loss': 0.69, 'f1': np.float64(0.5), 'x': {'y': 1}, 'z': [1, 2], 'name': 'a', 'b': None}"
            ),
            Some((None, vec![of("eval_loss", 0.69), of("f1", 0.5)]))
        );
        assert_eq!(parsed("{'a': 1, 'b"), None);
        assert_eq!(parsed("loss=0.5"), None);
    }
}
