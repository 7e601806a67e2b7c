"""A tokenizer.json for models that were published with vocabulary files only, such as SciBERT."""

from pathlib import Path

from retrace.core.errors import InputError
from retrace.core.files import read_object
from retrace.tokens.tokenizer import CONFIGS, FILE, load_tokenizer

# By model_type: WordPiece's tokens, one per line; byte-level BPE's tokens with their ids, and its merges.
VOCABULARIES = {"bert": ("vocab.txt",), "roberta": ("vocab.json", "merges.txt")}
ADDED = "added_tokens.json"
CASED = 0.01  # share of tokens with a capital letter above which a vocabulary may be cased


def make_tokenizer(folder: Path, name: str, model_type: str) -> None:
    """Write tokenizer.json as transformers makes it from the vocabulary in `folder`; messages call the model `name`.

    Raises InputError where the files do not determine the tokenizer, or its tokens are not those of the vocabulary.
    """
    from transformers import AutoTokenizer  # imported here, as it takes seconds

    vocabulary, files = _vocabulary(folder, model_type), " and ".join(VOCABULARIES[model_type])
    if model_type == "bert":
        _require_case(folder, name, vocabulary)
    try:
        theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        theirs.backend_tokenizer.save(str(folder / FILE))
    except Exception as error:  # of any kind, depending on the files
        raise InputError(f"{name}: no tokenizer can be made from its {files}: {str(error).splitlines()[0]}") from error
    made = load_tokenizer(folder).get_vocab()
    strange = sorted({token for token, _ in made.items() ^ vocabulary.items()})
    if strange:
        raise InputError(f"{name}: its tokenizer and its {files} differ in the token {strange[0]!r}")


def _vocabulary(folder: Path, model_type: str) -> dict[str, int]:
    """Ids by token."""
    path = folder / VOCABULARIES[model_type][0]
    if model_type == "bert":
        with path.open(encoding="utf-8") as lines:
            found = {line.rstrip("\n"): number for number, line in enumerate(lines)}
    else:
        found = read_object(path)
    return found | (read_object(folder / ADDED) if (folder / ADDED).is_file() else {})


def _require_case(folder: Path, name: str, vocabulary: dict[str, int]) -> None:
    """Raise InputError unless it is certain whether the tokenizer should lower-case text, transformers' default.

    If the config does not say, the vocabulary tells: one that was trained on lower-cased text has no capitals.
    """
    config = read_object(folder / CONFIGS[0]) if (folder / CONFIGS[0]).is_file() else {}
    if config.get("do_basic_tokenize") is False:
        raise InputError(f"{name}: {CONFIGS[0]}: do_basic_tokenize: false is not allowed, without tokenizer.json")
    words = [token for token in vocabulary if not (token.startswith("[") and token.endswith("]"))]
    capitals = sum(token != token.lower() for token in words)
    if "do_lower_case" not in config and capitals > CASED * len(words):
        raise InputError(
            f"{name}: {capitals} of {len(words)} tokens of vocab.txt have capital letters, and no {CONFIGS[0]} sets "
            'do_lower_case; start from a copy of the model with {"do_lower_case": false}, or true, in that file'
        )
