"""Tiny content under published names, in the layout of the real repositories.

datasets    WikiText-2, SST-2 and SQuAD, made from the sample corpus or from what else is given
models      a model with random weights and a tokenizer of each family
tokenizers  with the special tokens of the published ones
small       the data of the studies' small runs
studies     all that a study's params.yaml pins, at the commits it says
"""

from tests.hub.content.datasets import published_datasets
from tests.hub.content.models import published_models
from tests.hub.server import LocalHub


def add_datasets(hub: LocalHub) -> dict[str, str]:
    """Put every data set on a hub; the commit of each by name."""
    return {name: hub.add("dataset", name, files) for name, files in published_datasets().items()}


def add_models(hub: LocalHub) -> dict[str, str]:
    """Put every model on a hub; the commit of each by name."""
    return {name: hub.add("model", name, files) for name, files in published_models().items()}
