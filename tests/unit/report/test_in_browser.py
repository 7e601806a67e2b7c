"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import itertools
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from retrace.core.files import write_json, write_text
from retrace.core.settings import read_yaml
from retrace.datasets.examples import read_task, write_task
from retrace.evaluation.records import DETAILS, Details
from retrace.report.blocks import Browser, Panel, Panels, Section, Table, TableCell
from retrace.report.browser import pack
from retrace.report.names import baseline_name, method_name
from retrace.report.page import as_html
from retrace.report.svg import Axes, dot, strip
from retrace.results.predictions import PREDICTIONS, write_predictions
from stages import evaluate, report
from tests.conftest import serious_violations
from tests.many import EPOCHS, METHODS, Maker
from tests.toy import ROOT, Project

SCREENS = [(1440, "dark"), (768, "light"), (390, "light")]  # a theme has colours of its own, and nothing else
SOON = 2.0  # seconds until the page answers
PAGE = Path("reports/report.html")
WIDTH, BACKGROUND = "document.documentElement.scrollWidth", "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 27)"
HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "a | b `c` [d](javascript:alert(3))",
    "\u202eright to left\u202c and \x1b[31mred", "🐢 " + "word " * 20_000,
)  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five methods with three seeds on 800 reviews and 896 questions, evaluated, with its report."""
    folder = tmp_path_factory.mktemp("many")
    Maker(folder, 800, 896).make()
    _reported(folder)
    return folder


def _reported(folder: Path) -> Path:
    """The page of the project in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        evaluate.main()
        report.main()
    return folder / PAGE


@pytest.fixture
def show(browser: Any) -> Iterator[Any]:
    """Open a file and listen to it: predictions can soon be browsed, and at the end nothing may have been wrong."""
    contexts: list[Any] = []
    complaints: list[str] = []  # errors and dialogs
    requests: list[str] = []

    def opened(path: Path, width: int = 1440, theme: str = "light", scripts: bool = True) -> Any:
        viewport = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=viewport, color_scheme=theme, java_script_enabled=scripts))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(path.resolve().as_uri())
        if scripts and path.name == PAGE.name:
            assert _seconds_until_ready(page) < SOON
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []


def _seconds_until_ready(page: Any) -> float:
    """Processor time until predictions can be browsed; other processes do not make it longer."""
    page.wait_for_selector("html[data-ready]", state="attached")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    found = {of["name"]: of["value"] for of in session.send("Performance.getMetrics")["metrics"]}
    return found["ProcessTime"]


@pytest.mark.parametrize(("width", "theme"), SCREENS)
def test_the_page_fits_the_screen_and_axe_finds_nothing_serious(project, show, width: int, theme: str) -> None:
    page = show(project / PAGE, width, theme)
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.evaluate(WIDTH) <= width
    assert page.evaluate(BACKGROUND) == (LIGHT if theme == "light" else DARK)
    assert width == 768 or serious_violations(page) == [], "axe takes seconds"


def test_it_is_one_small_file(project: Path) -> None:
    page = (project / PAGE).read_text()
    assert len(page.encode()) < 1_000_000
    for outside in ("http://", "https://", " src=", "@import", "url(", ">nan<", ">NaN<", ">None<", ">False<"):
        assert outside not in page, outside
    assert len((project / "reports/report.md").read_bytes()) < 64_000


def test_the_same_inputs_give_the_same_bytes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    paths = [PAGE, Path("reports/report.md"), *Path("reports/figures").iterdir()]
    before = {path: path.read_bytes() for path in paths}
    report.main()
    assert {path: path.read_bytes() for path in paths} == before


def test_the_summary_is_that_of_scores_json(project: Path, show: Any) -> None:
    page = show(project / PAGE, scripts=False)
    details = Details.read(project / DETAILS)
    cells = "table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    summary = {row[0]: row for row in page.locator("#results table").first.evaluate(cells)}
    for place, (name, factor) in enumerate((("sst2", 100), ("squad", 1))):
        found = details.tasks[name]
        figure = found.headlines[0]
        for method, of in found.methods.items():
            mean, ends, spread = summary[method_name(method)][2 + 3 * place : 5 + 3 * place]
            values = [of.figures[figure], of.intervals[figure]["low"], of.intervals[figure]["high"]]
            shown = [float(text) for text in (mean.rstrip(" ≈"), *ends.split("–"))]
            assert shown == pytest.approx([factor * value for value in values], abs=0.05001)
            assert float(spread) == pytest.approx(factor * of.std[figure], abs=0.005001)
        for baseline, of in found.baselines.items():
            value = summary[baseline_name(baseline)][2 + 3 * place]
            assert float(value) == pytest.approx(factor * of.figures[figure], abs=0.05001)


def test_without_scripts_every_table_figure_and_some_predictions_are_there(project: Path, show: Any) -> None:
    page = show(project / PAGE, scripts=False)
    assert page.locator("figure svg[role=img]").count() > 50
    assert page.locator("#predictions table:visible").count() == 2
    assert page.locator(".app:visible, .theme:visible").count() == 0
    page.locator("summary", has_text="Every pair of methods").first.click()
    assert page.locator("[aria-label='Pairs of methods sst2'] td:visible").count() > 0


def test_predictions_are_searched_filtered_and_ordered(project: Path, show: Any) -> None:
    page = show(project / PAGE)
    read = [pd.read_parquet(project / "predictions/sst2" / method / "1" / PREDICTIONS) for method in METHODS]
    last = [rows[rows["epoch"] == EPOCHS] for rows in read]
    right = np.array([rows["label"] == (rows["logit_1"] > rows["logit_0"]) for rows in last])  # (methods, reviews)
    wrong, times = ~right[METHODS.index("scratch")], right.sum(axis=0)

    def count() -> list[int]:
        """How many are shown, and of how many."""
        return [int(number) for number in re.findall(r"\d+", page.locator("#b-count").inner_text().replace(",", ""))]

    page.select_option("#b-method", label="Scratch")
    for kind, shown in (
        ("wrong", wrong), ("all", times >= 0), ("only", wrong & (times == len(METHODS) - 1)),
        ("disagree", (times > 0) & (times < len(METHODS))), ("allwrong", times == 0),
    ):  # fmt: skip
        page.select_option("#b-show", kind)
        assert count() == [shown.sum(), 800], kind
    page.select_option("#b-show", "all")
    page.select_option("#b-order", "data")
    first = page.locator(".item .head p").first.inner_text()
    page.fill("#b-search", first.upper())
    assert page.locator("mark.found").first.inner_text() == first
    assert count()[0] < 20
    page.fill("#b-search", "no such words anywhere")
    page.wait_for_selector("text=Nothing matches")
    page.fill("#b-search", "")
    page.click("#b-tabs button:nth-child(2)")
    assert count()[1] == 896
    assert page.locator(".passage mark").count() > 0
    answers = "(all, who) => all.filter(li => li.textContent.startsWith(who)).map(li => li.children[1].textContent)"
    for who in ("Full", baseline_name("word_overlap")):
        parts = [item.locator(f".passage [data-t*='{who}']") for item in page.locator(".item").all()]
        marked = ["".join(of.all_text_contents()) for of in parts]
        assert any(marked)
        said = page.locator(".item .said li").evaluate_all(answers, who)
        assert marked == [answer[2:].strip().replace("no answer", "") for answer in said], who


def test_methods_that_are_wrong_in_ways_of_their_own_disagree(tmp_path: Path, show: Any) -> None:
    """Of three texts of one class, both methods give the first another class each, the second the same wrong one."""
    every = {"baseline": False, "sure": [42] * 3}
    methods = [{"name": "Full", "right": ["001"], "said": [1, 1, 0], **every},
               {"name": "LoRA", "right": ["000"], "said": [2, 1, 1], **every}]  # fmt: skip
    task = {"title": "T", "noun": "texts", "number": None, "methods": methods, "classes": ["good", "bad", "odd"],
            "text": ["A.", "B.", "C."], "passages": [], "passage": [], "gold": [0] * 3}  # fmt: skip
    page = show(_page_of(tmp_path, task))
    page.wait_for_selector(".item")
    page.select_option("#b-show", "disagree")
    assert page.locator("#b-count").inner_text() == "2 of 3 texts"
    assert page.locator(".item .head p").all_inner_texts() == ["A.", "C."]


def test_seeds_that_are_wrong_in_ways_of_their_own_disagree(tmp_path: Path, show: Any) -> None:
    """As of the four texts in test_browser.py, whose first class is right."""
    full = {"name": "Full", "baseline": False, "right": ["1000", "1102"], "sure": [42] * 4, "said": [0, 1, 1, 1]}
    task = {"title": "T", "noun": "texts", "number": None, "methods": [full], "classes": ["good", "bad", "odd"],
            "text": ["A.", "B.", "C.", "D."], "passages": [], "passage": [], "gold": [0] * 4}  # fmt: skip
    page = show(_page_of(tmp_path, task))
    page.wait_for_selector(".item")
    page.select_option("#b-show", "seeds")
    assert page.locator("#b-count").inner_text() == "2 of 4 texts"
    assert page.locator(".item .head p").all_inner_texts() == ["B.", "D."]
    assert page.locator(".item .seeds").all_inner_texts() == ["○●", "○○"]


def test_without_scores_of_no_answer_nobody_is_said_to_be_sure(tmp_path: Path, show: Any) -> None:
    Maker(tmp_path, reviews=40, questions=40, methods=("full", "scratch"), seeds=(1,)).make()
    for path in (tmp_path / "predictions/squad").rglob(str(PREDICTIONS)):
        rows = pd.read_parquet(path).astype(object).assign(null_score=None)
        write_predictions(path, "question_answering", rows.to_dict("records"))  # pyright: ignore[reportArgumentType]
    page = show(_reported(tmp_path))
    orders = "[...document.querySelectorAll('#b-order option')].filter(of => !of.hidden).map(of => of.value)"
    assert page.evaluate(orders) == ["sure", "unsure", "data"]
    page.click("#b-tabs button:nth-child(2)")
    assert page.evaluate(orders) == ["data"]
    assert page.locator("#b-order").input_value() == "data"
    assert page.locator("#b-method option").all_inner_texts() == ["Full", "Scratch"]
    page.select_option("#b-show", "all")
    beside = page.locator(".item .said .small").all_inner_texts()
    assert beside
    assert all(text.startswith("F1 ") for text in beside if text)


def test_an_order_that_one_task_does_not_have_is_still_that_of_another(tmp_path: Path, show: Any) -> None:
    """Models that never abstain are never said to be sure, so their questions are as in the data."""
    full, task = {"name": "Full", "baseline": False}, {"title": "T", "noun": "texts", "number": None}
    sure = full | {"right": ["00"], "sure": [90, 42], "said": [1, 1]}
    never = full | {"right": ["0"], "sure": [None], "start": [0], "length": [3], "other": {}, "f1": [0]}
    reviews = task | {"methods": [sure], "classes": ["good", "bad"], "text": ["A.", "B."], "passages": [],
                      "passage": [], "gold": [0, 0]}  # fmt: skip
    questions = task | {"methods": [never], "classes": [], "text": ["Who?"], "passages": ["Ada met Bob."],
                        "passage": [0], "gold": [[[8, 3]]]}  # fmt: skip
    page = show(_page_of(tmp_path, reviews, questions))
    page.wait_for_selector(".item")
    page.select_option("#b-order", "unsure")
    for tab, order in ((2, "data"), (1, "unsure")):
        page.click(f"#b-tabs button:nth-child({tab})")
        assert page.locator("#b-order").input_value() == order
    assert page.locator(".item .head p").all_inner_texts() == ["B.", "A."]


def test_the_keyboard_moves_through_predictions(project: Path, show: Any) -> None:
    page, focused = show(project / PAGE), "[...document.querySelectorAll('.item')].indexOf(document.activeElement)"
    page.focus(".item[tabindex='0']")
    for key, place in (("j", 1), ("ArrowDown", 2), ("k", 1), ("End", 19), ("Home", 0)):
        page.keyboard.press(key)
        assert page.evaluate(focused) == place, key
    page.keyboard.press("n")
    assert page.locator("#b-page").inner_text().startswith("page 2")
    page.keyboard.press("p")
    page.keyboard.press("Enter")
    assert page.locator(".item.open").count() == 1
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "b-search"


def test_a_screen_reader_says_how_many_predictions_match_and_which_page_is_shown(tmp_path: Path, show: Any) -> None:
    page = show(_browser_of(tmp_path, ["Full"]))
    page.wait_for_selector(".item")
    assert page.get_by_role("status").all_inner_texts() == ["1 of 1 texts", "page 1 of 1"]


def test_tables_are_sorted_and_downloaded(project: Path, show: Any) -> None:
    page = show(project / PAGE)
    names = "[...document.querySelector('#results table').rows].slice(2).map(row => row.cells[0].textContent.trim())"
    before = page.evaluate(names)
    page.locator("#results th button").first.click()
    after = page.evaluate(names)
    assert after[: len(METHODS)] == sorted(before[: len(METHODS)])
    assert sorted(after[len(METHODS) :]) == sorted(before[len(METHODS) :])  # baselines stay below
    page.locator("#results th button", has_text="mean").first.click()
    assert page.evaluate(names)[: len(METHODS)] == before[: len(METHODS)]
    first_row = "document.querySelector('#results tbody').rows[{}].cells[0].textContent"
    for place, version in enumerate(("2.9.1", "2.13.0", "2.10.4")):
        page.evaluate(f"{first_row.format(place)} = '{version}'")
    page.locator("#results th button").first.click()
    versions = [page.evaluate(first_row.format(place)) for place in range(3)]
    assert versions == ["2.9.1", "2.10.4", "2.13.0"], "by number, not by letter"
    with page.expect_download() as download:
        page.locator("#results .download").click()
    assert download.value.suggested_filename == "methods-and-tasks.csv"
    table = pd.read_csv(download.value.path())
    reviews = "Reviews: accuracy, %"
    assert list(table.columns[:4]) == ["method", "Weights trained, %", f"{reviews}, mean", f"{reviews}, 95% interval"]
    assert table["method"].tolist() == page.evaluate(names)


def test_a_text_that_a_spreadsheet_would_run_is_downloaded_as_text(show: Any, tmp_path: Path) -> None:
    texts = ("=1+1", "@x", "+1+1", "-1+cmd|'/C calc'!A0", "- a", "-1", "+0.5")
    rows = [(text, "+1.2 to +3.4") for text in texts]
    table = Table(("text", "=interval"), [*rows, ("words", "-0.5 ± 0.1")])
    page = show(_page_with(tmp_path, table))
    with page.expect_download() as download:
        page.locator(".download").click()
    found = pd.read_csv(download.value.path(), dtype=str)
    assert found["text"].tolist() == [*(f"'{text}" for text in texts[:5]), *texts[5:], "words"]
    assert found["'=interval"].tolist() == [figure for _, figure in table.rows]


def test_downloaded_figures_are_numbers(show: Any, tmp_path: Path) -> None:
    rows = [("−0.5", "a − b", "68,735", "−3.4 to −1.2"), ("+1.5", "1,800 texts", "−1,234,567.5", "1,234.50 (–)")]
    table = Table(("difference", "methods", "count", "interval"), rows)
    page = show(_page_with(tmp_path, table))
    with page.expect_download() as download:
        page.locator(".download").click()
    found = pd.read_csv(download.value.path())
    assert found["difference"].tolist() == [-0.5, 1.5]
    assert found["methods"].tolist() == ["a − b", "1,800 texts"]
    assert found["count"].tolist() == [68735, -1234567.5]
    assert found["interval"].tolist() == ["-3.4 to -1.2", "1234.50 (–)"]


def test_the_contents_show_which_section_is_read_in_any_language(tmp_path: Path, show: Any) -> None:
    """In its address a browser writes the anchor of the second section as #ergebnisse-f%C3%BCr-sst-2."""
    sections = [Section(title, ["word " * 4000]) for title in ("Results", "Ergebnisse für SST-2")]
    write_text(tmp_path / "own.html", as_html("T", sections))
    page = show(tmp_path / "own.html")
    for section in sections:
        page.locator(f"[id='{section.id}']").evaluate("section => section.scrollIntoView({ behavior: 'instant' })")
        page.wait_for_selector(f"nav a[aria-current=true][href='#{section.id}']", timeout=5000)


def test_the_theme_is_chosen_and_what_is_folded_opens_in_print(project: Path, show: Any) -> None:
    page = show(project / PAGE)
    page.click(".theme")
    assert page.evaluate(BACKGROUND) == DARK
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 660, "height": 1000})  # of paper, A4 less its margins
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(WIDTH) <= 660
    assert page.evaluate(BACKGROUND) == LIGHT
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("#predictions table:visible").count() == 2
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0


def test_a_tooltip_is_not_printed(tmp_path: Path, show: Any) -> None:
    """Its place is fixed, so it would be on every sheet, on whatever is there."""
    page = show(_page_with(tmp_path, "Text."))
    shown = "tip => { tip.hidden = false; return getComputedStyle(tip).display; }"
    displays = []
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        displays.append(page.locator(".tip").evaluate(shown))
    assert displays == ["block", "none"]


def test_a_long_name_is_within_its_tooltip(tmp_path: Path, show: Any) -> None:
    """Of 46 characters, without a place to break; what lay beyond the tooltip was white on white."""
    drawn = [dot(Axes((0.0, 1.0)), 0.5, 0.5, tip="bert_large_uncased_whole_word_masking_adapters: 98.5")]
    page = show(_page_with(tmp_path, Panels("x", "X", "", [Panel("full", drawn, "")])))
    page.locator("circle").hover()
    page.wait_for_selector(".tip")
    needed, given = page.locator(".tip").evaluate("shown => [shown.scrollWidth, shown.clientWidth]")
    assert needed <= given


def test_hostile_rows_are_text(tmp_path: Path, show: Any) -> None:
    Maker(tmp_path, reviews=20, questions=20, methods=("full", "scratch"), seeds=(1,)).make()  # all are printed
    folder = tmp_path / "data/classification/sst2"
    reviews = read_task(folder)
    texts = itertools.chain(HOSTILE, (row.text for row in reviews.parts["dev"][len(HOSTILE) :]))
    rows = [replace(row, text=text) for row, text in zip(reviews.parts["dev"], texts, strict=True)]
    write_task(folder, replace(reviews, parts={**reviews.parts, "dev": rows}))
    squad = tmp_path / "data/question_answering/squad/dev.json"
    document = json.loads(squad.read_text())
    paragraph = document["data"][0]["paragraphs"][0]
    paragraph["context"] += "".join(HOSTILE)
    for question, text in zip(paragraph["qas"], HOSTILE, strict=False):
        question["question"] = text
    squad.write_text(json.dumps(document))
    path = _reported(tmp_path)
    for scripts in (True, False):
        page = show(path, scripts=scripts)
        if scripts:
            page.select_option("#b-show", "all")
            page.select_option("#b-order", "data")
            assert page.locator(".item .head p").nth(0).inner_text() == HOSTILE[0]
            page.click("#b-tabs button:nth-child(2)")
            page.wait_for_selector(".passage")
        printed = page.locator("#predictions summary", has_text="spread evenly: 20 of 20")
        assert printed.locator("visible=true").count() == (0 if scripts else 2)
        assert page.locator("img").count() == 0
        assert page.evaluate("document.scripts.length") == 2
        assert page.evaluate(WIDTH) <= 1440


def test_text_from_right_to_left_leaves_what_stands_beside_it_whole(tmp_path: Path, show: Any) -> None:
    """The full stop of an Arabic sentence is at its left; a confidence of 42% is behind the class, in one piece."""
    full = {"name": "Full", "baseline": False, "right": ["0"], "sure": [42], "said": [1]}
    task = {"title": "T", "noun": "texts", "number": None, "methods": [full], "classes": ["جيد", "سلبي (١)"],
            "text": ["هذا الفيلم رائع."], "passages": [], "passage": [], "gold": [0]}  # fmt: skip
    browsed, table = Browser(pack([task]), [("Full", 0)]), Table(("№", "text"), [("1", "هذا الفيلم رائع.")])
    page = show(_page_with(tmp_path, browsed, table))
    ends = """text => [0, text.length - 1].map(at => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect().left;
    })"""
    for where in (".item .head p", "tbody td"):
        first, last = page.locator(where).evaluate(f"shown => ({ends})(shown.firstChild)")
        assert last < first, where
    sure = page.locator(".item .said .small")
    assert sure.inner_text() == "42%"
    assert sure.evaluate("shown => shown.getClientRects().length") == 1
    said = page.locator(".item .said .wrong").bounding_box()
    assert sure.bounding_box()["x"] >= said["x"] + said["width"]


def test_intervals_of_a_column_are_drawn_on_the_same_axis(tmp_path: Path, show: Any) -> None:
    """However many digits stand behind a bar, its ends lie below those of the other rows."""
    drawn = strip(Axes((0.0, 100.0)), 1.0, 5.0, 3.0)
    rows = [(TableCell("", small=interval, strip=drawn),) for interval in ("2.2 – 9.5", "79.8 – 100.0")]
    page = show(_page_with(tmp_path, Table(("95% interval",), rows)))
    first, second = _boxes(page.locator(".strip"), "left", "right")
    assert first == second
    page.emulate_media(media="print")
    sizes = "shown => [shown, shown.parentElement].map(of => getComputedStyle(of).fontSize)"
    assert page.locator(".small").first.evaluate(sizes) == ["9px", "9px"]


def test_a_long_name_stays_above_its_own_plot_and_the_plots_of_a_row_level(tmp_path: Path, show: Any) -> None:
    names = ("bert-large-uncased-whole-word-masking", "full", "lora", "adapter", "frozen")
    panels = [Panel(name, [], "", place=place, value="98.5") for place, name in enumerate(names)]
    page = show(_page_with(tmp_path, Panels("x", "X", "", panels)))
    captions, values = (_boxes(page.locator(f"figcaption {part}"), "right") for part in (".name", "b"))
    assert all(name[0] <= value[0] - 30 for name, value in zip(captions, values, strict=True)), "98.5 is 30 px wide"
    assert len({bottom for (bottom,) in _boxes(page.locator(".plot"), "bottom")}) == 1


def _browser_of(tmp_path: Path, names: Sequence[str], seeds: int = 2) -> Path:
    """A page with the predictions of these methods for one text."""
    of = {"baseline": False, "right": ["0"] * seeds, "sure": [42], "said": [1]}
    task = {"title": "T", "noun": "texts", "number": None, "methods": [{"name": name, **of} for name in names],
            "classes": ["good", "bad"], "text": ["A text."], "passages": [], "passage": [], "gold": [0]}  # fmt: skip
    return _page_of(tmp_path, task)


def _page_of(folder: Path, *tasks: dict[str, Any]) -> Path:
    """A page with the predictions of these tasks, which all have the methods of the first."""
    browsed = Browser(pack(tasks), [(method["name"], place) for place, method in enumerate(tasks[0]["methods"])])
    return _page_with(folder, browsed)


def _page_with(folder: Path, *blocks: Any) -> Path:
    """A page whose only section has these blocks."""
    write_text(folder / "own.html", as_html("T", [Section("S", [*blocks])]))
    return folder / "own.html"


def _boxes(shown: Any, *sides: str) -> list[list[float]]:
    """These sides of the box of each element that a locator finds."""
    found = "(all, sides) => all.map(of => sides.map(side => of.getBoundingClientRect()[side]))"
    return shown.evaluate_all(found, [*sides])


@pytest.mark.parametrize("width", [1440, 390])
def test_a_long_name_stays_above_its_own_predictions(tmp_path: Path, show: Any, width: int) -> None:
    names = ("bert-large-uncased-whole-word-masking", "bert_large_uncased_whole_word_masking_adapters", "full")
    page = show(_browser_of(tmp_path, names), width)
    page.wait_for_selector(".said .seeds")
    parts = (".seeds", ".name")
    own, whole = (_boxes(page.locator(f".said li:has({part}) {part}"), "left", "right") for part in parts)
    opinions = _boxes(page.locator(".said li:has(.name)"), "left", "right")
    assert all(name[1] <= seeds[0] for name, seeds in zip(whole, own, strict=True))
    assert all(seeds[1] <= opinion[1] + 1 for seeds, opinion in zip(own, opinions, strict=True))
    assert page.evaluate(WIDTH) <= width


@pytest.mark.parametrize("width", [1440, 390])
def test_the_dots_of_many_seeds_leave_a_name_in_one_line(tmp_path: Path, show: Any, width: int) -> None:
    page = show(_browser_of(tmp_path, ("Full", "Scratch", "Adapter"), seeds=20), width)
    page.wait_for_selector(".said .seeds")
    parts, sides = (".seeds", ".name"), ("left", "right", "height")
    seeds, names = (_boxes(page.locator(f".said li:has({part}) {part}"), *sides) for part in parts)
    opinions = _boxes(page.locator(".said li:has(.name)"), *sides)
    assert [height < 24 for *_, height in names] == [True] * 3, "a line is 16 px high"
    assert all(name[1] <= dots[0] + 0.1 for name, dots in zip(names, seeds, strict=True))
    assert all(dots[1] <= opinion[1] + 1 for dots, opinion in zip(seeds, opinions, strict=True))


def test_the_underlines_of_many_methods_end_above_the_next_line(tmp_path: Path, show: Any) -> None:
    """Twelve methods give the same answer."""
    names = [f"method {number}" for number in range(12)]
    said = {"baseline": False, "right": ["0"], "sure": [42], "start": [0], "length": [3], "other": {}, "f1": [0]}
    task = {"title": "T", "noun": "questions", "number": None, "methods": [{"name": name, **said} for name in names],
            "classes": [], "text": ["Who?"], "passages": ["Ada met Bob."], "passage": [0],
            "gold": [[[8, 3]]]}  # fmt: skip
    page = show(_page_of(tmp_path, task))
    page.wait_for_selector(".passage span")
    room, shadow = page.locator(".passage span").evaluate("""shown => [
        parseFloat(getComputedStyle(shown.parentElement).lineHeight) - shown.getBoundingClientRect().height,
        getComputedStyle(shown).boxShadow,
    ]""")
    ends = [float(offset) for offset in re.findall(r" 0px ([\d.]+)px 0px -0\.5px", shadow)]
    assert len(set(ends)) == 12, "each has its own place"
    assert max(ends) - 0.5 <= room


@pytest.mark.parametrize("width", [1440, 650, 390])
def test_no_control_of_the_predictions_lies_on_another(tmp_path: Path, show: Any, width: int) -> None:
    page = show(_browser_of(tmp_path, ["full", "bert-large-uncased-whole-word-masking"]), width)
    page.wait_for_selector(".item")
    boxes = [control.bounding_box() for control in page.locator(".bar :is(input, select)").all()]
    assert len(boxes) == 5
    for one, other in itertools.combinations(boxes, 2):
        beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
        assert beside or one["y"] + one["height"] <= other["y"], (one, other)


@pytest.mark.parametrize("width", [1440, 390])
def test_no_name_of_a_method_is_cut_off_in_a_table(tmp_path: Path, show: Any, width: int) -> None:
    """Names of 37, of 68 and, without a place to break, of 46 characters; beside more figures than the screen holds."""
    masking = "bert-large-uncased-whole-word-masking"
    names = (masking, f"{masking}-with-adapters-of-sixteen-units", masking.replace("-", "_") + "_adapters")
    header, figures = ("method", *"abcdefghij"), ["12.34 ± 0.56"] * 10
    page = show(_page_with(tmp_path, *(Table(header, [(TableCell(name, mark=0), *figures)]) for name in names)), width)
    found = page.locator("tbody th").evaluate_all("all => all.map(of => [of.scrollWidth, of.clientWidth])")
    for name, (needed, given) in zip(names, found, strict=True):
        assert needed <= given + 1, name


def test_dvc_plots_fetch_nothing(project: Path, tmp_path: Path, show: Any) -> None:
    for name in (".dvc/config", ".dvc/.gitignore", ".dvc/plots/page.html", ".dvcignore"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    write_json(tmp_path / "dvc.yaml", {"plots": read_yaml(ROOT / "dvc.yaml")["plots"]})  # json is YAML too
    shutil.copytree(project / "reports/figures", tmp_path / "reports/figures")
    figures = len(list((tmp_path / "reports/figures").iterdir()))
    live = tmp_path / "reports/live/pretrain"
    write_json(live / "metrics.json", {"loss": 1.0})
    write_text(live / "plots/metrics/loss.tsv", "step\tloss\n100\t4.0\n200\t2.0\n300\t1.0\n")
    there = Project(tmp_path)
    there.run("git", "init", "-q")
    there.commit("first")
    write_text(live / "plots/metrics/loss.tsv", "step\tloss\n100\t4.0\n200\t3.0\n300\t0.5\n")
    for command, revisions in ((["show"], 1), (["diff", "HEAD"], 2)):
        assert "WARNING" not in there.run("dvc", "plots", *command).stderr
        page = show(tmp_path / "dvc_plots/index.html")
        assert page.locator("polyline").count() == revisions
        assert "loss 0.5 to 4" in page.inner_text("body")
        widths = page.evaluate("[...document.images].map(image => image.naturalWidth)")
        assert len(widths) == revisions * figures
        assert min(widths) > 0
    dark = show(tmp_path / "dvc_plots/index.html", theme="dark")
    behind = dark.evaluate("getComputedStyle(document.images[0]).backgroundColor")
    assert behind == "rgba(0, 0, 0, 0)", "their text is light there"


@pytest.mark.thorough
def test_as_many_questions_as_squad_has_are_all_there_at_once(tmp_path: Path, show: Any) -> None:
    Maker(tmp_path, 872, 11_873, seeds=(1,)).make()
    path = _reported(tmp_path)
    assert path.stat().st_size < 3_000_000
    page = show(path)
    page.click("#b-tabs button:nth-child(2)")
    page.select_option("#b-show", "all")
    assert page.locator("#b-count").inner_text() == "11,873 of 11,873 questions"
    assert page.evaluate(WIDTH) <= 1440
