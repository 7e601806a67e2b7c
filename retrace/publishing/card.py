"""The card of a published model: its training data, training, scores and limits, and how to load it.

`Trained` reads the facts from params.yaml, data cards, runs and reports; `model_card` writes the card.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.paths import CARD, DATA, PRETRAINED, checkpoint_facts, on_test
from retrace.core.records import RunRecord
from retrace.core.settings import build, values_of
from retrace.datasets.source import Source
from retrace.evaluation.records import DETAILS, AnswerBreakdown, Details, MethodDetails, SeedDetails, TaskDetails
from retrace.finetuning.method import read_method
from retrace.finetuning.run import adjusted
from retrace.finetuning.settings import FineTuneSettings, entry_in_force
from retrace.hub.pins import Pin
from retrace.hub.settings import HubSettings, HubTaskSettings, HubText
from retrace.models.heads import read_config
from retrace.perplexity.measures import PERPLEXITY_DETAILS, UNKNOWN_TOKENS, PerplexityReport
from retrace.publishing.bundle import Address, LoadingCode
from retrace.report.blocks import Code, Table
from retrace.report.flags import LANGUAGE_MODELS, TEXTS, TITLES, Found
from retrace.report.names import baseline_name, score_rows, with_real_thresholds
from retrace.report.page import fill_markdown
from retrace.report.pretraining import INTERVALS, perplexity_table
from retrace.report.results import judged, most_seeds, read_tasks, seconds_of, shares_of
from retrace.report.runs import counts_table, read_runs, settings_table
from retrace.report.summary import reading, same_start_as_full, summary_table, verdict
from retrace.results.grid import RUNS, Cell, Grid
from retrace.statistics.scales import Flags, Shortfall
from retrace.tasks.question_answering.settings import settings_of

FOLDER = Path(__file__).parent
# Title, licence (null where the authors give none) and citation of data sets, by repository of the hub and config.
WORKS: dict[str, dict[str, str | None]] = read_json(FOLDER / "works.json")
PIPELINES = {
    "classifier": "text-classification", "spans": "question-answering", "masked": "fill-mask",
    "causal": "text-generation",
}  # fmt: skip
RANDOM = ("family", "precision", "tokenizer", "model")  # keys of params.yaml behind a model that is not pretrained
NOT_ON_HUB = "not-on-the-hub"  # for metadata that must name a data set of the hub
PRETRAINING = ("lr", "seed", "family", "precision", "tokenizer", "model", "pretrain")
LIBRARIES = ("torch", "transformers")
LEARNED = ("never_predicted", UNKNOWN_TOKENS)  # flags of models that may have learned much


@dataclass(frozen=True)
class DataOrigin:
    """The origin of a part of the data; None: unknown."""

    name: str  # of the part: text, sst2, squad or a further task
    title: str
    pin: Pin | None = None  # of a data set of the hub
    config: str | None = None
    split: str = "validation"  # on which the figures were computed
    licence: str | None = None
    citation: str | None = None


def hub_origin(name: str, pin: Pin, config: str, split: str, licence: str | None) -> DataOrigin:
    """A data set of the hub; `licence` is the one on its card, used if WORKS has none."""
    work = WORKS.get(f"{pin.repository} {config}") or WORKS.get(pin.repository) or {}
    title, licence = work.get("title") or pin.repository, work.get("licence") or licence
    return DataOrigin(name, title, pin, config, split, licence, work.get("citation"))


class Trained:
    """A model of this project: the fine-tuned model of a cell or, without a cell, the pretrained one."""

    def __init__(self, cell: Cell | None, params: Mapping[str, Any]) -> None:
        """Raises InputError if params.yaml has no such method."""
        self.cell, self.params = cell, params
        self.name = cell.title if cell else PRETRAINED.name
        self.method = read_method(params, cell.method, cell.task) if cell else None
        self.base = self.method.base if self.method else PRETRAINED  # the folder that its training started from
        self.is_own = self.base == PRETRAINED and not (self.method and self.method.is_random)  # pretrained here
        texts = _pretraining_texts(params) if self.is_own else []
        # The data that it was trained on here, its task's data last.
        self.data = [*(name for name in texts if not cell or name != cell.task), *([cell.task] if cell else [])]

    @property
    def is_random(self) -> bool:
        """Whether fine-tuning started from random weights, those of its method or of its checkpoint's `random_seed`."""
        if self.method is None:
            return False
        return self.method.is_random or (self.base != PRETRAINED and "random" in checkpoint_facts(self.base))

    @property
    def tokenizer_saw_more(self) -> bool:
        """Whether the tokenizer was trained on texts that the model was not trained on."""
        return not set(self.params["tokenizer"].get("train_on", ["text"])) <= set(self.data)

    @property
    def has_own_task(self) -> bool:
        """Whether it was fine-tuned on a further task, neither sst2 nor squad."""
        return self.cell is not None and self.cell.task not in ("sst2", "squad")

    @cached_property
    def details(self) -> Details | None:
        """The contents of scores.json; None if nothing was scored."""
        return Details.read(DETAILS) if DETAILS.is_file() else None

    @cached_property
    def perplexity(self) -> PerplexityReport | None:
        """The perplexity of the pretrained model; None if it was not measured."""
        return PerplexityReport.read(PERPLEXITY_DETAILS) if PERPLEXITY_DETAILS.is_file() else None

    @property
    def is_tested(self) -> bool:
        """Whether its figures are on a test set."""
        return bool(self.cell and self.details and on_test(self.cell.task) in self.details.tasks)

    @property
    def family(self) -> str:
        """Its architecture, a file of retrace/families."""
        return read_config(self.base).model_type

    @property
    def summary(self) -> str:
        """One sentence: what the model is."""
        if self.cell is None or self.method is None:
            return f"A language model of the family {self.family}, made with Retrace."
        how = (self.method.tuning.__doc__ or "").partition("\n")[0]
        tuned = f"fine-tuned on {self.cell.task} with Retrace: {self.cell.method}, seed {self.cell.seed}"
        return f"A model of the family {self.family}, {tuned}. {how}"

    def results(self) -> tuple[list[str], str, Table | None]:
        """The report's verdict; how to read its table; and the table of all methods and tasks, None without scores."""
        tasks = read_tasks(self.details, self.params, with_curves=False) if self.details else []
        runs, scored = read_runs(self.params), [task for task in tasks if task.methods]
        shares = shares_of(runs)
        alike = same_start_as_full(shares, self.params.get("methods", {}))
        sentences = verdict(judged(tasks), self.perplexity, alike)
        if not scored:
            return sentences, "", None
        table, seeds = summary_table(scored, shares, seconds_of(runs)), most_seeds(scored)
        own = f"; this model is of seed {self.cell.seed}" if self.cell else ""
        means = f"Means over {seeds} seeds{own}. " if seeds > 1 else ""
        scores = "; ".join(text for text, _ in table.groups if ": " in text)
        last = " The last rows are baselines, which need no language model." if table.apart else ""
        return sentences, f"{scores}. {means}{reading(scored)}{last}", table

    @property
    def may_abstain(self) -> bool:
        """Whether it may give no answer, which a model learns only from training questions without one."""
        found = [method.breakdown for _, method, _ in self.scored]
        return any(isinstance(breakdown, AnswerBreakdown) and breakdown.threshold_curve for breakdown in found)

    @cached_property
    def learned_nothing(self) -> Flags:
        """Signs that the model has learned nothing: name → evidence."""
        flags = _by_split([trial.flags for _, _, trial in self.scored]) if self.cell else self._text_flags
        return {name: why for name, why in flags.items() if not name.startswith(LEARNED)}

    @cached_property
    def _text_flags(self) -> Flags:
        """The flags of the pretrained model's perplexities."""
        splits = PerplexityReport.read(PERPLEXITY_DETAILS).splits if self.cell is None else {}
        return {f"{name} on {part}": why for part, split in splits.items() for name, why in split.flags.items()}

    @cached_property
    def flags(self) -> Flags:
        """These signs, and the other flags of the model, of the text, of the method over all seeds and of the data."""
        others = _by_split([trial.flags | method.flags | task.flags for task, method, trial in self.scored])
        return self.learned_nothing | self._text_flags | others

    @property
    def flag_lines(self) -> list[str]:
        """These flags with their evidence, a line for each."""
        return [self._line(flag, evidence) for flag, evidence in self.flags.items()]

    def _line(self, name: str, evidence: str | Shortfall) -> str:
        flag, _, part = name.partition(" on ")
        legend = LANGUAGE_MODELS if self.cell is None else self.scored[0][0].legend
        found = Found("", "", "", flag, evidence, legend)
        where = f" on {TEXTS[part]} text" if self.cell is None else f" on {part}" if part else ""
        return f"{found.title}{'' if flag in TITLES else where}: {found.said}"

    @property
    def origins(self) -> list[DataOrigin]:
        """The origins of the data that it was trained on, its task's data last."""
        return [self._origin(name) for name in self.data]

    @property
    def counts(self) -> Table:
        """The size of each split of the data."""
        return counts_table({name: read_json(self._data_of(name) / CARD) for name in self.data})

    def training(self, commit: str) -> Table:
        """Run, versions and settings; settings by their keys in params.yaml."""
        cell, params = self.cell, self.params
        run = RunRecord.read((RUNS / (cell.path if cell else "pretrain")).with_suffix(".json"))
        versions = run.origin.versions
        made: dict[str, Any] = {"git commit": commit} | {name: versions[name] for name in LIBRARIES if name in versions}
        made |= {name.replace("_", " "): getattr(run, name) for name in ("updates", "parameters", "trained_parameters")}
        made |= {"device": run.device, "precision used": run.precision}
        keys, tuned = self._made_by, dict[str, Any]()
        if cell is not None:
            made |= {"fine-tuning seed": cell.seed, "epoch": self.scored[0][2].epoch}
            tuned = {f"methods.{cell.method}": entry_in_force(params, cell.method, cell.task)}
            keys = (*keys, cell.task)
        return settings_table(made, values_of(params, keys) | tuned)

    @property
    def _made_by(self) -> tuple[str, ...]:
        """The keys of params.yaml that made the model that fine-tuning started from."""
        if self.base != PRETRAINED:
            return ("precision",)
        keys, model = PRETRAINING if self.is_own else RANDOM, self.params["model"]
        if not model.get("checkpoint"):
            return keys
        # The checkpoint's tokenizer and sizes replace those of params.yaml.
        given = [f"model.{key}" for key in ("checkpoint", "random_seed") if model.get(key) is not None]
        texts = [f"tokenizer.{key}" for key in ("train_on", "with_questions") if key in self.params["tokenizer"]]
        return (*(key for key in keys if key not in ("model", "tokenizer")), *given, *texts)

    @property
    def evaluated(self) -> DataOrigin:
        """The data that its figures were computed on."""
        return self._origin(self.cell.task if self.cell else "text")

    def _data_of(self, name: str) -> Path:
        """The folder of the running text, of what `tokenizer.train_on` lists, or of the task."""
        known: dict[str, Path] = asdict(Source.within(DATA))
        return known.get(name) or Grid.read(self.params).data_of(name)

    def _origin(self, name: str) -> DataOrigin:
        """The origin of data, and the split of it that is scored."""
        params, is_tested = self.params, self.is_tested and name != "text"
        split = "test" if is_tested else "validation"
        data = build(str, params, "data")
        if name in params.get("hub", {}).get("classification", {}):
            settings, licence = build(HubTaskSettings, params, f"hub.classification.{name}"), None
        elif data == "files" or name in {**params.get("classification", {}), **params.get("question_answering", {})}:
            return DataOrigin(name, "the publisher's own files", split=split)
        elif data == "sample":
            title = "Retrace's generated sample, about an invented country"
            return DataOrigin(name, title, split=split, licence="Apache-2.0")
        else:
            settings = getattr(build(HubSettings, params, "hub"), name)
            licence = read_json(self._data_of(name) / CARD)["origin"]["licence"]
        if isinstance(settings, HubText):
            split = settings.valid
        elif is_tested:
            split = settings.test or split
        else:
            split = settings.dev or f"{settings.train}, of which a part was held out"
        if settings.stream:
            split += f", the first {settings.stream:,} rows"
        return hub_origin(name, settings.pin, settings.config, split, licence)

    @property
    def started(self) -> dict[str, Any]:
        """The facts of the checkpoint that training started from; empty if its weights were random."""
        if self.is_random:
            return {}
        found = checkpoint_facts(self.base)
        return found if found["from"] and "random" not in found else {}  # the seed, which may be 0

    @property
    def task_settings(self) -> FineTuneSettings | None:
        """The settings of the cell's task as its method adjusts them; None for the pretrained model."""
        if self.cell is None or self.method is None:
            return None
        return adjusted(settings_of(self.params, self.cell.task), self.method.settings)

    @cached_property
    def scored(self) -> list[tuple[TaskDetails, MethodDetails, SeedDetails]]:
        """The figures of the cell's task, method and seed: on the test set, if there is one, and on validation.

        Empty for the pretrained model. Raises InputError if the cell was not scored.
        """
        if self.cell is None:
            return []
        tasks, cell = self.details.tasks if self.details else {}, self.cell
        names = [on_test(cell.task), cell.task] if self.is_tested else [cell.task]
        try:
            methods = [(tasks[name], tasks[name].methods[cell.method]) for name in names]
            return [(task, method, method.seeds[str(cell.seed)]) for task, method in methods]
        except KeyError:
            raise InputError(f"{DETAILS}: no figures of {self.name}; run dvc repro first") from None


def _by_split(flags: Sequence[Flags]) -> Flags:
    """The flags of the only split, or those of the test set and, named as such, those of validation."""
    return {
        f"{flag} on validation" if place else flag: evidence
        for place, split in enumerate(flags)
        for flag, evidence in split.items()
    }


def model_card(model: Trained, published: LoadingCode, address: Address, commit: str) -> ModelCard:
    """The card in Markdown, below the metadata that the hub reads."""
    origins, task = model.origins, model.evaluated
    repositories, pin = [origin.pin.repository for origin in origins if origin.pin], task.pin
    pipeline, started = PIPELINES[published.use], model.started
    sentences, note, table = model.results()
    legend = model.scored[0][0].legend if model.scored else {}
    data = ModelCardData(
        library_name=published.library, pipeline_tag=pipeline,
        tags=["retrace", model.family, *([model.cell.method] if model.cell else [])],
        datasets=list(dict.fromkeys(repositories)) or None,
        base_model=address.base.repository if address.base else started.get("repository"),
        model_name=address.repository.rpartition("/")[2],
        eval_results=[
            EvalResult(
                task_type=pipeline, dataset_type=pin.repository if pin else NOT_ON_HUB,
                dataset_name=task.title, dataset_config=task.config, dataset_revision=pin and pin.commit,
                dataset_split=task.split, metric_type=name, metric_value=value,
                metric_name=legend[name].name if name in legend else name.replace("_", " "),
            )
            for name, value in headline_figures(model).items()
        ],
    )  # fmt: skip
    body = fill_markdown(
        "card.md.j2", FOLDER, model=model, repository=address.repository, started=started, sentences=sentences,
        note=note, of_run=table, code=Code("\n".join(published.lines)), scores=model.scored and _score_table(model),
        perplexity=None if model.cell else model.perplexity and perplexity_table(model.perplexity),
        intervals=INTERVALS, origins=origins, training=model.training(commit), published=published,
    )  # fmt: skip
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body.strip()}\n")


def headline_figures(model: Trained) -> dict[str, float]:
    """The figures that the model is judged by."""
    if model.scored:
        task, _, trial = model.scored[0]
        return {name: trial.figures[name] for name in task.headlines if name in trial.figures}
    assert model.perplexity is not None, "a model without scores is a language model"
    return {
        f"{name}_perplexity": figures.perplexity_per_token
        for name, figures in model.perplexity.splits["valid"].measures.items()
        if name != "unigram" and figures.perplexity_per_token is not None
    }


def _score_table(model: Trained) -> Table:
    task, _, trial = model.scored[0]
    now, before = (with_real_thresholds(figures, [figures]) for figures in (trial.figures, trial.before))
    columns = [(now, trial.intervals, {}), (before, {}, {})]
    columns += [(baseline.figures, baseline.intervals, {}) for baseline in task.baselines.values()]
    header = ("score", "unit", "this model", "before fine-tuning", *map(baseline_name, task.baselines))
    return Table(header, score_rows(trial.figures, task.legend, columns))


def _pretraining_texts(params: Mapping[str, Any]) -> list[str]:
    """The data that pretraining read: only the running text if all epochs train on that alone."""
    texts, recipe = params["tokenizer"].get("train_on", ["text"]), params["pretrain"]
    most = recipe["epochs"] - recipe.get("text_epochs", 0)
    return [name for name in texts if most > 0 or (recipe["epochs"] and name == "text")]
