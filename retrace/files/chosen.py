"""Which of the user's own files are read, and what each is called once copied.

Where the validation set is split off the training file, the official validation file, if there is one, is the test set.
"""

from pathlib import Path

from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.text import PARTS, text_path
from retrace.files.settings import SST2_DEV, SST2_TRAIN, FilesSettings


def files_of_tests(settings: FilesSettings) -> dict[str, Path]:
    """The files of those tasks that have a test set."""
    found = {}
    for task, folder, dev in (
        ("sst2", Path(settings.sst2), SST2_DEV), ("squad", Path(settings.squad), settings.squad_dev),
    ):  # fmt: skip
        test, share = getattr(settings, f"{task}_test"), getattr(settings, f"{task}_split")
        if test is None and share is not None and (folder / dev).is_file():
            test = dev
        if test is not None:
            found[task] = folder / test
    return found


def chosen_files(settings: FilesSettings, folder: Path) -> list[tuple[Path, Path]]:
    """The user's files and where each goes; a dev that is split off train is none of them."""
    text, sst2, squad = Path(settings.text), Path(settings.sst2), Path(settings.squad)
    pairs = []
    for part in PARTS:
        tokens, plain = text_path(text, part), text / f"{part}.txt"
        pairs.append(
            (plain if plain.is_file() and not tokens.is_file() else tokens, text_path(running_text(folder), part))
        )
    pairs.append((sst2 / SST2_TRAIN, sentences_path(folder, "train")))
    if settings.sst2_split is None:
        pairs.append((sst2 / SST2_DEV, sentences_path(folder, "dev")))
    pairs.append((squad / settings.squad_train, questions_path(folder, "train")))
    if settings.squad_split is None:
        pairs.append((squad / settings.squad_dev, questions_path(folder, "dev")))
    paths = {"sst2": sentences_path, "squad": questions_path}
    return pairs + [(source, paths[task](folder, "test")) for task, source in files_of_tests(settings).items()]
