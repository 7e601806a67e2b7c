"""Text to tokens: data/<source> → models/tokenizer and models/tokens/{train,valid,test}.npy.

Trains a subword tokenizer on the training split, or takes a given one or that of the model in data/model, and
encodes all running text into memory-mapped arrays that pretraining cuts into blocks.

    accelerate launch --config_file launch/one.yaml -m stages.tokenize
"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from stages.corpus.blocks import write_stream
from stages.corpus.checkpoint import CHECKPOINT, given_checkpoint
from stages.corpus.glue import read_sentences
from stages.corpus.source import questions_path, running_text, sentences_path, source_folder
from stages.corpus.squad import read_questions
from stages.corpus.text import PARTS, read_documents, text_path
from stages.corpus.tokenizer import (
    SubwordTokenizer,
    TokenizerSettings,
    copy_tokenizer,
    load_tokenizer,
    save_tokenizer,
    train_tokenizer,
    without_marks,
)
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import write_json, written_folder
from stages.harness.settings import build, check_value, profile_key, read_params, values_of

TOKENIZER, TOKENS = Path("models/tokenizer"), Path("models/tokens")


def main() -> None:
    params = read_params()
    key = profile_key(params, "tokenizer")
    settings = build(TokenizerSettings, params, key)
    source = source_folder(check_value(params, "data", str))
    with guarded("tokenize", [source, CHECKPOINT], values_of(params, ["data", key])):
        model = given_checkpoint()
        tokenizer = made_tokenizer(settings, model, source, f"{key}.vocab_size")
        with written_folder(TOKENIZER) as folder:
            if model:
                copy_tokenizer(model, folder)
            else:
                save_tokenizer(tokenizer, folder, settings.lowercase)
        with written_folder(TOKENS) as folder:
            counts = {}
            held_out = {part: running(source, part) for part in PARTS[1:]}
            for part, documents in {"train": training_text(source, settings), **held_out}.items():
                counts[part] = asdict(write_stream(folder / f"{part}.npy", tokenizer, documents))
                print(f"{part}: {counts[part]['tokens']:,} tokens of {counts[part]['words']:,} words")
            write_json(folder / "counts.json", counts)


def made_tokenizer(settings: TokenizerSettings, model: Path | None, source: Path, key: str) -> SubwordTokenizer:
    """That of the model to start from, else a given one, else one that is trained."""
    given = model or (Path(settings.given) if settings.given else None)
    if given:
        return load_tokenizer(given)
    return train_tokenizer(settings, lambda: map(without_marks, training_text(source, settings)), key)


def running(source: Path, part: str) -> Iterator[str]:
    """The running text of a part, document by document."""
    return read_documents(text_path(running_text(source), part))


def training_text(source: Path, settings: TokenizerSettings) -> Iterator[str]:
    """What is trained on: running text, and passages and sentences of the training parts where asked for."""
    if "text" in settings.texts:
        yield from running(source, "train")
    if "squad" in settings.texts:
        yield from dict.fromkeys(question.context for question in read_questions(questions_path(source, "train")))
    if "sst2" in settings.texts:
        yield from (sentence.text for sentence in read_sentences(sentences_path(source, "train")))


if __name__ == "__main__":
    exit_cleanly(main)
