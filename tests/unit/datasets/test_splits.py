import random
from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.paths import questions_path
from retrace.datasets import splits
from retrace.datasets.examples import Example
from retrace.datasets.settings import SplitBy, SplitSettings
from retrace.datasets.splits import (
    LOOSE,
    Words,
    given_away,
    groups_of,
    held_out_split,
    keys_of,
    known_rows,
    maximal_texts,
    split_questions,
    split_rows,
    words_of,
)
from retrace.datasets.squad import read_questions


def _lies_in(part: Words, whole: Words) -> bool:
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


def _is_half(part: Words, whole: Words) -> bool:
    return 2 * len(part) >= len(whole) and _lies_in(part, whole)


def _random_texts(generator: random.Random) -> list[Words]:
    letters = "abcd"[: generator.randint(1, 4)]
    sizes = [generator.choice([1, 2, 3, 4, 5, 6, 8, 9]) for _ in range(generator.randint(1, 8))]
    return [tuple(generator.choices(letters, k=size)) for size in sizes]


@pytest.mark.parametrize("text", ["A great film , café .", "a  great\tfilm , cafe .", "ä grẹat film,cafe."])
def test_case_accents_and_spaces_make_no_other_text(text: str) -> None:
    assert words_of(text) == ("a", "great", "film", ",", "cafe", ".")
    assert known_rows(keys_of([(text, None)]), keys_of([("a great film , cafe .", None)])).all()


def test_a_passage_of_many_questions_is_cut_into_words_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[str] = []
    monkeypatch.setattr(splits, "words_of", lambda text: cut.append(text) or words_of(text))
    keys = keys_of([("A passage .", "Who ?"), ("A passage .", "Why ?"), ("Another", None)])
    assert keys == [(("a", "passage", "."), ("who", "?")), (("a", "passage", "."), ("why", "?")), (("another",), None)]
    assert cut == ["A passage .", "Who ?", "Why ?", "Another"]


def test_signs_of_a_text_without_spaces_are_words() -> None:
    film, sentence = "很好的电影", "这是一部很好的电影"
    assert words_of("很好 film") == ("很", "好", "film")
    assert given_away([words_of(film)], [words_of(sentence)]).all()
    assert words_of("좋은 영화") == ("좋은", "영화")
    assert len(words_of("मुंबई में है !")) == 4, "vowel signs are parts of words"


def test_short_texts_alone_are_no_training_data() -> None:
    texts = [words_of(f"the {noun} was a great one indeed") for noun in ("film", "cast", "plot", "end")]
    texts += [words_of("great one")] * 6  # in all of them
    groups = groups_of(texts)
    assert groups[4:] == [LOOSE] * 6
    with pytest.raises(InputError, match=r"too few texts for a split at 0\.5: 10 rows; split_by: row"):
        held_out_split(texts, 0.5, 1, "t", groups)


@pytest.mark.parametrize("seed", range(60))
def test_a_text_is_given_away_by_one_that_it_lies_in_or_that_is_half_of_it(seed: int) -> None:
    """Half of its words or more, and not so few that it says nothing."""
    generator = random.Random(seed)
    training, texts = _random_texts(generator), _random_texts(generator)
    expected = [any(_lies_in(text, of) or (len(of) >= 4 and _is_half(of, text)) for of in training) for text in texts]
    assert given_away(texts, training).tolist() == expected


@pytest.mark.parametrize("seed", range(60))
def test_the_longest_texts_lie_in_no_other(seed: int) -> None:
    texts = dict.fromkeys(_random_texts(random.Random(seed)))
    expected = [text for text in texts if not any(_lies_in(text, other) for other in texts if other != text)]
    assert maximal_texts([*map(" ".join, texts)] * 2) == [*map(" ".join, expected)]


def test_case_makes_no_text_longer_and_a_text_without_words_is_none_of_the_longest() -> None:
    assert maximal_texts(["a film", "A film .", "the", "", "film"]) == ["A film .", "the"]


@pytest.mark.parametrize("seed", range(60))
def test_no_text_lies_in_one_of_another_group(seed: int) -> None:
    texts = _random_texts(random.Random(seed))
    groups = groups_of(texts)
    for part, group in zip(texts, groups, strict=True):
        others = {other for whole, other in zip(texts, groups, strict=True) if _lies_in(part, whole)}
        assert others == {group} or (group == LOOSE and len(part) < 4)


def test_a_text_without_words_lies_in_none() -> None:
    assert given_away([(), ("a",)], [("a", "b"), ()]).tolist() == [False, True]
    assert len({*groups_of([(), ("a",), ("b",)])}) == 3


def test_short_texts_tie_no_others_together() -> None:
    texts = ["the film is long and loud", "we left the film at nine", "the film", "is long", "the film is long"]
    one, two, both, own, phrase = groups_of([words_of(text) for text in texts])
    assert both == LOOSE
    assert one == own == phrase != two


def test_phrases_of_a_sentence_are_on_one_side() -> None:
    """Words are few, so that short phrases are in several sentences."""
    generator, rows = random.Random(1), list[Words]()
    for _ in range(60):
        sentence = tuple(generator.choices([f"w{number}" for number in range(200)], k=16))
        ends = [sorted(generator.sample(range(17), 2)) for _ in range(19)]
        rows += [sentence, *(sentence[start:end] for start, end in ends)]
    generator.shuffle(rows)
    by_row = held_out_split(rows, 0.8, 1, "f")
    by_text, again, other = (held_out_split(rows, 0.8, seed, "f", groups_of(rows)) for seed in (1, 1, 2))
    assert given_away(by_row[1], by_row[0]).mean() > 0.8
    assert not given_away(by_text[1], by_text[0]).any()
    assert abs(len(by_text[0]) - 960) <= 20
    assert sorted(by_text[0] + by_text[1]) == sorted(rows)
    assert by_text == again != other


def test_rows_that_have_nothing_in_common_are_drawn_as_one_by_one() -> None:
    rows = list(range(50))
    for seed in range(5):
        assert held_out_split(rows, 0.8, seed, "f", rows) == held_out_split(rows, 0.8, seed, "f")


def test_a_text_too_large_to_be_held_out_is_trained_on() -> None:
    groups = [0] * 60 + list(range(1, 41))
    for seed in range(5):
        train, dev = held_out_split(range(100), 0.8, seed, "f", groups)
        assert (len(train), len(dev)) == (80, 20)
        assert set(range(60)) <= set(train)
    with pytest.raises(InputError, match=r"f: too few texts for a split at 0\.8: 10 rows; split_by: row divides"):
        held_out_split(range(10), 0.8, 1, "f", [0] * 10)


@pytest.mark.parametrize("by", ["text", "row"])
def test_questions_on_a_passage_stay_together_unless_they_may_be_divided(tmp_path: Path, by: SplitBy) -> None:
    def paragraph(number: int) -> dict[str, object]:
        context = f"W{number} was here."
        answer = {"text": "here", "answer_start": context.index("here")}
        qas = [{"id": f"{number}-{asked}", "question": "Where?", "answers": [answer]} for asked in range(4)]
        return {"context": context, "qas": qas}

    train, dev = (questions_path(tmp_path, part) for part in ("train", "dev"))
    document = {"data": [{"paragraphs": [paragraph(number) for number in range(8)]}]}
    write_json(train, document)
    before = read_questions(train)
    found = []
    for seed in (1, 1, 2):
        write_json(train, document)
        split_questions(tmp_path, SplitSettings(train="train.json", split=0.75, split_by=by, split_seed=seed))
        found.append((read_questions(train), read_questions(dev)))
    assert found[0] == found[1] != found[2]
    kept, held_out = found[0]
    assert (len(kept), len(held_out)) == (24, 8)
    assert sorted(kept + held_out, key=lambda each: each.id) == before
    shared = {each.context for each in kept} & {each.context for each in held_out}
    assert bool(shared) == (by == "row")


def test_questions_on_passages_that_contain_one_another_stay_together(tmp_path: Path) -> None:
    contexts = [f"W{number} was seen here.{more}" for number in range(4) for more in ("", " It rained.")]
    qas = [[{"id": context, "question": "Where?", "answers": []}] for context in contexts]
    paragraphs = [{"context": context, "qas": asked} for context, asked in zip(contexts, qas, strict=True)]
    for seed in range(5):
        write_json(questions_path(tmp_path, "train"), {"data": [{"paragraphs": paragraphs}]})
        split_questions(tmp_path, SplitSettings(train="train.json", split=0.5, split_seed=seed))
        parts = [{each.id[:2] for each in read_questions(questions_path(tmp_path, part))} for part in ("train", "dev")]
        assert [len(part) for part in parts] == [2, 2]
        assert not parts[0] & parts[1]


def test_a_test_split_stays_as_it_is_where_dev_is_held_out_of_train() -> None:
    train, test = ([Example(f"{part} {number}", None, 0) for number in range(8)] for part in ("train", "test"))
    found = split_rows({"train": train, "test": test}, SplitSettings(train="a", test="b", split=0.75), "f")
    assert {part: len(rows) for part, rows in found.items()} == {"train": 6, "dev": 2, "test": 8}
    assert found["test"] == test
