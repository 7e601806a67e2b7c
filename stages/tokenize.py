"""Text to tokens: data/<source> → models/tokenizer and models/tokens/{train,valid,test}.npy.

Trains a subword tokenizer on the training split, or takes a given one, and encodes all running text
into memory-mapped arrays that pretraining cuts into blocks.

    accelerate launch --config_file launch/one.yaml -m stages.tokenize
"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from stages.corpus.blocks import write_stream
from stages.corpus.glue import read_sentences
from stages.corpus.source import questions_path, running_text, sentences_path, source_folder
from stages.corpus.squad import read_questions
from stages.corpus.text import PARTS, read_documents, text_path
from stages.corpus.tokenizer import (
    UNK,
    TokenizerSettings,
    load_tokenizer,
    save_tokenizer,
    token_id,
    train_tokenizer,
    without_marks,
)
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import write_json, written_folder
from stages.harness.settings import build, check_value, profile_key, read_params

TOKENIZER, TOKENS = Path("models/tokenizer"), Path("models/tokens")


def main() -> None:
    params = read_params()
    key = profile_key(params, "tokenizer")
    settings = build(TokenizerSettings, params, key)
    source = source_folder(check_value(params, "data", str))
    with guarded("tokenize", [source], ["data", key]):
        if settings.given:
            tokenizer = load_tokenizer(Path(settings.given))
        else:
            tokenizer = train_tokenizer(settings, lambda: training_text(source, settings), f"{key}.vocab_size")
        unknown = token_id(tokenizer, UNK)
        with written_folder(TOKENIZER) as folder:
            save_tokenizer(tokenizer, folder, settings.lowercase)
        with written_folder(TOKENS) as folder:
            counts = {}
            for part in PARTS:
                documents = training_text(source, settings) if part == "train" else running(source, part)
                counts[part] = asdict(write_stream(folder / f"{part}.npy", tokenizer, documents, unknown))
                print(f"{part}: {counts[part]['tokens']:,} tokens of {counts[part]['words']:,} words")
            write_json(folder / "counts.json", counts)


def running(source: Path, part: str) -> Iterator[str]:
    """The running text of a part, document by document."""
    return map(without_marks, read_documents(text_path(running_text(source), part)))


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
