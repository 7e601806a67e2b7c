import json
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from retrace.core.paths import questions_path
from retrace.core.settings import read_params
from retrace.datasets.card import examples_card, questions_card
from retrace.datasets.examples import read_examples, read_task
from retrace.datasets.source import Source
from retrace.datasets.squad import read_questions
from retrace.datasets.text import PARTS, read_documents, text_path
from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.outcomes import Scoring
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.hub.pins import folder_digest
from retrace.sample.corpus import SampleParams, SampleSettings, write_sample
from retrace.sample.language import (
    ASPECTS,
    BLAME,
    BY_KIND,
    COMMON,
    DEGREES,
    NEGATORS,
    PRAISE,
    QUESTIONS,
    RELATIONS,
    STATEMENTS,
    Relation,
    Style,
    ask,
    is_held_out,
    judge,
    state,
)
from retrace.sample.world import GROWN_UP, NameMaker, build_world
from tests.toy import ROOT, SAMPLE


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The sample at the size that params.yaml has."""
    source = Source.within(tmp_path_factory.mktemp("sample"))
    write_sample(source, SampleParams.read(read_params(ROOT)).sample)
    return source


def test_the_same_settings_give_the_same_bytes(tmp_path: Path) -> None:
    """On every machine; whoever changes the corpus on purpose changes the digest."""
    write_sample(Source.within(tmp_path), SampleSettings(**SAMPLE))
    assert folder_digest(tmp_path) == "c077cd2a0c00"


def test_a_corpus_that_takes_more_names_than_there_are_is_refused() -> None:
    """250 stems with 8 endings name 2,000 rivers: one per 18 articles, and 24 in each held-out world."""
    assert SampleSettings(articles=1952 * 18).worlds["train"]["rivers"] == 1952
    with pytest.raises(ValueError, match=r"articles: 35154 is not allowed; .* it takes 2,001 rivers"):
        SampleSettings(articles=1953 * 18)


def test_size_and_vocabulary(corpus: Source) -> None:
    text = text_path(corpus.text, "train").read_text()
    words = Counter(re.findall(r"\w+", text.lower()))
    assert 300_000 < sum(words.values()) < 1_000_000
    assert len(words) > 1900
    ranked = [count for _, count in words.most_common()]
    # Zipf-like: the tenth word occurs many times as often as the hundredth, that one as the thousandth.
    assert ranked[9] > 5 * ranked[99] > 25 * ranked[999]


def test_the_readers_read_it(corpus: Source) -> None:
    reviews, questions = examples_card(read_task(corpus.sst2)), questions_card(corpus.squad)
    assert reviews["parts"]["train"]["classes"]["negative"] == reviews["parts"]["train"]["classes"]["positive"]
    assert reviews["shared"] == questions["shared"] == {"dev in train": 0}
    assert reviews["given_away"] == {"dev": 0}
    for counts in questions["parts"].values():
        assert counts["unanswerable"] / counts["questions"] == pytest.approx(1 / 3, abs=0.05)


def test_splits_share_no_sentence(corpus: Source) -> None:
    def sentences(part: str) -> set[str]:
        documents = read_documents(text_path(corpus.text, part))
        return {s.strip() for document in documents for s in document.split(" . ") if not s.startswith("=")}

    train, *held_out = map(sentences, PARTS)
    assert all(len(part) > 500 and not train & part for part in held_out)
    asked = [read_questions(questions_path(corpus.squad, part)) for part in ("train", "dev")]
    contexts = [{s for question in part for s in question.context.split(". ")} for part in asked]
    assert not contexts[0] & contexts[1]


def test_splits_share_no_entity(corpus: Source) -> None:
    documents = [read_documents(text_path(corpus.text, part)) for part in PARTS]
    titles = [{document.partition("\n")[0] for document in of} for of in documents]
    assert len(set[str]().union(*titles)) == sum(map(len, titles))


def test_splits_share_no_phrasing() -> None:
    """Of 35 phrasings of a statement and as many of a question, 7 each are held out, with every frame and noun."""

    def phrasings(relation: Relation, held_out: bool) -> set[str]:
        rng, style = random.Random(0), Style(held_out, 0.5)
        pairs = ((state(rng, relation, style, "A", "B"), ask(rng, relation, style, "A")) for _ in range(1000))
        return {text for pair in pairs for text in pair}

    for relation in RELATIONS.values():
        train, held_out = phrasings(relation, False), phrasings(relation, True)
        assert (len(train), len(held_out), train & held_out) == (56, 14, set())
    frames, nouns = range(len(STATEMENTS)), range(7)
    kept = [(frame, noun) for frame in frames for noun in nouns if is_held_out(frame, noun)]
    assert [set(of) for of in zip(*kept, strict=True)] == [set(frames), set(nouns)]
    assert len(QUESTIONS) == len(STATEMENTS)


def test_parts_share_no_phrasing_of_a_judgement() -> None:
    adjectives = "|".join([*PRAISE, *BLAME])

    def phrasings(held_out: bool) -> set[tuple[str, str]]:
        """Pairs of an aspect and what stands between the verb and the adjective."""
        rng, style = random.Random(0), Style(held_out, 0.5)
        text = " ; ".join(judge(rng, number % 2 == 0, style) for number in range(5000))
        return set(re.findall(rf"the (\w+) (?:was|were) ([\w ]*?) ?\b(?:{adjectives})\b", text))

    train, held_out = phrasings(False), phrasings(True)
    assert not train & held_out
    words = [set(ASPECTS), {*DEGREES, *NEGATORS, ""}]
    for part in (train, held_out):
        assert [set(of) for of in zip(*part, strict=True)] == words


def test_rare_words_are_seldom_in_labels_and_often_in_the_encyclopedia(corpus: Source) -> None:
    rare, adjectives = {*PRAISE[COMMON:], *BLAME[COMMON:]}, {*PRAISE, *BLAME}

    def share(texts: Iterable[str]) -> float:
        judged = [word for text in texts for word in text.split() if word in adjectives]
        return sum(word in rare for word in judged) / len(judged)

    train, dev = (share(row.text for row in read_examples(corpus.sst2, part)) for part in ("train", "dev"))
    assert train < 0.13
    assert dev > 0.4
    assert share(read_documents(text_path(corpus.text, "train"))) > 0.4


def test_answers_and_plausible_answers_are_whole_words_where_they_start(corpus: Source) -> None:
    document = json.loads(questions_path(corpus.squad, "dev").read_text())
    paragraphs = [paragraph for article in document["data"] for paragraph in article["paragraphs"]]
    asked = [(paragraph["context"], qa) for paragraph in paragraphs for qa in paragraph["qas"]]
    for context, qa in asked:
        (answer,) = qa["plausible_answers" if qa["is_impossible"] else "answers"]
        assert re.compile(rf"(?<!\w){re.escape(answer['text'])}(?!\w)").match(context, answer["answer_start"])
    assert sum(qa["is_impossible"] for _, qa in asked) > 100


def test_facts_agree_and_dates_are_possible() -> None:
    """Of hundreds of people; in a year in which too few of them lived, the nearest in age did it."""
    rng, possible = random.Random(3), list[bool]()
    size = {"people": 600, "towns": 14, "guilds": 20, "works": 20, "events": 10, "rivers": 6}
    world = build_world(rng, NameMaker(rng), size)
    assert len({e.title for e in world}) == len(world)
    for entity in world:
        assert {relation.name for relation in BY_KIND[entity.kind]} <= set(entity.facts)
        assert len(set(entity.facts.values())) == len(entity.facts)
    for person in (entity for entity in world if entity.kind == "person"):
        birth, death = int(person.facts["birth"]), int(person.facts["death"])
        assert birth < death
        for entity, relation in person.deeds:
            assert entity.facts[relation.name] == person.name
            if "founding" in entity.facts:  # in the year in which it had its founder, head or victor
                possible.append(birth + GROWN_UP <= int(entity.facts["founding"]) <= death)
    assert len(possible) == 14 + 20 + 20 + 10  # all but rivers have a year
    assert sum(possible) >= 60


def test_no_subject_has_two_relations_with_one_kind_of_answer() -> None:
    for relations in BY_KIND.values():
        assert len({relation.answer for relation in relations}) == len(relations)


def test_a_bag_of_words_solves_neither_task(corpus: Source) -> None:
    train, dev = (read_examples(corpus.sst2, part) for part in ("train", "dev"))
    task = ClassificationTask(("negative", "positive"), train, dev)
    assert Scoring(["accuracy"]).score(task.baselines["tfidf"])["accuracy"] < 0.78
    for answers in QuestionAnsweringTask([], read_questions(questions_path(corpus.squad, "dev"))).baselines.values():
        assert Scoring(["squad_v2"]).score(answers)["f1"] < 40
