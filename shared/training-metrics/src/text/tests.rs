use spotsweep_protocol::metric::MetricPattern;

use super::*;

/// One line of text, its step, and its values.
type Case = (&'static str, Option<f64>, &'static [(&'static str, f64)]);

const CASES: &[Case] = &[
    ("epoch=3 val_accuracy=0.9611 val_loss=1.2e-3", Some(3.0), &[("val_accuracy", 0.9611), ("val_loss", 0.0012)]),
    ("2024-03-04T17:55:08Z INFO accuracy = .8078, loss=+5.", None, &[("accuracy", 0.8078), ("loss", 5.0)]),
    ("step=40 epoch=2 val/top-1=97.3%", Some(40.0), &[("val/top-1", 97.3)]),
    ("Epoch=3/10... loss=-0.5;acc=1", Some(3.0), &[("loss", -0.5), ("acc", 1.0)]),
    ("loss=0.5 loss=0.4", None, &[("loss", 0.5), ("loss", 0.4)]),
    ("Epoch 1...loss=0.25 |acc=0.5|", Some(1.0), &[("loss", 0.25), ("acc", 0.5)]),
    ("손실=1 정확도 acc=0.5정확", None, &[("acc", 0.5)]),
    (
        "loss=nan acc=0.5 lr=-inf big=1e999 huge=1e200",
        None,
        &[("loss", f64::NAN), ("acc", 0.5), ("lr", -f64::INFINITY), ("big", f64::INFINITY), ("huge", 1e200)],
    ),
    ("step=nan loss=1", None, &[("loss", 1.0)]),
    ("python train.py --lr=0.1 -x=2", None, &[]),
    ("ip=10.0.0.1 day=2024-03-04 at=12:30:01 took=12s id=0x1f n=1_000", None, &[]),
    ("a == 1, b != 2, c <= 3, d=[4], e=, f='5', =7, 8=9", None, &[]),
    ("`Trainer.fit` stopped: `max_epochs=200` reached, see Trainer(log_every_n_steps=50).", None, &[]),
    ("Result(accuracy=0.9, count=5)", None, &[("accuracy", 0.9), ("count", 5.0)]),
    ("accuracy: 0.9", None, &[("accuracy", 0.9)]),
    ("step 250: train loss 1.96, val loss 2.05", Some(250.0), &[("loss", 1.96), ("loss", 2.05)]),
    ("Trainable params: 1.2 K", None, &[]),
    ("[7]\ttrain-auc:0.95\tvalid-auc:0.9", Some(7.0), &[("train-auc", 0.95), ("valid-auc", 0.9)]),
    (
        "9:\tlearn: 0.25\ttest: 0.3\tbest: 0.3 (9)\ttotal: 50ms",
        Some(9.0),
        &[("learn", 0.25), ("test", 0.3), ("best", 0.3)],
    ),
    ("loss:0.25 took: 0.44s eta: 0:00:05 rate: 5.2 it/s", None, &[("loss", 0.25)]),
    ("resuming at step=500, loss=0.5", None, &[("loss", 0.5)]),
    ("Total params: 610, seed: 42, http://host:8080, line 5: 3", None, &[]),
    ("loss: tensor(0.25, grad_fn=<NllLossBackward0>)", None, &[("loss", 0.25)]),
    ("Test set: Average loss: 2.2524, Accuracy: 82/512 (16%)", None, &[("loss", 2.2524), ("Accuracy", 0.16015625)]),
    ("", None, &[]),
    (
        r#"{"global_step": "7", "loss": "0.22", "acc": 1, "timestamp": 1638422847.28, "ok": true, "path": "x"}"#,
        Some(7.0),
        &[("loss", 0.22), ("acc", 1.0)],
    ),
    (
        r#"{"epoch": 1, "loss": NaN, "x": -Infinity, "y": null, "z": 1e309, "NaN \"b": Infinity}"#,
        Some(1.0),
        &[("loss", f64::NAN), ("x", -f64::INFINITY), ("z", f64::INFINITY), ("NaN \"b", f64::INFINITY)],
    ),
    (r#"{"a": {"loss": 1}} loss=2"#, None, &[("loss", 2.0)]),
    (r#"{"nested": {"loss": 1}}"#, None, &[]),
    (
        r#"{"": 1, "a\u001b[31mb": 2, "a\tb": 3, "=SUM(1)": 4, "\u0085": 5}"#,
        None,
        &[("a\\u{1b}[31mb", 2.0), ("a\\tb", 3.0), ("=SUM(1)", 4.0), ("\\u{85}", 5.0)],
    ),
    ("{metricName=1}", None, &[("metricName", 1.0)]),
    ("epoch=2 val_acc=0.75 config={'lr': 0.1, 'bs': 32}", Some(2.0), &[("val_acc", 0.75)]),
    ("Epoch 3 metrics: {'acc': 0.5, 'x': {'y': 1}, 'z': [1, 2]}", Some(3.0), &[("acc", 0.5)]),
    (
        "INFO - {'loss': 0.5, 'f1': np.float64(0.25), 'b': None} lr=0.1",
        None,
        &[("lr", 0.1), ("loss", 0.5), ("f1", 0.25)],
    ),
    (
        "{'loss': '0.6958', 'learning_rate': '4.5e-05', 'epoch': '0.2083'}",
        Some(0.2083),
        &[("loss", 0.6958), ("learning_rate", 4.5e-5)],
    ),
    ("[dev][INFO] - {\"epoch\": 2, \"dev_loss\": \"80.5\", \"n\": 3}", Some(2.0), &[("dev_loss", 80.5), ("n", 3.0)]),
    ("{'a': 1, 'b", None, &[("a", 1.0)]),
    ("  \"hidden_size\": 768,", None, &[]),
    ("  \"dropout\": 0.1,", None, &[]),
];

fn values(found: &Logged) -> Vec<(&str, f64)> {
    found.values.iter().map(|value| (value.name.as_str(), value.value)).collect()
}

/// Returns the row of a line that is no history.
fn one(lines: &mut Lines, line: &str) -> Logged {
    let mut found = lines.read(line);
    assert_eq!(found.len(), 1, "{line}: {found:?}");
    found.pop().unwrap_or_default()
}

#[test]
fn lines_say_so_much_and_no_more() {
    for (line, step, expected) in CASES {
        let found = one(&mut Lines::default(), line);
        // The text is compared, because NaN does not equal itself.
        assert_eq!(format!("{:?}", (found.step, values(&found))), format!("{:?}", (step, expected)), "{line}");
    }
}

/// W&B's traceback quotes its caller's `config`, and torchrun puts the rank before each line.
#[test]
fn source_in_a_traceback_is_no_output() {
    const QUOTED: &str = "    with wandb.init(project=\"p\", config={\"lr\": 0.01, \"epochs\": 3}) as run:";
    let of = |start: &str, end: &str| {
        let lines = ["Traceback (most recent call last):", "  File \"/code/train.py\", line 8, in <module>", QUOTED];
        let more = ["         ^^^^^^^^^^", "    loss = 0.5", "", end, "acc=0.75"];
        lines.into_iter().chain(more).map(|line| format!("{start}{line}\n")).collect::<String>()
    };
    let cases = [
        of("", "wandb.errors.UsageError: lr=0.01"),
        of("", "KeyboardInterrupt"),
        of("[rank0]: ", "ValueError: loss=nan"),
        // A progress bar on the other stream, and a traceback that is cut off.
        of("", "acc=0.75"),
        format!("  File \"train.py\", line 3\n  {QUOTED}\nSyntaxError: invalid syntax\nacc=0.75\n"),
        format!("╭──── Traceback (most recent call last) ────╮\n│ ❱ 8 {QUOTED} │\n╰────╯\nValueError: x\nacc=0.75\n"),
    ];
    for text in cases {
        let mut lines = Lines::new(Some("lr".to_owned()), Definitions::default());
        let mut found: Vec<(String, f64)> = Vec::new();
        for line in text.lines() {
            let logged = lines.read(line);
            let values = logged.into_iter().flat_map(|row| row.values);
            found.extend(values.map(|value| (value.name, value.value)));
        }
        found.dedup();
        assert_eq!(found, [("acc".to_owned(), 0.75)], "{text}");
    }
    let said =
        ["epoch=1 acc=0.5", "  File format: 3, acc=0.75", "  loss=0.25"].map(|line| one(&mut Lines::default(), line));
    assert_eq!(said.map(|said| said.values.len()), [1, 1, 1]);
}

#[test]
fn the_name_that_the_file_declares_is_looked_for_as_it_is() {
    type Named = (&'static str, &'static str, &'static [(&'static str, f64)]);
    let cases: [Named; 23] = [
        ("Performance/Test accuracy", "epoch=1 Performance/Test accuracy=0.5", &[("Performance/Test accuracy", 0.5)]),
        ("test/F1@5", "test/F1@5 = 0.5, loss=1", &[("test/F1@5", 0.5), ("loss", 1.0)]),
        ("metrics/mAP50(B)", "metrics/mAP50(B)=nan", &[("metrics/mAP50(B)", f64::NAN)]),
        ("정확도", "검증 정확도=0.5", &[("정확도", 0.5)]),
        ("acc", "val_acc=0.5 acc=0.25", &[("val_acc", 0.5), ("acc", 0.25)]),
        ("acc", "--acc=0.5", &[]),
        ("(x)", "f(x)=2", &[("(x)", 2.0)]),
        ("val_acc", "\u{1b}[33mval_acc\u{1b}[0m=\u{1b}[1;36m0.5\u{1b}[0m", &[("val_acc", 0.5)]),
        ("x", "\u{1b}[36m10:00:00\u{1b}[0m | \u{1b}]8;;https://a=1\u{7}link\u{1b}]8;;\u{7} loss=0.5", &[("loss", 0.5)]),
        ("test_accuracy", "Test Accuracy: 0.5", &[("test_accuracy", 0.5)]),
        ("reward", "Episode reward: 200", &[("reward", 200.0)]),
        ("Acc@1", " *   Acc@1 43.2 Acc@5 69.9", &[("Acc@1", 43.2)]),
        ("test_acc", "│         test_acc          │    0.9166666865348816     │", &[("test_acc", 0.9166666865348816)]),
        ("accuracy", "accuracy                           0.95       360", &[("accuracy", 0.95)]),
        ("accuracy", "accuracy 5 times", &[]),
        ("test_acc", "│ test_acc │ 1 │", &[("test_acc", 1.0)]),
        ("accuracy", "Epoch 3 finished, accuracy is 91%", &[("accuracy", 91.0)]),
        ("accuracy", "accuracy of 5 models", &[]),
        ("eval_accuracy", "eval epoch: 1, accuracy: 98.02", &[("accuracy", 98.02), ("eval_accuracy", 98.02)]),
        ("eval_accuracy", "train epoch: 1, accuracy: 91.8", &[("accuracy", 91.8)]),
        ("val_acc", "Validation Acc: 93.25%", &[("Acc", 93.25), ("val_acc", 93.25)]),
        ("best_val_acc", "Best val acc: 0.5", &[("best_val_acc", 0.5)]),
        ("val_loss", "wandb: val_loss 0.5", &[]),
    ];
    for (named, line, expected) in cases {
        let found = one(&mut Lines::new(Some(named.to_owned()), Definitions::default()), line);
        assert_eq!(format!("{:?}", values(&found)), format!("{expected:?}"), "{named}: {line}");
    }
}

#[test]
fn a_value_has_its_source() {
    for (line, source) in [
        ("acc=0.5", Source::Stated),
        (r#"{"acc": 0.5}"#, Source::Stated),
        ("Test acc: 0.5", Source::Text),
        ("{'acc': 0.5}", Source::Text),
        ("Train acc: 0.5", Source::OfTraining),
        ("training_acc 0.1 train acc = 0.5", Source::OfTraining),
        ("Train Epoch: 1 [640/60000 (1%)]\tacc: 0.5", Source::OfTraining),
        ("train: loss=0.5, acc=0.5", Source::OfTraining),
        ("train: loss=0.5, acc=0.25; val: loss=0.5, acc=0.5", Source::Stated),
        ("Best val acc: 0.5", Source::OfTraining),
        ("train loss 0.25, acc 0.5", Source::OfTraining),
        ("100%|███| 48/48 [00:00<00:00, 92.27it/s, acc=0.5]", Source::ProgressBar),
        ("acc: 50%|███| 1/2 [00:00<00:00, 92.27it/s, acc=0.5]", Source::ProgressBar),
        ("26/26 ━━━━ 1s 5ms/step - acc: 0.5", Source::ProgressBar),
        ("                                     acc: 0.500", Source::ProgressBar),
    ] {
        let found = one(&mut Lines::new(Some("acc".to_owned()), Definitions::default()), line);
        let value = found.values.iter().rfind(|value| value.name == "acc").map(|value| (value.value, value.source));
        assert_eq!(value, Some((0.5, source)), "{line}");
    }
}

#[test]
fn a_name_with_its_data_set_has_the_source_of_that() {
    for (name, line, source) in [
        ("Val", "Epoch: 001, Loss: 1.9, Train: 0.25, Val: 0.5, Test: 0.5", Source::Text),
        ("val_acc", "Epoch 3 train loss 0.25, val_acc 0.5", Source::Text),
        ("val_acc", "Best val_acc: 0.5 at epoch 2", Source::OfTraining),
        ("best_val_acc", "Best val acc: 0.5", Source::Text),
        ("val_loss", "EMA val_loss: 0.5", Source::Smoothed),
        ("val_loss", "val loss: 0.75, moving average of val loss: 0.5", Source::Smoothed),
        ("loss", "Validation: EMA loss: 0.5", Source::Smoothed),
        ("ema_val_loss", "EMA val loss: 0.5", Source::Text),
        ("loss", "EMA loss: 0.5", Source::OfTraining),
        ("train_loss", "EMA train_loss: 0.5", Source::Smoothed),
        ("val_loss", "New best EMA val_loss: 0.5", Source::OfTraining),
        ("val_loss", "26/26 ━━━━ 1s 5ms/step - EMA val_loss: 0.5", Source::OfTraining),
    ] {
        let found = one(&mut Lines::new(Some(name.to_owned()), Definitions::default()), line);
        let value = found.values.iter().rfind(|value| value.name == name).map(|value| (value.value, value.source));
        assert_eq!(value, Some((0.5, source)), "{line}");
    }
}

#[test]
fn a_line_without_a_step_has_the_one_before() {
    let mut lines = Lines::default();
    let steps = ["Epoch 3/10", "loss=0.5", r#"{"loss": 1}"#, "step=7 acc=1", "loss=0.4"];
    let steps = steps.map(|line| one(&mut lines, line).step);
    assert_eq!(steps, [Some(3.0), Some(3.0), None, Some(7.0), Some(7.0)]);
}

#[test]
fn a_definition_finds_its_group() {
    let definition = |name: &str, regex: &str| MetricPattern { name: name.into(), regex: regex.into() };
    let compiled =
        Definitions::new(&[definition("ganloss", "ganloss=(.*?);"), definition("acc", r"Accuracy \((\S+)\)")]);
    let mut lines = Lines::new(None, compiled.ok().unwrap_or_default());
    assert_eq!(values(&one(&mut lines, "epoch=2 ganloss=0.25; loss=3")), [("loss", 3.0), ("ganloss", 0.25)]);
    assert_eq!(values(&one(&mut lines, "Accuracy (0.5)")), [("acc", 0.5)]);
    for regex in ["loss=.*", "loss=(", r"(?=x)(y)"] {
        assert!(Definitions::new(&[definition("b", regex)]).is_err(), "{regex}");
    }
}

/// The named metric, the lines of a training, the newest value, its step, and its source.
type Found = (&'static str, &'static [&'static str], f64, Option<f64>, Source);

#[test]
fn the_named_metric_is_looked_for_harder() {
    let (stated, text, training) = (Source::Stated, Source::Text, Source::OfTraining);
    let cases: [Found; 31] = [
        // Objects behind a prefix, and over several lines.
        ("dev_wer", &["[01][dev][INFO] - {\"epoch\": 2, \"dev_wer\": \"22.5\"}"], 22.5, Some(2.0), text),
        ("best_val", &["INFO - Metrics: {", "  \"best_epoch\": 3,", "  \"best_val\": 0.75", "}"], 0.75, None, text),
        ("val_acc", &["{", "  \"val_acc\": 0.75,", "  \"epoch\": 2", "}"], 0.75, Some(2.0), text),
        ("val_acc", &["{'a': [1,", "       2],", " 'epoch': 2,", " 'val_acc': 0.75}"], 0.75, Some(2.0), text),
        (
            "val_acc",
            &["{", "  \"train\": {", "    \"acc\": 0.9", "  },", "  \"val\": {", "    \"acc\": 0.75", "  }", "}"],
            0.75,
            None,
            text,
        ),
        ("acc", &["{", " \"train\": {", "  \"acc\": 0.9", " }", "}"], 0.9, None, training),
        ("val_acc", &["fn main() {", "{", "another line", "\"val_acc\": 0.75", "}"], 0.75, None, text),
        ("val_acc", &["\"epoch\": 2,", "\"val_acc\": 0.75,"], 0.75, Some(2.0), text),
        ("val_acc", &["\"val_acc\" = 0.75"], 0.75, None, stated),
        // Objects within and next to others.
        (
            "value",
            &[
                "[I 2026] Trial 41 finished with value: 0.75 and parameters: {'x': 1.5}. Best is trial 3 with value: 0.5.",
            ],
            0.5,
            Some(41.0),
            training,
        ),
        ("val_acc", &["epoch=2 val_acc=0.75 config={'lr': 0.1, 'val_acc': 1}"], 0.75, Some(2.0), stated),
        ("val_acc", &["loss=0.5 metrics={'val_acc': 0.75}"], 0.75, None, text),
        ("val.acc", &["{\"epoch\": 2, \"val\": {\"acc\": 0.75}}"], 0.75, Some(2.0), stated),
        ("acc", &["{\"train\": {\"acc\": 0.9}, \"val\": {\"acc\": 0.75}}"], 0.75, None, stated),
        ("val_acc", &["Val: {'acc': 0.75}"], 0.75, None, text),
        ("acc", &["Train: {'acc': 0.75}"], 0.75, None, training),
        ("accuracy", &["[{'accuracy': 0.75}]"], 0.75, None, text),
        // Names in another spelling.
        ("val_acc", &["{\"epoch\": 2, \"Val Acc\": 0.75}"], 0.75, Some(2.0), stated),
        ("eval/accuracy", &["{'eval_loss': 0.5, 'eval_accuracy': 0.75, 'epoch': 2.0}"], 0.75, Some(2.0), text),
        ("validation:rmse", &["[7]\tvalidation-rmse:0.75"], 0.75, Some(7.0), text),
        ("val_acc", &["validation_acc: 0.75"], 0.75, None, text),
        // Values with a unit, printed as another library's object, and behind an arrow.
        ("latency", &["latency: 12.5 ms, throughput: 80.1 samples/s"], 12.5, None, text),
        ("latency_ms", &["latency_ms=12.5ms"], 12.5, None, stated),
        ("latency", &["{\"latency\": \"12.5 ms\"}"], 12.5, None, stated),
        ("val_mae", &["val_mae 3.25 min"], 3.25, None, text),
        ("val_loss", &["epoch 2 val_loss: Array(0.25, dtype=float32, weak_type=True)"], 0.25, Some(2.0), text),
        ("val_loss", &["val_loss = tf.Tensor(0.25, shape=(), dtype=float32)"], 0.25, None, stated),
        (
            "val_loss",
            &["\u{250c} Info: done", "\u{2502}   epoch = 2", "\u{2514}   val_loss = 0.25f0"],
            0.25,
            Some(2.0),
            stated,
        ),
        ("val_acc", &["val_acc -> 0.75"], 0.75, None, text),
        ("test", &["490:\ttest: 0.99\tbest: 0.995 (480)\ttotal: 2s\tremaining: 38s"], 0.99, Some(490.0), text),
        (
            "ENTS_F",
            &["E    #    ENTS_F  SCORE", "---  ---  ------  -----", "  1  200   81.25   0.81"],
            81.25,
            Some(200.0),
            text,
        ),
    ];
    for (named, lines, value, step, source) in cases {
        let mut stream = Lines::new(Some(named.to_owned()), Definitions::default());
        let all = lines
            .iter()
            .flat_map(|line| stream.read(line))
            .flat_map(|found| found.values.into_iter().map(move |value| (value, found.step)));
        let newest = all.filter(|(found, _)| found.name == named).last();
        let newest = newest.map(|(found, step)| (found.value, step, found.source));
        assert_eq!(newest, Some((value, step, source)), "{named}: {lines:?}");
    }
}

#[test]
fn another_spelling_is_another_metric_where_both_are_there() {
    let mut lines = Lines::new(Some("val_acc".to_owned()), Definitions::default());
    assert_eq!(values(&one(&mut lines, "{\"val/acc\": 0.5}")), [("val_acc", 0.5)]);
    assert_eq!(values(&one(&mut lines, "{\"val_acc\": 0.25}")), [("val_acc", 0.25)]);
    assert_eq!(values(&one(&mut lines, "{\"val/acc\": 0.5}")), [("val/acc", 0.5)]);
}
