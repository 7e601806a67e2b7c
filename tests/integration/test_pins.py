"""Every data set that params.yaml and the studies pin, by its name, commit, config, splits and columns.

The local hub holds tiny ones under these names and commits, laid out as the real ones are. The models that the studies
pin are trained in test_studies.py.
"""

import json
from pathlib import Path
from typing import Any

from tests.hub import LocalHub
from tests.hub.client import run_client
from tests.hub.content.datasets import TOPICS
from tests.hub.content.small import small_data
from tests.hub.content.studies import add_pinned, read_preset
from tests.toy import ROOT

PRESETS = [read_preset(path) for path in (ROOT / "data/params.yaml", *sorted(ROOT.glob("studies/*/params.yaml")))]


def _read_datasets(hubs: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Write the parts of each `hub` of a params.yaml, and read its further tasks; what there is of each."""
    from retrace.core.files import read_json
    from retrace.core.paths import CARD
    from retrace.datasets.source import Source
    from retrace.hub.settings import HubClassificationParams, HubParams
    from stages.sources.hub import write_source
    from stages.sources.hub_classification import read_hub_task

    found = []
    for number, hub in enumerate(hubs):
        parts: dict[str, Any] = {}
        if "text" in hub:
            source = Source.within(Path(folder) / str(number))
            write_source(source, HubParams.read({"data": "hub", "hub": hub}).hub)
            source.write_cards()
            parts = {name: read_json(of / CARD)["parts"] for name, of in vars(source).items()}
        for task in hub.get("classification") or {}:
            settings = HubClassificationParams.read({"hub": hub}, key=task).task
            data = read_hub_task(settings, f"hub.classification.{task}")
            parts[task] = [list(data.classes), {part: len(rows) for part, rows in data.parts.items()}]
        found.append(parts)
    return found


def test_every_data_set_is_there_in_config_splits_and_columns(hub: LocalHub, tmp_path: Path) -> None:
    for preset in PRESETS:
        add_pinned(hub, preset)
    different = {json.dumps(preset["hub"], sort_keys=True): preset["hub"] for preset in PRESETS if "hub" in preset}
    found = run_client(hub, tmp_path / "home", _read_datasets, list(different.values()), str(tmp_path))
    for of, parts in zip(different.values(), found, strict=True):
        assert parts.keys() == ({"text", "sst2", "squad"} & of.keys()) | (of.get("classification") or {}).keys()
        if "text" in of:
            assert all(found["documents"] for found in parts["text"].values())
            for part in ("train", "dev"):
                assert all(parts["sst2"][part]["classes"].values())
                assert parts["squad"][part]["unanswerable"] < parts["squad"][part]["questions"]
    (news,) = (parts["ag_news"] for parts in found if "ag_news" in parts)
    assert news[0] == list(TOPICS)
    rows = small_data().news
    assert (news[1]["train"] + news[1]["dev"], news[1]["test"]) == (len(rows["train"]), len(rows["test"]))
    configs = {Path(seen.path).parent.name for seen in hub.requests if ".parquet" in seen.path}
    assert configs >= {"wikitext-2-raw-v1", "sst2", "squad_v2", "data"}
