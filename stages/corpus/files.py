"""The user's own files: where they are, and what they are called once copied."""

from dataclasses import dataclass
from pathlib import Path

from stages.corpus.source import questions_path, running_text, sentences_path
from stages.corpus.text import PARTS, text_path


@dataclass(frozen=True)
class FilesSettings:
    """Where the user's files are; folders relative to the project."""

    text: str
    sst2: str
    squad: str
    squad_train: str = "train-v2.0.json"  # file names within squad
    squad_dev: str = "dev-v2.0.json"


def chosen_files(settings: FilesSettings, folder: Path) -> list[tuple[Path, Path]]:
    """The user's files and where each goes."""
    text, sst2, squad = Path(settings.text), Path(settings.sst2), Path(settings.squad)
    pairs = []
    for part in PARTS:
        tokens, plain = text_path(text, part), text / f"{part}.txt"
        pairs.append(
            (plain if plain.is_file() and not tokens.is_file() else tokens, text_path(running_text(folder), part))
        )
    pairs += [(sst2 / f"{part}.tsv", sentences_path(folder, part)) for part in ("train", "dev")]
    pairs.append((squad / settings.squad_train, questions_path(folder, "train")))
    pairs.append((squad / settings.squad_dev, questions_path(folder, "dev")))
    return pairs
