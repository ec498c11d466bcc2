//! The output of people's scripts, and the value of the named metric that counts in the end, if there is one.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "reads what is recorded")]

use std::path::Path;

use spotsweep_training_metrics::{Definitions, Figures, Lines};

/// The newest value and its step, the bounds, and another reading that disagrees.
type Expected = Option<(f64, Option<f64>, [f64; 2], Option<f64>)>;

fn found(text: &str, metric: &str) -> Expected {
    let mut lines = Lines::new(Some(metric.to_owned()), Definitions::default());
    let mut figures = Figures::new(Some(metric.to_owned()));
    for mut logged in text.lines().filter(|line| !line.is_empty()).flat_map(|line| lines.read(line)) {
        assert_eq!(figures.take(&mut logged), None);
    }
    figures.metrics().get(metric).map(|found| (found.last, found.step, [found.min, found.max], found.other))
}

fn check(what: &str, text: &str, metric: &str, expected: Expected) {
    assert_eq!(found(text, metric), expected, "{metric} in {what}");
}

/// `printed_tables.py` made the files.
#[test]
fn tables_of_libraries_have_the_named_metric() {
    type Case = (&'static str, &'static str, Expected);
    let one = |value| Some((value, None, [value, value], None));
    let val_acc = Some((0.51, Some(3.0), [0.43, 0.53], None));
    let val_accuracy = Some((0.68, Some(2.0), [0.61, 0.7], None));
    let cases: [Case; 44] = [
        ("frame", "val_acc", val_acc),
        ("frame_to_string", "val_acc", val_acc),
        ("frame_markdown", "Val Acc", val_acc),
        ("frame_csv", "val_acc", val_acc),
        ("frame_indexed", "val_acc", val_acc),
        ("polars", "val_acc", val_acc),
        ("frame_folded", "val_acc", Some((0.51, Some(2.0), [0.43, 0.51], None))),
        ("frame_cut", "val_acc", Some((0.51, Some(2.0), [0.43, 0.51], None))),
        // In Lightning's metrics a row has those of the training or those of the validation.
        ("frame_with_gaps", "val_acc", Some((0.43, Some(11.0), [0.41, 0.43], None))),
        ("frame_with_gaps_markdown", "val_acc", Some((0.43, Some(11.0), [0.41, 0.43], None))),
        // The newest row is not the last one.
        ("frame_sorted", "val_acc", val_acc),
        ("frame_sorted_again", "val_acc", val_acc),
        ("frame", "epoch", None),
        ("history", "val_accuracy", val_accuracy),
        ("history_dictionary", "val_accuracy", Some((0.68, None, [0.61, 0.7], None))),
        ("one_row", "accuracy", one(0.91)),
        ("series", "val_acc", one(0.51)),
        ("last_row", "val_acc", Some((0.51, Some(3.0), [0.51, 0.51], None))),
        ("described_in_rows", "val_acc", None),
        // Rows that do not follow one another are several readings.
        ("folds", "val_acc", Some((0.95, None, [0.72, 0.95], Some(0.72)))),
        // Means and deviations have the metric's name above them.
        ("describe", "val_acc", None),
        ("describe", "train_loss", None),
        ("sets_in_columns", "accuracy", one(0.91)),
        ("sets_in_columns", "val_accuracy", one(0.91)),
        ("sets_in_columns", "train_loss", one(0.1)),
        ("sets_in_columns", "test_loss", None),
        ("sets_in_rows", "accuracy", one(0.91)),
        ("sets_in_rows", "val_accuracy", one(0.91)),
        ("sets_in_rows", "train/loss", one(0.1)),
        ("phases", "accuracy", Some((0.5, Some(1.0), [0.5, 0.5], None))),
        ("phases", "train_accuracy", Some((0.75, Some(1.0), [0.75, 0.75], None))),
        ("report", "accuracy", one(0.7)),
        ("report", "macro_f1", one(0.69)),
        ("report", "weighted avg precision", one(0.78)),
        ("report_named", "f1_macro", one(0.69)),
        ("report_frame", "f1_macro", one(0.694444)),
        ("report_frame", "accuracy", one(0.7)),
        ("report_dictionary", "macro avg/f1-score", one(0.6944444444444443)),
        ("report_dictionary", "accuracy", one(0.7)),
        // These are one value of many, or of other data.
        ("report", "f1", None),
        ("report", "f1-score", None),
        ("report", "val_macro_f1", None),
        ("report_named", "recall", None),
        ("report_frame", "precision", None),
    ];
    for (name, metric, expected) in cases {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed").join(format!("{name}.txt"));
        check(name, &std::fs::read_to_string(path).unwrap(), metric, expected);
    }
}

/// A table or a history that repeats values is no further report.
#[test]
fn what_was_said_of_an_epoch_is_reported_once() {
    let table = |rows: &[&str]| {
        ["   epoch  val_acc", rows[0]].iter().chain(&rows[1..]).fold(String::new(), |all, row| all + row + "\n")
    };
    let (one, two, three) = ("0      1     0.50", "1      2     0.75", "2      3     0.25");
    let fastai = "epoch  loss  val_acc\n0  0.5  0.50\n1  0.5  0.75\n";
    let cases = [
        ("epoch 1: val_acc: 0.501\nepoch 2: val_acc: 0.749\n".to_owned() + &table(&[one, two]), 2),
        (table(&[one]) + &table(&[one, two]) + &table(&[one, two, three]), 3),
        ("epoch 1: val_acc: 0.5\nepoch 2: val_acc: 0.75\n{'loss': [1, 2], 'val_acc': [0.5, 0.75]}".to_owned(), 2),
        // The progress bar of Keras is less reliable, and the next part of a training counts its epochs from the
        // beginning.
        (
            "Epoch 1/1\n26/26 ━━ 1s 5ms/step - val_acc: 0.5\n{'loss': [1], 'val_loss': [1], 'val_acc': [0.50]}"
                .to_owned(),
            2,
        ),
        (fastai.to_owned() + "epoch  loss  val_acc\n0  0.5  0.505\n", 3),
    ];
    for (text, expected) in cases {
        let mut lines = Lines::new(Some("val_acc".to_owned()), Definitions::default());
        let found = text.lines().flat_map(|line| lines.read(line)).flat_map(|row| row.values);
        assert_eq!(found.filter(|value| value.name == "val_acc").count(), expected, "{text}");
    }
}

/// The lines come from public issues and from the sources of the libraries.
#[test]
fn lines_of_libraries_have_the_named_metric() {
    for (text, metric, expected) in LINES {
        check(text, text, metric, *expected);
    }
}

const fn one(value: f64, step: Option<f64>) -> Expected {
    Some((value, step, [value, value], None))
}

/// The output, the metric, and the figures found.
const LINES: &[(&str, &str, Expected)] = &[
    // MIC-DKFZ/nnUNet#2125. The smoothed metric is another one, and has other digits.
    (NNUNET, "Pseudo dice", one(0.8399, Some(195.0))),
    (NNUNET, "val_loss", one(-0.771, Some(195.0))),
    (NNUNET, "Mean Validation Dice", one(0.698071, Some(195.0))),
    // ultralytics/ultralytics#855.
    (ULTRALYTICS, "mAP50-95", one(0.736, None)),
    (ULTRALYTICS, "mAP50", one(0.963, None)),
    (ULTRALYTICS_OF_MASKS, "mAP50", Some((0.5, None, [0.5, 0.963], Some(0.963)))),
    // AllenNLP's log, and the same between spaces.
    (
        "                        Training |  Validation\naccuracy            |     0.980  |     0.910",
        "accuracy",
        one(0.91, None),
    ),
    (
        "                        Training |  Validation\naccuracy            |     0.980  |     0.910",
        "validation_accuracy",
        one(0.91, None),
    ),
    ("| Metric | train | val |\n|---|---|---|\n| accuracy | 0.98 | 0.91 |", "val/accuracy", one(0.91, None)),
    ("| Metric | train | val |\n|---|---|---|\n| accuracy | 0.98 | 0.91 |", "accuracy", one(0.91, None)),
    // PyTorch's tutorials: the class is not the whole, and the training data are not the test.
    (
        "Accuracy of the network on the 10000 test images: 55 %\nAccuracy for class: plane is 57.5 %",
        "accuracy",
        one(55.0, None),
    ),
    ("Accuracy of the network on the 10000 test images: 55 %", "test_accuracy", one(55.0, None)),
    ("Accuracy of plane : 56 %", "accuracy", None),
    ("accuracy on val: 0.5\naccuracy on train: 0.75", "accuracy", one(0.5, None)),
    ("  eval_accuracy           =     0.5", "eval_accuracy", one(0.5, None)),
    // Two sets of equal rank, and two columns without a known meaning.
    (
        "| Metric | val | test |\n|---|---|---|\n| accuracy | 0.91 | 0.80 |",
        "accuracy",
        Some((0.8, None, [0.8, 0.91], Some(0.91))),
    ),
    ("│ test_acc │ 0.91 │ 0.80 │", "test_acc", Some((0.91, None, [0.8, 0.91], Some(0.8)))),
    ("split  loss  accuracy\ntrain  0.1  0.98\nval  0.2  0.91", "accuracy", one(0.91, None)),
    ("split  loss  accuracy\ntrain  0.1  0.98\nval  0.2  0.91", "val_accuracy", one(0.91, None)),
    (
        "split  loss  accuracy\ntrain  0.1  0.98\nval  0.2  0.91\ntest  0.2  0.80",
        "accuracy",
        Some((0.8, None, [0.8, 0.91], Some(0.91))),
    ),
    // MMSegmentation.
    ("| Scope  | mIoU | aAcc |\n| global | 45.25 | 89.5 |\n", "mIoU", one(45.25, None)),
    (
        "+-------+-------+\n| Class |  IoU  |\n+-------+-------+\n|  road | 97.5  |\n|  sky  | 94.5  |\n+-------+-------+",
        "IoU",
        None,
    ),
    // Detectron2.
    ("|   AP   |  AP50  |\n|:------:|:------:|\n| 40.125 | 60.25 |", "AP", one(40.125, None)),
    // timm and PyTorch's ImageNet example print the mean in brackets, and the value is of one batch.
    ("Test: [  48/48]  Time: 0.113 (0.212)  Loss:   0.91 (1.01)  Acc@1:  80.125 ( 78.250)", "Acc@1", one(78.25, None)),
    (
        "Test: [180/196]\tTime  0.113 ( 0.212)\tLoss 9.1e-01 (1.0e+00)\tAcc@1  43.75 ( 42.50)\n *   Acc@1 42.625 Acc@5 69.9",
        "Acc@1",
        one(42.625, None),
    ),
    (
        "Test:  [ 90/98]  eta: 0:00:04  loss: 0.51 (0.61)  acc1: 90.25 (88.50)  time: 0.5  data: 0.1",
        "acc1",
        one(88.5, None),
    ),
    ("Averaged stats: loss: 0.51 (0.61)  acc1: 90.25 (88.50)", "acc1", one(88.5, None)),
    ("val_acc: 0.75 (0.02)", "val_acc", one(0.75, None)),
    // A mean and a deviation.
    ("CV accuracy: 0.75 (+/- 0.02)", "accuracy", one(0.75, None)),
    ("accuracy: 0.75+/-0.02", "accuracy", one(0.75, None)),
    // Another metric with a similar name counts for less than the metric itself.
    ("val_acc: 0.5\nTarget val_acc: 0.9", "val_acc", one(0.5, None)),
    ("accuracy: 0.5\nprevious val accuracy: 0.9", "accuracy", one(0.5, None)),
    // A history at the end, and lists that are none.
    ("Epoch 2/2\n{'loss': [0.5, 0.25], 'acc': [0.75, 0.5]}", "acc", Some((0.5, Some(2.0), [0.5, 0.75], None))),
    ("{\"loss\": [0.5, 0.25], \"val_loss\": [0.75, 0.5]}", "val_loss", Some((0.5, None, [0.5, 0.75], None))),
    ("{'epoch': [1, 2], 'acc': [0.75, 0.5]}", "acc", Some((0.5, Some(2.0), [0.5, 0.75], None))),
    (
        "{'loss': [0.5,\n          0.25],\n 'val_loss': [0.75,\n              0.5]}",
        "val_loss",
        Some((0.5, None, [0.5, 0.75], None)),
    ),
    ("history = {'train_loss': [0.5, 0.25], 'acc': [0.75, 0.5]}", "acc", None),
    ("{'dice': [0.75, 0.5], 'iou': [0.5, 0.25]}", "dice", None),
    ("{'loss': [0.5, 0.25], 'val_loss': [0.75, 0.5, 0.25]}", "val_loss", None),
    ("{'loss': [0.5, 0.25], 'val_loss': [0.75, 0.5", "val_loss", None),
    // A member states the data set of an object.
    ("{\"split\": \"val\", \"acc\": 0.5}\n{\"split\": \"train\", \"acc\": 0.75}", "acc", one(0.5, None)),
    (
        "{'phase': 'train', 'acc': 0.75}\n{'phase': 'val', 'acc': 0.5}\n{'phase': 'train', 'acc': 1.0}",
        "val_acc",
        one(0.5, None),
    ),
    ("{\"mode\": \"train\", \"val_acc\": 0.5}", "val_acc", one(0.5, None)),
    (
        "{\"split\": \"val\", \"metrics\": {\"acc\": 0.5}}\n{\"split\": \"train\", \"metrics\": {\"acc\": 0.98}}",
        "acc",
        one(0.5, None),
    ),
    ("x {'split': 'val', 'm': {'acc': 0.5}}\nx {'split': 'train', 'm': {'acc': 0.98}}", "acc", one(0.5, None)),
    ("{\n 'split': 'val',\n 'acc': 0.5\n}\n{\n 'acc': 0.98,\n 'split': 'train'\n}", "acc", one(0.5, None)),
    ("Val: {\n 'acc': 0.5\n}\nTrain: {\n 'acc': 0.98\n}", "acc", one(0.5, None)),
    // A history of the training data.
    (
        "Epoch 2/2\nVal: {'loss': [0.6, 0.5], 'acc': [0.7, 0.75]}\nTrain: {'loss': [0.5, 0.1], 'acc': [0.9, 0.98]}",
        "acc",
        Some((0.75, Some(2.0), [0.7, 0.75], None)),
    ),
    // The best epoch is not the last one.
    ("{\"last\": {\"val_acc\": 0.88}, \"best\": {\"epoch\": 7, \"val_acc\": 0.93}}", "val_acc", one(0.88, None)),
    ("{\"best_model\": {\"val_acc\": 0.93}, \"final\": {\"val_acc\": 0.88}}", "val_acc", one(0.88, None)),
    // The mean and the deviation of folds.
    (
        "| fold | acc |\n|---|---|\n| 0 | 0.9 |\n| 1 | 0.7 |\n| mean | 0.8 |\n| std | 0.1 |",
        "acc",
        Some((0.8, None, [0.7, 0.9], None)),
    ),
    (
        "| fold | acc |\n|---|---|\n| 0 | 0.9 |\n| 1 | 0.7 |\n| std | 0.1 |",
        "acc",
        Some((0.7, None, [0.7, 0.9], Some(0.9))),
    ),
    // Counts start again in a table that is printed row by row.
    ("epoch  iter  acc\n1  100  0.5\n1  200  0.75\n2  100  0.25", "acc", Some((0.25, Some(100.0), [0.25, 0.75], None))),
    // A class is named like a data set.
    ("| Class | IoU |\n|---|---|\n| road | 97.5 |\n| train | 94.5 |", "IoU", None),
    ("| Class | IoU |\n|---|---|\n| all | 96.5 |\n| valid | 94.5 |", "IoU", one(96.5, None)),
    ("Accuracy of cat on the test set: 56.1 %", "accuracy", None),
    // The histories of two parts of a training.
    (
        "{'loss': [3, 2], 'val_loss': [0.75, 0.5]}\n{'loss': [1, 1], 'val_loss': [0.4, 0.25]}",
        "val_loss",
        Some((0.25, None, [0.25, 0.75], None)),
    ),
    (
        "Test accuracy: 0.7\n{'accuracy': [0.9, 0.98], 'val_accuracy': [0.5, 0.6], 'loss': [1, 1], 'val_loss': [1, 1]}",
        "accuracy",
        one(0.7, None),
    ),
    ("iteration=40 val_acc=0.5", "val_acc", one(0.5, Some(40.0))),
];

const NNUNET: &str = "
2024-04-23 15:22:40.711169: Epoch 195
2024-04-23 15:22:40.724555: Current learning rate: 0.00036
2024-04-23 15:23:41.803760: train_loss -0.7526
2024-04-23 15:23:41.832845: val_loss -0.771
2024-04-23 15:23:41.869548: Pseudo dice [np.float32(0.8399)]
2024-04-23 15:23:41.895059: Epoch time: 61.1 s
2024-04-23 15:23:41.911069: Yayy! New best EMA pseudo Dice: 0.8196
2024-04-23 15:29:06.880623: Mean Validation Dice:  0.698071";

const ULTRALYTICS: &str = "
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        3/3      2.75G      1.123      2.345      1.234         12        640: 100%|██████████| 8/8 [00:01<00:00,  5.11it/s]
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 2/2 [00:01<00:00,  1.11it/s]
                   all         25         64      0.892      0.907      0.963      0.736
                person         25         32      0.792      0.807      0.863      0.636
Speed: 1.1ms pre-process, 9.3ms inference, 0.0ms loss, 0.6ms post-process per image";

const ULTRALYTICS_OF_MASKS: &str = "
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95)     Mask(P          R      mAP50  mAP50-95): 100%|██████████| 8/8
                   all         25         64      0.892      0.907      0.963      0.736      0.892      0.907        0.5       0.25";
