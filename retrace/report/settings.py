"""Settings of the report."""

from typing import Any, Literal

from pydantic import Field

from retrace.core.settings import Params, Section


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
