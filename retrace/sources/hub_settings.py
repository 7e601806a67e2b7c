"""Further classification tasks on data sets of the hub, as data/params.yaml names them."""

from pydantic import Field

from retrace.hub.settings import HubDataset
from retrace.sources.settings import TaskParams, TaskSettings


class HubTaskSettings(HubDataset, TaskSettings):
    """A further classification task on a data set; train, dev and test are splits of it."""

    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")


class HubClassificationParams(TaskParams):
    """What stages/sources/hub_classification.py reads."""

    task: HubTaskSettings = Field(alias="data/params.yaml:hub.classification.${key}")
