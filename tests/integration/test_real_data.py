"""The readers on published data in the official formats, where it lies beside the checkout."""

from pathlib import Path

import pytest

from retrace.datasets.card import make_card
from retrace.datasets.examples import read_sentences
from retrace.datasets.squad import read_questions
from retrace.datasets.text import read_documents
from tests.toy import ROOT

DATA = ROOT.parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the published data sets are not beside this checkout")


@pytest.mark.parametrize(
    ("name", "questions", "unanswerable"),
    [("dev-v1.1.json", 10_570, 0), ("dev-v2.0.json", 11_873, 5_945), ("train-v2.0-10-articles.json", 4_719, 348)],
)
def test_squad_has_its_published_counts(name: str, questions: int, unanswerable: int) -> None:
    found = read_questions(DATA / "squad" / name)
    assert (len(found), sum(not question.answers for question in found)) == (questions, unanswerable)


def test_sst2_has_its_published_counts() -> None:
    assert [len(read_sentences(DATA / "sst2" / f"{part}.tsv")) for part in ("train", "dev")] == [67_349, 872]


def test_wikitext_is_cut_into_articles() -> None:
    documents = list(read_documents(DATA / "wikitext-2" / "wiki.valid.tokens"))
    assert len(documents) == 60
    assert all(document.startswith("= ") for document in documents)


def test_the_card_of_real_files_notes_what_is_odd(tmp_path: Path) -> None:
    for name, source in {
        "text/wiki.train.tokens": "wikitext-2/wiki.valid.tokens",
        "text/wiki.valid.tokens": "wikitext-2/wiki.valid.tokens",
        "text/wiki.test.tokens": "wikitext-2/wiki.test.tokens",
        "sst2/train.tsv": "sst2/train.tsv",
        "sst2/dev.tsv": "sst2/dev.tsv",
        "squad/train.json": "squad/dev-v1.1.json",
        "squad/dev.json": "squad/dev-v2.0.json",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(DATA / source)
    found = " ".join(make_card(tmp_path)["findings"])
    assert "passages of dev are in train too" in found
    assert "train none: the model will always answer" in found
    assert "of the words of train are <unk>" in found
