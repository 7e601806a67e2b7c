"""How a language model is pretrained."""

import dataclasses
from dataclasses import dataclass

from retrace.core.errors import InputError
from retrace.core.settings import require
from retrace.objectives.settings import SHORTEST_PAIR, MaskedAs
from retrace.training.settings import OptimiserSettings


@dataclass(frozen=True)
class PretrainSettings:
    """Masked language modelling on blocks of the running text."""

    epochs: int  # 0: the weights that it starts from are kept
    batch_size: int  # blocks a step, over all processes
    block: int  # tokens a block
    mask_rate: float = 0.3  # share of a block's tokens that is masked, exactly
    whole_words: bool = False  # mask words rather than tokens; up to a word less than mask_rate
    masked_as: MaskedAs = "mask"  # mask: all of them [MASK]; bert: 80% [MASK], 10% another token, 10% as they are
    within_documents: bool = False  # where documents share a block, a token sees only those of its own
    tokens: int | None = None  # end after so many tokens, though the epochs hold more
    seconds: float | None = None  # end after so much time of training; results then differ from run to run
    next_sentence: bool = False  # ask of pairs of sentences whether they follow one another; BERT only
    lr_limit: float | None = None  # the largest lr that this model bears
    optimiser: OptimiserSettings = dataclasses.field(default_factory=OptimiserSettings)

    def __post_init__(self) -> None:
        require(self.epochs >= 0, "epochs", self.epochs, "expected a whole number, 0 or more")
        for field in ("batch_size", "block"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(
            not (self.within_documents and self.next_sentence),
            "within_documents", True, "pairs of sentences (next_sentence) share no block",
        )  # fmt: skip
        for field in ("tokens", "seconds"):
            value = getattr(self, field)
            require(value is None or value > 0, field, value, "expected a number above 0, or null")
        require(0 < self.mask_rate < 1, "mask_rate", self.mask_rate, "expected a number between 0 and 1")
        require(
            not self.next_sentence or self.block >= SHORTEST_PAIR,
            "block", self.block, f"expected at least {SHORTEST_PAIR} with next_sentence",
        )  # fmt: skip


def check_pretraining(lr: float, recipe: PretrainSettings, recipe_key: str, is_given: bool) -> None:
    """Raise an InputError that names both keys where settings do not go together.

    `is_given`: whether training starts from the weights of a model rather than from random ones.
    """
    if not recipe.epochs and not is_given:
        raise InputError(
            f"params.yaml: {recipe_key}.epochs: 0 is not allowed with model.from: null; nothing would train the weights"
        )
    limit = recipe.lr_limit
    if lr <= 0 or (limit is not None and lr > limit):
        raise InputError(
            f"params.yaml: lr: {lr} is not allowed; expected above 0 and at most {recipe_key}.lr_limit ({limit})"
        )


def check_block(recipe: PretrainSettings, recipe_key: str, longest: int, name: str) -> None:
    """Raise an InputError where a block is longer than the longest input, which is called `name`."""
    if recipe.block > longest:
        raise InputError(
            f"params.yaml: {recipe_key}.block: {recipe.block} is not allowed; expected at most {name} ({longest})"
        )
