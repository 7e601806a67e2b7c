"""Who made the data that models are trained on, and under which licence it is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Where a part of the data is from; what is not known is None."""

    name: str  # of the part: text, sst2, squad or a further task
    title: str
    dataset: str | None = None  # of the hub: ORG/NAME
    config: str | None = None
    commit: str | None = None
    split: str = "validation"  # that the figures are of
    licence: str | None = None
    citation: str | None = None


@dataclass(frozen=True)
class Work:
    """A published data set."""

    title: str
    licence: str | None  # None: its authors give none
    citation: str


# By repository and config of the hub; a config of None stands for all.
WORKS = {
    ("Salesforce/wikitext", None): Work(
        "WikiText",
        "CC BY-SA 3.0 and GFDL",
        "Stephen Merity, Caiming Xiong, James Bradbury and Richard Socher: Pointer Sentinel Mixture Models. 2016, "
        "arXiv:1609.07843",
    ),
    ("nyu-mll/glue", "sst2"): Work(
        "SST-2",
        None,
        "Richard Socher, Alex Perelygin, Jean Wu, Jason Chuang, Christopher D. Manning, Andrew Ng and Christopher "
        "Potts: Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank. EMNLP 2013",
    ),
    ("rajpurkar/squad", None): Work(
        "SQuAD 1.1",
        "CC BY-SA 4.0",
        "Pranav Rajpurkar, Jian Zhang, Konstantin Lopyrev and Percy Liang: SQuAD: 100,000+ Questions for Machine "
        "Comprehension of Text. EMNLP 2016, arXiv:1606.05250",
    ),
    ("rajpurkar/squad_v2", None): Work(
        "SQuAD 2.0",
        "CC BY-SA 4.0",
        "Pranav Rajpurkar, Robin Jia and Percy Liang: Know What You Don't Know: Unanswerable Questions for SQuAD. "
        "ACL 2018, arXiv:1806.03822",
    ),
}


def sample_origin(name: str) -> Origin:
    """A part of the embedded sample."""
    return Origin(name, "the embedded sample of Retrace, on an invented country", licence="Apache-2.0")


def files_origin(name: str) -> Origin:
    """A part that somebody had in files."""
    return Origin(name, "files of the publisher's own")


def hub_origin(name: str, dataset: str, commit: str, config: str, split: str, licence: str | None) -> Origin:
    """A data set of the hub, with the licence that its card gives where it is none of WORKS."""
    work = WORKS.get((dataset, config)) or WORKS.get((dataset, None))
    if work is None:
        return Origin(name, dataset, dataset, config, commit, split, licence)
    return Origin(name, work.title, dataset, config, commit, split, work.licence or licence, work.citation)
