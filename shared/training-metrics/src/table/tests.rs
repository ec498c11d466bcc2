use super::*;

/// A step, and the values of its row.
type Row = (Option<f64>, Vec<(String, f64)>);

fn read(lines: &[&str]) -> Vec<Row> {
    read_named(lines, "")
}

fn read_named(lines: &[&str], metric: &str) -> Vec<Row> {
    let (mut table, named) = (Table::default(), Named::new(Some(metric.to_owned())));
    let found = lines.iter().filter_map(|line| table.read(line, &named)).map(|row| row.found);
    let values = |found: Logged| found.values.into_iter().map(|value| (value.name, value.value)).collect();
    found.map(|found| (found.step, values(found))).collect()
}

#[test]
fn rows_have_the_names_of_their_header() {
    let fastai = [
        "epoch     train_loss  valid_loss  accuracy  time    ",
        "Epoch 1/2 : |███████-----| 50.00% [5/10 00:01<00:01]",
        "0         0.512300    0.431000    0.875000  00:03     ",
        "1         0.312300    nan         0.900000  00:03     ",
    ];
    let found = read(&fastai);
    let named = |train: f64, valid: f64, accuracy: f64| {
        [("train_loss", train), ("valid_loss", valid), ("accuracy", accuracy)]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    };
    assert_eq!(found[0], (Some(0.0), named(0.5123, 0.431, 0.875)));
    assert!(found.len() == 2 && found[1].0 == Some(1.0) && found[1].1[1].1.is_nan(), "{found:?}");
    let rules = ["| Step | Training Loss |", "|------|------|", "| 3/10 | 0.25 |", "| 4/10 | - |"];
    assert_eq!(read(&rules), [(Some(3.0), vec![("Training Loss".to_owned(), 0.25)])]);
}

#[test]
fn a_header_may_have_the_named_metric() {
    let spacy = [
        "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE ",
        "---  ------  ------------  --------  ------  ------  ------  ------",
        "  0       0          0.00     60.19    0.50    1.19    0.04    0.01",
        "a line of something else",
        "  1     200         57.60    120.19   81.25   80.19   82.04    0.81",
    ];
    let of = |lines: &[&str], metric: &str| {
        let rows = read_named(lines, metric).into_iter();
        let value =
            |(step, values): Row| values.into_iter().find(|(name, _)| name == metric).map(|(_, value)| (step, value));
        rows.filter_map(value).collect::<Vec<_>>()
    };
    assert_eq!(of(&spacy, "ENTS_F"), [(Some(0.0), 0.5), (Some(200.0), 81.25)]);
    assert_eq!(of(&spacy, "LOSS NER"), [(Some(0.0), 60.19), (Some(200.0), 120.19)]);
    assert_eq!(of(&spacy, "other"), []);
    assert_eq!(of(&["n loss val_acc", "3 0.5 0.25"], "val_acc"), [(Some(3.0), 0.25)]);
    assert_eq!(of(&["loss  val_acc", "0.5  0.25"], "val_acc"), [(None, 0.25)]);
    assert_eq!(of(&["run\tval_acc\ttime", "a\t0.25\t00:03"], "val_acc"), [], "not a number in each column");
    // A report per class has a name before each row.
    let report = ["   precision    f1-score   support", "", "   0   0.95    0.96     100", "   accuracy    0.95   360"];
    assert_eq!(of(&report, "f1-score"), []);
    assert_eq!(of(&["the loss and val_acc", "were computed", "1 2 3 4"], "val_acc"), []);
}

#[test]
fn a_row_below_a_section_has_its_name() {
    let lines = [
        "----------------------------------",
        "| rollout/           |          |",
        "|    ep_rew_mean     | 500      |",
        "| train/             |          |",
        "|    loss            | 0.0213   |",
        "----------------------------------",
        "|    other           | 0.5      |",
    ];
    let named = |name: &str, value| (None, vec![(name.to_owned(), value)]);
    assert_eq!(read(&lines), [named("rollout/ep_rew_mean", 500.0), named("train/loss", 0.0213)]);
}

#[test]
fn other_lines_are_no_tables() {
    assert_eq!(read(&["1 2 3", "epoch one is over now", "1 of 3 files", "epoch loss: 0.5", "1 0.5"]), []);
    assert_eq!(read(&["Epoch 3 0.5", "4 0.25 0.5"]), [], "its first line has numbers");
}
