"""Parameters of RoBERTa (Liu et al. 2019): BERT's without segments and pooler; two of the positions are for padding."""

from transformers import PreTrainedConfig

from retrace.estimates.closed_form import Term
from retrace.estimates.formulas import bert

ABSENT = ("segment embeddings", "pooler")


def terms(config: PreTrainedConfig) -> list[Term]:
    """V tokens, P positions, L layers of size h and inner size f."""
    return [term for term in bert.terms(config) if term.name not in ABSENT]
