from pathlib import Path

import nltk
import pytest
from nltk.corpus import LazyCorpusLoader, WordNetCorpusReader

from retrace.cli.score import NEEDED
from retrace.evaluation.metrics import meteor
from retrace.evaluation.outcomes import Answered, figures
from tests.commands import Done, retrace

HEAD = "  1 WordNet 3.0 Copyright of nobody\n"


def _source(folder: Path) -> Path:
    """A WordNet of one meaning with two words."""
    folder.mkdir()
    for name in NEEDED:
        (folder / name).write_text(HEAD if name.startswith("data") else "")
    place = f"{len(HEAD):08}"
    (folder / "data.noun").write_text(f"{HEAD}{place} 06 n 02 car 0 auto 0 000 | what drives  \n")
    (folder / "index.noun").write_text("".join(f"{word} n 1 0 1 0 {place}  \n" for word in ("auto", "car")))
    return folder


def test_wordnet_is_laid_out_as_meteor_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, folder = _source(tmp_path / "debian"), tmp_path / "nltk"
    assert f"NLTK_DATA={folder}" in retrace("wordnet", folder, "--source", source).out
    names = (folder / "corpora" / "wordnet" / "lexnames").read_text().splitlines()
    assert len(names) == 45
    assert (names[0], names[6], names[44]) == ("00\tadj.all\t3", "06\tnoun.artifact\t1", "44\tadj.ppl\t3")

    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    corpus = LazyCorpusLoader("wordnet", WordNetCorpusReader, "no other language")
    monkeypatch.setattr(meteor, "wordnet", corpus)
    outcome = Answered((("car",), ("mill",)), ("auto", "auto"))
    assert figures(meteor, outcome) == {"meteor": 0.25}  # one chunk of one word is 1/2, the other answer 0
    for file in corpus._data_file_map.values():  # nltk leaves them open
        file.close()


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    source = _source(tmp_path / "debian")
    (source / "index.sense").unlink()
    said = f"error: {source}: no index.sense; install wordnet-base and wordnet-sense-index\n"
    assert retrace("wordnet", tmp_path / "nltk", "--source", source) == Done(2, "", said)
    assert not (tmp_path / "nltk" / "corpora" / "wordnet").exists()
