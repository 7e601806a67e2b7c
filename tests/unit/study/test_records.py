"""Runs of a fixed budget: their own figures, which of them is a record, and the page docs/records.md."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from scipy.stats import ttest_ind

from retrace.cli import study
from retrace.core.errors import InputError
from retrace.core.files import read_json, write_json
from retrace.core.settings import build_file, read_yaml
from retrace.perplexity.measures import UNITS
from retrace.study.published import PublishedStudy
from retrace.study.records import Entry, Standing, add_entry, read_entry, read_records, records_page, standings
from tests.commands import Done, refused, retrace
from tests.study import method_of
from tests.toy import ROOT, copy_project

COMMIT, OTHER = "a" * 40, "b" * 40
BASE = {"sst2": (0.80, 0.81, 0.82), "squad": (50.0, 51.0, 52.0), "perplexity": (25.0, 25.1, 25.2)}
GOOD = {name: dict(enumerate(of, 1)) for name, of in BASE.items()}
ORIGIN = {"commit": COMMIT, "clean": True, "date": "2026-11-22", "machine": "A machine, 2 cores", "versions": {}}


def _entry(commit: str = COMMIT, **figures: Sequence[float]) -> Entry:
    by_seed = {name: dict(enumerate(of, 1)) for name, of in (BASE | figures).items()}
    return Entry(commit, "2026-11-22", "two cores", "1 min", "None.", "dvc repro", by_seed, 4.0)


def test_the_page_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert (ROOT / "docs/records.md").read_text() == retrace("records").out, "run: retrace records > docs/records.md"


def test_the_study_of_a_budget_says_which_settings_its_figures_do_not_have() -> None:
    """They are of an earlier run, or of another machine, and the study's settings have changed since."""
    for name, said in (
        ("two-cores", "{sst2[epochs]} epochs with R-Drop of weight {sst2[rdrop]}"),
        ("one-gpu", "{model[layers]} of width {model[hidden_size]}"),
    ):
        folder = ROOT / "studies" / name
        differences = " ".join(build_file(PublishedStudy, folder / "published.yaml").differences)
        assert said.format_map(read_yaml(folder / "params.yaml")) in differences


def test_a_record_is_better_by_welchs_test_whichever_way_that_is() -> None:
    """Higher accuracy and lower perplexity are better; a lower F1 is worse. The smallest p is scipy's, times three."""
    new = {"sst2": (0.90, 0.91, 0.93), "squad": (40.0, 41.0, 41.5), "perplexity": (24.0, 24.1, 24.3)}
    found = standings([_entry(), _entry(OTHER, **new)])[1]
    assert [of.result for of in found.values()] == ["record", "worse", "record"]
    plain: dict[str, Any] = {name: ttest_ind(new[name], BASE[name], equal_var=False)[1] for name in BASE}
    smallest = min(plain, key=lambda name: plain[name])
    assert found[smallest].p == pytest.approx(3 * plain[smallest], rel=1e-6)


def test_what_chance_explains_is_no_record_and_the_next_run_meets_the_best() -> None:
    luck = _entry(OTHER, sst2=(0.81, 0.81, 0.83))
    _, second, third = standings([_entry(), luck, _entry("c" * 40, sst2=(0.90, 0.91, 0.93))])
    assert [of.result for of in second.values()] == ["no difference shown"] * 3
    assert (third["sst2"].before, third["sst2"].result) == (0, "record")


def test_perplexities_of_other_tokens_are_compared_by_the_loss_per_byte() -> None:
    """Tokens of a tenth fewer bytes: as much loss per byte is ppl ** 0.9 per token, which looks better and is not."""
    shorter = replace(_entry(OTHER, perplexity=[value**0.9 for value in BASE["perplexity"]]), bytes_per_token=3.6)
    found = standings([_entry(), shorter])[1]["perplexity"]
    assert (found.result, found.p) == ("no difference shown", pytest.approx(1.0))
    worse = replace(shorter, figures=shorter.figures | {"perplexity": {1: 20.0, 2: 20.1, 3: 20.2}})
    assert standings([_entry(), worse])[1]["perplexity"].result == "worse"


def test_where_no_seed_differs_there_is_no_p_and_no_record() -> None:
    found = standings([_entry(sst2=(0.8,) * 3), _entry(OTHER, sst2=(0.9,) * 3)])[1]["sst2"]
    assert found == Standing(0, None, "not tested: within each run all seeds gave the same figure", False)


def test_one_run_whose_seeds_differ_is_enough_for_a_test() -> None:
    """t has two degrees of freedom, where its p is known in closed form; p times three by Holm's correction."""
    found = standings([_entry(sst2=(0.8,) * 3), _entry(OTHER, sst2=(0.90, 0.91, 0.92))])[1]["sst2"]
    t_value = 0.11 / (0.01 / math.sqrt(3))
    assert found.p == pytest.approx(3 * (1 - t_value / math.sqrt(2 + t_value**2)), rel=1e-6)


def test_what_is_wrong_in_the_file_is_one_line(tmp_path: Path) -> None:
    good = dict.fromkeys(("date", "machine", "time", "change", "command"), "text")
    good |= {"commit": COMMIT, "figures": GOOD, "bytes_per_token": 4.0}
    path = tmp_path / "records.yaml"
    for value, message in (
        ({"commit": "main"}, "entries[0].commit: 'main' is not allowed; expected the 40 hexadecimal digits"),
        ({"figures": {"sst2": {1: 0.8}}}, "entries[0].figures: ['sst2'] is not allowed; expected sst2, squad, perpl"),
        ({"figures": GOOD | {"squad": {1: 50.0, 2: 51.0}}}, "entries[0].figures.squad: {1: 50.0, 2: 51.0} is not"),
        ({"bytes_per_token": 0.0}, "entries[0].bytes_per_token: 0.0 is not allowed; expected a number above 0"),
    ):
        YAML().dump({"entries": [good | value]}, path)
        with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {message}')}[^\n]*$"):
            read_records(path)


def _finish(folder: Path, seed: int, **changes: Any) -> None:
    """Write what a finished run leaves, whose accuracy is 0.8 and a hundredth of its seed."""
    values = {"commit": COMMIT, "changed": [], "seconds": 60.0, "methods": ["full"], "small": False} | changes
    tasks = {}
    for task, figure, start in (("sst2", "accuracy", 0.8), ("squad", "f1", 50.0)):
        trial = {"epoch": 1, "figures": {figure: start + seed / 100}, "intervals": {}, "before": {}}
        methods = {method: method_of({}, {str(seed): trial}, {}, {}) for method in values["methods"]}
        tasks[task] = {"headlines": [figure], "legend": {}, "baselines": {}, "comparisons": [], "methods": methods}
    record = {"seconds": values["seconds"], "evaluation_seconds": 15.0, "origin": ORIGIN}
    perplexity = values.get("perplexity", 20.0 + seed)
    bits = perplexity and math.log2(perplexity) / 4  # tokens of four bytes
    units = dict.fromkeys(UNITS, 1.0) | {"perplexity_per_token": perplexity, "bits_per_byte": bits}
    runs = ("pretrain", "stages/evaluate", f"sst2/full/{seed}", f"squad/full/{seed}")
    files = {f"runs/{run}": record for run in runs} | {
        "runs/sst2/lora/1": record | {"seconds": 1e6},  # of a method that is no longer listed
        "scores": tasks,
        "perplexity-details": {"valid": {"masked": units, "beats_unigram": True, "flags": {}}},
        "study": {"title": "T", "source": "S", "small": values["small"], "tables": {}},
        "origin": {"commit": values["commit"], "changed": values["changed"], "seed": seed},
    }  # fmt: skip
    for name, content in files.items():
        write_json(folder / f"reports/{name}.json", content)


def _finish_three(folder: Path, **of_third: Any) -> dict[str, Path]:
    """Three finished runs, from a seed each."""
    for seed in (1, 2, 3):
        _finish(folder / str(seed), seed, **(of_third if seed == 3 else {}))
    return {f"run --seed {seed}": folder / str(seed) for seed in (1, 2, 3)}


def test_an_entry_has_the_runs_own_figures(tmp_path: Path) -> None:
    found = read_entry("two-cores", "Nothing.", _finish_three(tmp_path))
    assert found == Entry(
        commit=COMMIT, date="2026-11-22", machine="A machine, 2 cores", change="Nothing.",
        time="5 min, 5 min, 5 min of tokenizing, training with its evaluations, perplexity and scoring",
        command=f"git checkout {COMMIT[:12]}\nrun --seed 1\nrun --seed 2\nrun --seed 3",
        figures={"sst2": {1: 0.81, 2: 0.82, 3: 0.83}, "squad": {1: 50.01, 2: 50.02, 3: 50.03},
                 "perplexity": {1: 21.0, 2: 22.0, 3: 23.0}}, bytes_per_token=4.0,
    )  # fmt: skip


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"changed": ["retrace/x.py"]}, "two-cores: the run belongs to no commit, as retrace/x.py was not committed"),
        ({"commit": None}, "two-cores: the run belongs to no commit, as nothing was committed when it began"),
        ({"commit": OTHER}, f"two-cores: the runs are of several commits, {COMMIT} and {OTHER}; run all again"),
        ({"small": True}, "two-cores: a small run cannot be a record: run"),
        ({"methods": ["full", "lora"]}, "3/reports/scores.json: sst2: expected one method, found full, lora"),
        ({"perplexity": None}, "3/reports/perplexity-details.json: valid.masked.perplexity_per_token: no figure"),
    ],
)
def test_a_run_that_is_no_evidence_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        read_entry("two-cores", "", _finish_three(Path(), **changes))


def test_one_run_has_to_be_within_the_budget(tmp_path: Path) -> None:
    """The work is the same for each seed, so one run shows what time it takes on a machine that does nothing else."""
    runs = _finish_three(tmp_path, seconds=3600.0)
    assert read_entry("two-cores", "", runs).time.startswith("5 min, 5 min, 4.0 h of")
    for seed in (1, 2):
        _finish(tmp_path / str(seed), seed, seconds=1800.0)
    with pytest.raises(
        InputError, match=r"^two-cores: the fastest run took 2\.0 h; the budget is two cores, two hours$"
    ):
        read_entry("two-cores", "", runs)


def test_runs_that_are_unfinished_or_of_two_seeds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^two-cores was not run to its end: a$"):
        read_entry("two-cores", "", dict.fromkeys("abc", tmp_path))
    # That there are only two seeds is reported first: the third takes hours.
    with pytest.raises(InputError, match=r"^two-cores: too few different seeds: 2; expected 3 or more$"):
        read_entry("two-cores", "", dict.fromkeys("ab", tmp_path))


@pytest.mark.parametrize("end", ["\n", ""])
def test_an_entry_is_added_behind_the_others_which_stay_as_they_are(tmp_path: Path, end: str) -> None:
    """The last line may have been edited by hand, and end without a line break."""
    path = tmp_path / "records.yaml"
    entries = _entry(), _entry(OTHER, sst2=(0.9, 0.91, 0.92))
    add_entry(path, entries[0])
    before = "# Runs.\n" + path.read_text().replace("time: 1 min", 'time: "1\n      min"').rstrip("\n") + end
    path.write_text(before)
    add_entry(path, entries[1])
    assert path.read_text().startswith(before)
    assert read_records(path) == entries
    with pytest.raises(InputError, match=f"records.yaml: a run of commit {OTHER} is there already$"):
        add_entry(path, _entry(OTHER))


def test_an_ended_run_is_recorded_by_the_commit_it_began_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages are done by hand. What they write is no change, and a new file of code is one, shown by git or not."""

    def run_by_hand(_: Sequence[str], folder: Path) -> int:
        seed = YAML(typ="safe").load(folder / "params.yaml")["seed"]
        _finish(folder, seed)
        (folder / "reports/study").mkdir(exist_ok=True)
        return 0

    project = copy_project(tmp_path / "project", git=True)
    project.run("git", "config", "status.showUntrackedFiles", "no")
    (project.folder / "studies/two-cores/records.yaml").unlink()
    project.commit("no runs")
    commit = project.run("git", "rev-parse", "HEAD").stdout.strip()
    monkeypatch.setattr(study, "run_dvc", run_by_hand)
    monkeypatch.setattr(study, "RETRACE", ("true",))
    monkeypatch.chdir(project.folder)
    for seed in ([], [], ["--seed", 1], ["--seed", 2], ["--seed", 3]):  # the second finds the first one's reports
        assert retrace("study", "run", "two-cores", *seed).code == 0
    origin = {"commit": commit, "changed": [], "seed": 1}
    assert read_json(project.folder / "studies/two-cores/reports/origin.json") == origin
    (project.folder / "retrace/methods/new.py").write_text("")
    assert retrace("study", "run", "two-cores", "--seed", 7).code == 0
    seventh = project.folder / ".retrace/studies/two-cores-seed-7"
    changed = origin | {"changed": ["retrace/methods/new.py"], "seed": 7}
    assert read_json(seventh / "reports/origin.json") == changed
    params = YAML(typ="safe").load(seventh / "params.yaml")
    assert (params["seed"], params["finetune"]["seeds"]) == (7, [7])
    done = retrace("study", "record", "two-cores", 1, 2, 3, "--change", "A | pipe.")
    file = f"{project.folder}/studies/two-cores/records.yaml"
    assert done == Done(0, f"added to {file}; the page: retrace records > docs/records.md\n", "")
    assert "\nA \\| pipe.\n" in records_page(project.folder)
    # Begun again, but not ended: some of its figures may be of newer code than the commit that it began at before.
    monkeypatch.setattr(study, "run_dvc", lambda *_: 75)
    assert retrace("study", "run", "two-cores", "--seed", 1).code == 75
    said = refused("study", "record", "two-cores", 1, 2, 3, "--change", "x")
    assert said == "error: two-cores was not run to its end: retrace study run two-cores --seed 1\n"


def test_without_a_budget_or_a_description_of_the_change_a_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without words the entry would lack the key, and the file could not be read any more."""
    monkeypatch.chdir(ROOT)
    said = refused("study", "record", "plm-peft", 1, "--change", "x")
    assert said == "error: NAME: 'plm-peft' has no budget; expected one of two-cores, one-gpu\n"
    said = refused("study", "record", "two-cores", 1, 2, 3, "--change", "")
    assert said == "error: --change: '' is not allowed; expected what changed since the previous run\n"


def test_an_entry_is_of_the_day_on_which_its_last_stage_was_done(tmp_path: Path) -> None:
    runs = _finish_three(tmp_path)
    last = tmp_path / "2/reports/runs/stages/evaluate.json"
    write_json(last, read_json(last) | {"origin": ORIGIN | {"date": "2026-11-23"}})
    assert read_entry("two-cores", "", runs).date == "2026-11-23"
