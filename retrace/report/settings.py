"""Settings of the report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from retrace.core.settings import Params, Section, read_yaml

PRESETS = Path("presets")


class ReportSettings(Section):
    """What the report prints."""

    samples: Literal["spread", "first"] = Field(
        default="spread", description="predictions printed of each task: some spread over the data, or the first ones"
    )


class ReportParams(Params):
    """What stages/report.py reads: all of params.yaml, which it prints, and the settings of the data source."""

    report: ReportSettings
    params: dict[str, Any] = Field(alias="params.yaml:")
    source: dict[str, Any] = Field(alias="data/params.yaml:${data}")

    @property
    def data(self) -> str:
        """The data source."""
        return self.params["data"]


def read_presets() -> dict[str, dict[str, Any]]:
    """The presets as they would stand in params.yaml: each over the sample's."""
    sample = read_yaml(PRESETS / "sample.yaml")
    return {path.stem: _merged(sample, read_yaml(path)) for path in sorted(PRESETS.glob("*.yaml"))}


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(below[key], of)
        for key, of in above.items()
        if isinstance(of, dict) and isinstance(below.get(key), dict)
    }
    return below | above | both


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings by dotted key; a section that is empty has none."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found
