"""A small table with fastai, in the style of its quick start."""
import numpy
import pandas
from fastai.tabular.all import *

random = numpy.random.default_rng(0)
inputs = random.normal(size=(600, 4))
table = pandas.DataFrame(inputs, columns=list("abcd"))
table["label"] = (inputs.sum(axis=1) > 0).astype(int)

loaders = TabularDataLoaders.from_df(
    table, path=".", y_names="label", y_block=CategoryBlock(), cont_names=list("abcd"), procs=[Normalize], bs=64
)
learner = tabular_learner(loaders, metrics=accuracy)
learner.fit_one_cycle(3)
