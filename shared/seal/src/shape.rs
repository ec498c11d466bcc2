//! Names of checkpoints that differ in their numbers only.

/// A name with each number replaced by `#`: that of `step-000030.pt` is `step-#.pt`.
pub(crate) fn shape(name: &str) -> String {
    let mut shape = String::new();
    for c in name.chars() {
        if !c.is_ascii_digit() {
            shape.push(c);
        } else if !shape.ends_with('#') {
            shape.push('#');
        }
    }
    shape
}

/// The parts of a text that may be names of files.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '=' | '+')))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_kind_have_one_shape() {
        for (one, other) in
            [("step-10.pt", "step-000020.pt"), ("epoch=3-step=9.ckpt", "epoch=12-step=100.ckpt"), ("7", "12")]
        {
            assert_eq!(shape(one), shape(other));
        }
        assert_ne!(shape("step-10.pt"), shape("step.pt"));
        assert_eq!(words("{\"path\": \"a/epoch=3.ckpt\"}\n").collect::<Vec<_>>(), ["path", "a", "epoch=3.ckpt"]);
    }
}
