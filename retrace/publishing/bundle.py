"""The files of a published model, and the three lines of Python that load it.

A whole model has the format of transformers, a LoRA that of peft. Bottleneck adapters and question matches, which
neither of them knows, have Retrace's own, loaded by `retrace.publishing.load`. No code is published with any of them.
"""

import shutil
from dataclasses import dataclass
from json import dumps as quoted  # its quotes are valid in Python too
from pathlib import Path
from typing import Any, Literal, cast

from tokenizers import Tokenizer, processors
from torch import nn
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.files import SUMS, read_object, write_json, write_text
from retrace.core.paths import questions_path
from retrace.datasets.squad import read_questions
from retrace.finetuning.method import FILE, has_added
from retrace.hub.pins import Pin
from retrace.models.heads import AUTO_CLASSES, Head, family_of, objective_of, read_config, read_model, takes_segments
from retrace.publishing.load import BASE, DESCRIPTION, Tuning, read_tuned
from retrace.tasks.question_answering.extractive import RARE_SHARE, word_shares
from retrace.tokens.tokenizer import CONFIGS, NAMES, copy_tokenizer, load_tokenizer, token_id
from retrace.tokens.tokenizer import FILE as TOKENIZER

UNSENT = shutil.ignore_patterns(SUMS)  # checksums of the folder as it was trained
SHARES = "word_shares.json"
Library = Literal["transformers", "peft", "retrace"]
Lines = tuple[str, str, str]  # of Python, which define a `model` and a `tokenizer`


@dataclass(frozen=True)
class Address:
    """Where a model is published."""

    repository: str
    branch: str | None = None  # None: the repository's default
    base: Pin | None = None  # the published model that an adapter is loaded onto; None: one in the same repository

    def call(self, function: str) -> str:
        """A Python call that loads something from there."""
        revision = f", revision={quoted(self.branch)}" if self.branch else ""
        return f"{function}({quoted(self.repository)}{revision})"


@dataclass(frozen=True)
class LoadingCode:
    """How a model is loaded."""

    library: Library
    use: str  # a key of AUTO_CLASSES
    lines: Lines


def write_pretrained(pretrained: Path, address: Address, folder: Path) -> LoadingCode:
    """Fill `folder` with the pretrained language model.

    Raises InputError if the address has a base.
    """
    if address.base:
        raise InputError("--base: not allowed with the pretrained model, which is whole without it")
    shutil.copytree(pretrained, folder, dirs_exist_ok=True, ignore=UNSENT)
    use = _use("language_model", pretrained)
    _adapt_tokenizer(folder, pretrained, use)
    return LoadingCode("transformers", use, _whole_lines(use, address))


def write_tuned(
    tuning: Tuning, tuned: Path, pretrained: Path, address: Address, folder: Path, max_length: int | None = None
) -> LoadingCode:
    """Fill `folder` with a tuned model, whose own files are in `tuned`; its inputs had at most `max_length` tokens.

    Raises InputError if the address has a base and the model needs none.
    """
    copy_tokenizer(tuned, folder)
    model = read_tuned(tuning, tuned, pretrained)
    library, use = _library(tuning, model), _use(tuning.head, pretrained)
    if address.base and (library == "transformers" or not (tuned / FILE).is_file()):
        raise InputError(f"--base: not allowed with {tuning.method.file}, whose model is whole without it")
    if library == "transformers":
        _save_whole(cast(PreTrainedModel, model), folder)
        lines = _whole_lines(use, address)
    elif library == "peft":
        lines = _write_adapter(tuning, cast(PreTrainedModel, model), pretrained, address, folder)
    else:
        lines = _write_own(tuning, tuned, pretrained, address, folder)
    _adapt_tokenizer(folder, pretrained, use, max_length)
    return LoadingCode(library, use, lines)


def write_shares(data: Path, folder: Path) -> None:
    """Write the relative frequencies of the words in a task's training passages; `match_kinds` grades matches by them.

    Rare words are left out, as a word that is not listed counts as rare too.
    """
    shares = word_shares(question.context for question in read_questions(questions_path(data, "train")))
    write_json(folder / SHARES, {word: share for word, share in sorted(shares.items()) if share > RARE_SHARE})


def _library(tuning: Tuning, model: nn.Module) -> Library:
    if tuning.question_match:
        return "retrace"
    if hasattr(tuning.method.tuning, "save_adapter"):
        return "peft"
    return "retrace" if has_added(model) else "transformers"


def _write_adapter(tuning: Tuning, model: PreTrainedModel, pretrained: Path, address: Address, folder: Path) -> Lines:
    base, use = address.base, _use(tuning.head, pretrained)
    # peft reads the base at this revision; without one from the default branch, even if all is on another.
    repository, revision = (base.repository, base.commit) if base else (address.repository, address.branch)
    method = tuning.method
    method.tuning.save_adapter(model, tuning.head, method.settings, repository, revision, folder)
    if not base:
        _save_whole(read_model(tuning.head, pretrained, 0, "sdpa", tuning.classes), folder)
        return _whole_lines(use, address)
    is_other = read_config(pretrained).num_labels != model.config.num_labels  # it may have been tuned on another task
    given: dict[str, Any] = {
        "revision": revision,
        "dtype": "float32",  # as in training; the published base may be in bf16, and its config may name no padding
        "pad_token_id": model.config.pad_token_id,
        "id2label": dict(enumerate(tuning.classes)) or None,
        "num_labels": model.config.num_labels if is_other and not tuning.classes else None,
        "ignore_mismatched_sizes": is_other or None,
        "key_mapping": getattr(family_of(model.config), "KEY_MAPPING", {}).get(tuning.head),
    }
    options = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    auto, at_branch = AUTO_CLASSES[use].__name__, {"revision": address.branch}
    branch = f", adapter_kwargs={at_branch!r}" if address.branch else ""
    return (
        f"from transformers import {auto}, AutoTokenizer",
        f"tokenizer, model = {address.call('AutoTokenizer.from_pretrained')}, "
        f"{auto}.from_pretrained({quoted(repository)}, {options})",
        f"model.load_adapter({quoted(address.repository)}{branch})",
    )


def _write_own(tuning: Tuning, tuned: Path, pretrained: Path, address: Address, folder: Path) -> Lines:
    shutil.copytree(tuned, folder, dirs_exist_ok=True, ignore=UNSENT)
    write_json(folder / DESCRIPTION, tuning.description(address.base))
    if (tuned / FILE).is_file() and not address.base:
        shutil.copytree(pretrained, folder / BASE, ignore=UNSENT)
    return (
        "from retrace.publishing.load import load_tuned",
        "from transformers import AutoTokenizer",
        f"tokenizer, model = {address.call('AutoTokenizer.from_pretrained')}, {address.call('load_tuned')}",
    )


def _whole_lines(use: str, address: Address) -> Lines:
    auto = AUTO_CLASSES[use].__name__
    return (
        f"from transformers import {auto}, AutoTokenizer",
        f"tokenizer = {address.call('AutoTokenizer.from_pretrained')}",
        f"model = {address.call(f'{auto}.from_pretrained')}",
    )


def _use(head: Head, pretrained: Path) -> str:
    return objective_of(read_config(pretrained)) if head == "language_model" else head


def _save_whole(model: PreTrainedModel, folder: Path) -> None:
    # With the names of the model's own parameters, which transformers looks for, not those in the file it came from.
    model.save_pretrained(folder, save_original_format=False)


def _adapt_tokenizer(folder: Path, pretrained: Path, use: str, max_length: int | None = None) -> None:
    """Have the published tokenizer encode, pad and cut as in training, and give segments if the model takes them.

    The checkpoint's own may name no padding token, or other sides. Prompts are padded on the left. Of transformers'
    classes only the general one takes the tokenizer's file as it is: others, such as RobertaTokenizer, have their own
    normalizer and format. It knows no special tokens but those that are named, and gives segments if its config names
    them: a checkpoint's may, although its model, such as a RoBERTa with BERT's tokenizer, has no second one.
    """
    path, special = folder / CONFIGS[0], load_tokenizer(folder).special
    named = {name: token for role, (name, *_) in NAMES.items() if (token := getattr(special, role))}
    config: dict[str, Any] = named | (read_object(path) if path.is_file() else {})
    config.pop("auto_map", None)  # names code that came with a checkpoint, as in read_config
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": special.pad}
    config |= {"padding_side": "left"} if use == "causal" else {"padding_side": "right", "truncation_side": "right"}
    if use in ("classifier", "spans"):  # a special token that is spelt out in a text is ordinary text
        config["split_special_tokens"] = True
    if max_length is not None:  # else a longer text is read whole, or up to all positions of the model
        config["model_max_length"] = max_length
    segments = ["token_type_ids"] if takes_segments(read_config(pretrained)) else []
    config["model_input_names"] = ["input_ids", *segments, "attention_mask"]
    write_json(path, config)
    if use == "causal":
        _leave_open(folder)
    else:
        _write_format(folder)


def _leave_open(folder: Path) -> None:
    """Rewrite the tokenizer so that no token ends a text, after which a causal model would begin another one.

    It puts no token between two texts either, so `load_tokenizer` gives it BERT's format if the model is tuned here.
    """
    tokenizer = load_tokenizer(folder)
    if tokenizer.num_special_tokens_to_add(False) > 1:
        begin = tokenizer.special.begin
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", pair=f"{begin} $A $B:1", special_tokens=[(begin, token_id(tokenizer, begin))]
        )
        write_text(folder / TOKENIZER, tokenizer.to_str(pretty=True))


def _write_format(folder: Path) -> None:
    """Rewrite the tokenizer so that it adds the special tokens of training, if its own format adds others or none."""
    path, used = folder / TOKENIZER, load_tokenizer(folder)
    own = Tokenizer.from_file(str(path))
    if own.num_special_tokens_to_add(True) != used.num_special_tokens_to_add(True):
        write_text(path, used.to_str(pretty=True))
