"""`retrace wordnet`: lay out Debian's WordNet as nltk reads it, so that METEOR knows words of the same meaning.

Debian's packages wordnet-base and wordnet-sense-index have every file but `lexnames`, which is in the
manual page lexnames(5WN) alone. Set NLTK_DATA to the folder.
"""

import argparse
import shutil
from pathlib import Path

from retrace.core.errors import InputError
from retrace.core.files import atomic_folder

HELP = "lay out Debian's WordNet for METEOR"
LEXICOGRAPHER_FILES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state
noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition
verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social
verb.stative verb.weather adj.ppl
""".split()
CATEGORIES = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
NEEDED = [name for part in CATEGORIES for name in (f"data.{part}", f"index.{part}", f"{part}.exc")] + ["index.sense"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where nltk's data shall be")
    parser.add_argument(
        "--source",
        type=Path,
        default=Path("/usr/share/wordnet"),
        metavar="FOLDER",
        help="where Debian's files are; default %(default)s",
    )


def run(arguments: argparse.Namespace) -> None:
    """Copy the files to corpora/wordnet of the folder.

    Raises InputError where one is missing.
    """
    source: Path = arguments.source
    missing = [name for name in NEEDED if not (source / name).is_file()]
    if missing:
        raise InputError(f"{source}: no {missing[0]}; install wordnet-base and wordnet-sense-index")
    target = arguments.folder / "corpora" / "wordnet"
    with atomic_folder(target) as aside:
        shutil.copytree(source, aside, dirs_exist_ok=True)
        rows = [
            f"{number:02}\t{name}\t{CATEGORIES[name.split('.')[0]]}" for number, name in enumerate(LEXICOGRAPHER_FILES)
        ]
        (aside / "lexnames").write_text("\n".join(rows) + "\n")
    print(f"WordNet is in {target}; NLTK_DATA={arguments.folder} lets METEOR find it")
