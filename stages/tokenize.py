"""Text to tokens: data/ → models/tokenizer and models/tokens/{train,valid,test}.npy.

Trains a subword tokenizer on the training texts that `tokenizer.train_on` lists, or copies that of the checkpoint in
data/model. Then encodes these texts, and the running text of validation and test, as token ids in memory-mapped arrays.
Pretraining cuts the arrays into blocks.

    python -m stages.tokenize
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import CHECKPOINT, DATA, TOKENIZER, TOKENS, given_checkpoint, questions_path
from retrace.core.records import timed
from retrace.datasets.examples import read_examples
from retrace.datasets.source import Source
from retrace.datasets.splits import maximal_texts
from retrace.datasets.squad import passages, read_questions
from retrace.datasets.text import PARTS, read_documents, text_path
from retrace.tokens.blocks import write_stream
from retrace.tokens.settings import TokenizeParams, TokenizerSettings
from retrace.tokens.tokenizer import copy_tokenizer, load_tokenizer, save_tokenizer, train_tokenizer

SOURCE = Source.within(DATA)


def main() -> None:
    params = TokenizeParams.read()
    settings = params.tokenizer
    with guarded("tokenize", [SOURCE.text, SOURCE.sst2, SOURCE.squad, CHECKPOINT], params.settings), timed("tokenize"):
        model, added = given_checkpoint(), [list(texts) for texts in added_texts(settings)]
        with atomic_folder(TOKENIZER, summed=True) as folder:
            if model:
                tokenizer = load_tokenizer(model)
                copy_tokenizer(model, folder)
            else:
                tokenizer = train_tokenizer(settings, lambda: chain.from_iterable(training_texts(settings, added)))
                save_tokenizer(tokenizer, folder, settings.lowercase)
        with atomic_folder(TOKENS, summed=True) as folder:
            counts = {}
            held_out = {part: [running(part)] for part in PARTS[1:]}
            for part, texts in {"train": training_texts(settings, added), **held_out}.items():
                counts[part], ends = write_stream(folder / f"{part}.npy", tokenizer, texts)
                print(f"{part}: {counts[part]['tokens']:,} tokens of {counts[part]['words']:,} words")
                if part == "train" and "text" in settings.train_on:  # its stream begins with the running text
                    counts[part]["running_tokens"] = ends[0]
            write_json(folder / "counts.json", counts)


def running(part: str) -> Iterator[str]:
    """The running text of a split, document by document."""
    return read_documents(text_path(SOURCE.text, part))


def training_texts(settings: TokenizerSettings, added: Iterable[Iterable[str]]) -> Iterator[Iterable[str]]:
    """The running text, if `train_on` lists it, and the added texts."""
    if "text" in settings.train_on:
        yield running("train")
    yield from added


def added_texts(settings: TokenizerSettings) -> Iterator[Iterable[str]]:
    """The other texts that `train_on` lists: passages, and sentences that are not part of another sentence."""
    if "squad" in settings.train_on:
        yield passages(read_questions(questions_path(SOURCE.squad, "train")), settings.with_questions)
    if "sst2" in settings.train_on:
        yield maximal_texts(sentence.text for sentence in read_examples(SOURCE.sst2, "train"))


if __name__ == "__main__":
    exit_cleanly(main)
