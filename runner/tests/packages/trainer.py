"""Hugging Face's Trainer with a tiny random model."""
import os
import sys
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


class Sentences(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.05)
        return {"input_ids": torch.randint(0, 100, (16,)), "labels": index % 2}


args = TrainingArguments(
    output_dir=os.environ["SPOTSWEEP_CHECKPOINTS"],
    max_steps=120,
    per_device_train_batch_size=4,
    save_steps=20,
    save_total_limit=3,
    report_to="none",
    use_cpu=True,
    dataloader_num_workers=2,
    enable_jit_checkpoint="--jit" in sys.argv,
)
config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
trainer = Trainer(model=BertForSequenceClassification(config), args=args, train_dataset=Sentences())
last = get_last_checkpoint(args.output_dir)
print(f"START after={last.rsplit('-')[-1] if last else 0}")
trainer.train(resume_from_checkpoint=last)
print(f"END at={trainer.state.global_step}")
