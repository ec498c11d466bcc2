"""Hugging Face Trainer with a tiny random model: evaluates and saves after each epoch."""
import numpy as np
import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


def compute_metrics(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=-1) == prediction.label_ids).mean())}


(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
torch.manual_seed(0)
tokens = torch.randint(0, 100, (512, 16))
data = Dataset.from_dict({"input_ids": tokens.tolist(), "labels": (tokens[:, 0] > 50).long().tolist()})
data = data.train_test_split(test_size=0.25, seed=0)
config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    compute_metrics=compute_metrics,
)
trainer.train(resume_from_checkpoint=get_last_checkpoint(args.output_dir))
trainer.save_model()
