"""Prints tables as pandas, Polars, tabulate and scikit-learn do: python printed_tables.py printed

Needs pandas 3.1.1, polars 2.1.0, tabulate 0.10.0 and scikit-learn 1.9.1. printed.rs reads what this leaves in printed/.
"""
import sys
from pathlib import Path

import pandas
import polars
from sklearn.metrics import classification_report

FOLDER = Path(sys.argv[1])
HISTORY = {
    "loss": [0.693147, 0.512, 0.41],
    "accuracy": [0.5, 0.75, 0.8],
    "val_loss": [0.65, 0.55, 0.6],
    "val_accuracy": [0.61, 0.7, 0.68],
}
FRAME = pandas.DataFrame({"epoch": [1, 2, 3], "train_loss": [0.5123, 0.3, 0.2], "val_acc": [0.43, 0.53, 0.51]})
LIGHTNING = pandas.DataFrame({
    "epoch": [0, 0, 1, 1], "step": [5, 5, 11, 11],
    "train_loss": [None, 0.6, None, 0.4], "val_acc": [0.41, None, 0.43, None]
})
WIDE = pandas.DataFrame({"epoch": [1, 2], **{f"train_metric_{n}": [0.1, 0.2] for n in range(9)}, "val_acc": [0.43, 0.51]})
TRUE, GUESSED = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2], [0, 0, 1, 1, 1, 1, 2, 2, 0, 1]
REPORT = classification_report(TRUE, GUESSED, output_dict=True)
MEANS = {"train": {"accuracy": 0.98, "loss": 0.1}, "val": {"accuracy": 0.91, "loss": 0.2}}
TEXTS = {
    "frame": str(FRAME),
    "frame_to_string": FRAME.to_string(index=False),
    "frame_markdown": FRAME.to_markdown(),
    "frame_csv": FRAME.to_csv(),
    "frame_with_gaps": str(LIGHTNING),
    "frame_with_gaps_markdown": LIGHTNING.to_markdown(),
    "frame_sorted": str(FRAME.sort_values("val_acc", ascending=False)),
    "frame_sorted_again": str(FRAME.sort_values("val_acc").reset_index(drop=True)),
    "frame_indexed": str(FRAME.set_index("epoch")),
    "frame_folded": WIDE.to_string(line_width=60),
    "frame_cut": str(WIDE),
    "history": str(pandas.DataFrame(HISTORY)),
    "one_row": str(pandas.DataFrame([{"accuracy": 0.91, "f1": 0.905}])),
    "folds": str(pandas.DataFrame({"fold": [0, 1, 2], "val_loss": [0.2, 0.3, 0.1], "val_acc": [0.91, 0.72, 0.95]})),
    "describe": str(FRAME.describe()),
    "described_in_rows": str(FRAME.describe().T),
    "last_row": str(FRAME.iloc[-1]),
    "series": str(pandas.Series({"val_acc": 0.51, "val_loss": 0.2})),
    "sets_in_columns": str(pandas.DataFrame(MEANS)),
    "sets_in_rows": str(pandas.DataFrame(MEANS).T),
    "phases": str(pandas.DataFrame({"epoch": [1, 1], "phase": ["val", "train"], "accuracy": [0.5, 0.75]})),
    "polars": str(polars.DataFrame(FRAME.to_dict("list"))),
    "report": classification_report(TRUE, GUESSED),
    "report_named": classification_report(TRUE, GUESSED, target_names=["cat", "dog", "a bird"]),
    "report_frame": str(pandas.DataFrame(REPORT).T),
    "report_dictionary": str(REPORT),
    "history_dictionary": str(HISTORY),
}

FOLDER.mkdir(exist_ok=True)
for name, text in TEXTS.items():
    (FOLDER / f"{name}.txt").write_text(text + "\n")
