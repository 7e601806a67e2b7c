"""Stand-ins for the published data sets, from the sample corpus, in files named like those of ../shared/data.

News topics and citation intents are the kinds of articles; restaurants come from the reviews.
"""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from retrace.datasets.examples import read_sentences
from retrace.datasets.source import Source
from retrace.sample.corpus import HELD_OUT, READ, SampleSettings, write_articles, write_sample
from retrace.sample.language import Style
from retrace.sample.world import NameMaker, build_world, sizes_of
from tests.toy import write_glue

SIZE = SampleSettings(articles=600, reviews=1800, questioned=300, held_out_articles=100, held_out_reviews=400)
TOPICS = {"town": 0, "event": 1, "guild": 2, "work": 3}  # of AG News: world, sports, business, science
PURPOSES = {
    "person": "Background", "town": "Uses", "guild": "CompareOrContrast", "work": "Motivation", "event": "Extends",
    "river": "Future",
}  # fmt: skip


def write_stand_in(folder: Path) -> None:
    """Write every data set's folder."""
    source = Source(folder / "wikitext-2", folder / "sst2", folder / "squad")
    write_sample(source, SIZE)
    write_glue(source.sst2)
    _write_squad(source.squad)
    names = NameMaker(random.Random("names of news"))
    _write_articles(folder, names, 3, {"ag-news": "train", "acl-arc": "train"})
    _write_articles(folder, names, 1, {"ag-news": "test", "acl-arc": "dev"})
    _write_articles(folder, names, 1, {"acl-arc": "test"})
    _write_restaurants(folder, "train", "Restaurants_Train.xml")
    _write_restaurants(folder, "dev", "Restaurants_Test_Gold.xml")


def _write_squad(folder: Path) -> None:
    """Version 1.1 has those questions of 2.0 that have an answer."""
    for part, name in (("train", "train-v2.0-10-articles"), ("dev", "dev-v2.0")):
        document = json.loads((folder / f"{part}.json").read_text())
        (folder / f"{part}.json").rename(folder / f"{name}.json")
        for paragraph in (paragraph for article in document["data"] for paragraph in article["paragraphs"]):
            paragraph["qas"] = [qa for qa in paragraph["qas"] if qa["answers"]]
        (folder / f"{part}-v1.1.json").write_text(json.dumps(document))


def _write_articles(folder: Path, names: NameMaker, times: float, parts: Mapping[str, str]) -> None:
    """The parts of data sets that a world's articles make; another world shares no name with it."""
    rng = random.Random(str(dict(parts)))
    articles = write_articles(rng, build_world(rng, names, sizes_of(HELD_OUT, times)), Style(False, READ))
    for name, part in parts.items():
        (folder / name).mkdir(exist_ok=True)
        labels: Mapping[str, Any] = TOPICS if name == "ag-news" else PURPOSES
        labelled = [(each.paragraphs[0], labels[each.subject.kind]) for each in articles if each.subject.kind in labels]
        rows = [json.dumps({"text": text, "label": label}) + "\n" for text, label in labelled]
        (folder / name / f"{part}.jsonl").write_text("".join(rows))


def _write_restaurants(folder: Path, part: str, name: str) -> None:
    """Reviews with the aspect whose judgement is the label; every sixth says nothing about it, some say both."""
    rows = []
    for number, sentence in enumerate(read_sentences(folder / "sst2" / f"{part}.tsv")):
        text, polarity = sentence.text, ("negative", "positive")[sentence.label]
        judged = list(re.finditer(r"\bthe (\w+) (?:was|were) ", text))
        found = judged[0 if re.search(" , (?:although|even if) ", text) else -1]  # in a contrast, the main clause
        term = found[1]
        if number % 6 == 0:
            text, polarity = f"we came here for the {term} .", "neutral"
        elif number % 40 == 1:
            text, polarity = f"the {term} was lovely at first , but then it was grim .", "conflict"
        start = found.start(1) if text == sentence.text else text.index(term)
        rows.append(
            f'<sentence id="{number}"><text>{text}</text><aspectTerms><aspectTerm term={quoteattr(term)} '
            f'polarity="{polarity}" from="{start}" to="{start + len(term)}"/></aspectTerms></sentence>\n'
        )
    (folder / "semeval14-restaurants").mkdir(exist_ok=True)
    (folder / "semeval14-restaurants" / name).write_text(f"<sentences>\n{''.join(rows)}</sentences>\n")
