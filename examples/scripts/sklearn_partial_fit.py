"""scikit-learn: partial_fit, joblib, and logging to standard error."""
import argparse
import logging
import os

import joblib
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
parser = argparse.ArgumentParser()
parser.add_argument("--alpha", type=float, default=1e-4)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--model", default="model.joblib")
args = parser.parse_args()

inputs, targets = make_classification(n_samples=40000, n_features=100, n_informative=20, n_classes=4, random_state=0)
train_x, test_x, train_y, test_y = train_test_split(inputs, targets, random_state=0)
if os.path.exists(args.model):
    epoch, model = joblib.load(args.model)
else:
    epoch, model = 0, SGDClassifier(alpha=args.alpha, random_state=0)
while epoch < args.epochs:
    model.partial_fit(train_x, train_y, classes=range(4))
    epoch += 1
    train, test = model.score(train_x, train_y), model.score(test_x, test_y)
    logging.info("epoch %d: train accuracy = %.4f, test accuracy = %.4f", epoch, train, test)
    joblib.dump((epoch, model), args.model)
