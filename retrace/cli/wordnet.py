"""`retrace wordnet`: WordNet from Debian's files, which lack `lexnames`: only the manual page lexnames(5WN) has it."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from retrace.core.errors import InputError
from retrace.core.files import atomic_folder

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


def wordnet(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="where nltk's data shall be")],
    source: Annotated[Path, typer.Option(help="where Debian's files are")] = Path("/usr/share/wordnet"),
) -> None:
    """Lay out Debian's WordNet as nltk reads it, so that METEOR knows words of the same meaning.

    The files are those of the packages wordnet-base and wordnet-sense-index. Set NLTK_DATA to the folder.
    """
    missing = [name for name in NEEDED if not (source / name).is_file()]
    if missing:
        raise InputError(f"{source}: no {missing[0]}; install wordnet-base and wordnet-sense-index")
    target = folder / "corpora" / "wordnet"
    with atomic_folder(target) as aside:
        shutil.copytree(source, aside, dirs_exist_ok=True)
        with (aside / "lexnames").open("w") as file:
            for number, name in enumerate(LEXICOGRAPHER_FILES):
                print(f"{number:02}", name, CATEGORIES[name.split(".")[0]], sep="\t", file=file)
    print(f"WordNet is in {target}; NLTK_DATA={folder} lets METEOR find it")
