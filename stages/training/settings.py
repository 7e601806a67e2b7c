"""How a model is optimised, the same knobs for pretraining and fine-tuning."""

from dataclasses import dataclass
from typing import Literal

from stages.harness.errors import InputError
from stages.harness.settings import require

SHORTEST_PAIR = 16  # tokens; a block or a document that is shorter holds no two sentences
MaskedAs = Literal["mask", "bert"]


@dataclass(frozen=True)
class OptimiserSettings:
    """The optimiser and its schedule; the peak learning rate comes with it."""

    kind: Literal["muon", "adamw"] = "muon"  # muon: on the hidden matrices, AdamW on the rest
    muon_ratio: float = 20.0  # Muon's learning rate over AdamW's
    muon_steps: int = 5  # of its Newton-Schulz iteration; fewer are faster and leave small singular values smaller
    beta1: float = 0.9
    beta2: float = 0.98
    weight_decay: float = 0.01
    warmup: float = 0.05  # share of the steps in which the rate rises from 0
    flat: float = 0.5  # share of the steps after which it falls, linearly, to 0
    clip: float = 1.0  # largest norm of the gradient
    spike: float | None = 2.0  # stop where the loss, averaged over 20 updates, rises by so many nats; null: never

    def __post_init__(self) -> None:
        require(self.muon_ratio > 0, "muon_ratio", self.muon_ratio, "expected a number above 0")
        require(self.muon_steps > 0, "muon_steps", self.muon_steps, "expected a whole number above 0")
        for field in ("beta1", "beta2"):
            require(0 <= getattr(self, field) < 1, field, getattr(self, field), "expected 0 up to 1")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "expected 0 or more")
        require(0 <= self.warmup <= 1, "warmup", self.warmup, "expected 0 to 1")
        require(self.warmup <= self.flat <= 1, "flat", self.flat, f"expected warmup ({self.warmup}) to 1")
        require(self.clip > 0, "clip", self.clip, "expected a number above 0")
        require(self.spike is None or self.spike > 0, "spike", self.spike, "expected a number above 0, or null")


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
    optimiser: OptimiserSettings = OptimiserSettings()

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


@dataclass(frozen=True)
class FineTuneSettings:
    """Fine-tuning on labelled examples, in batches of similar length."""

    lr: float  # peak
    epochs: int
    batch_size: int  # examples a step, over all processes
    max_length: int  # tokens an example
    examples: int | None = None  # train on so many examples, drawn from the seed; all where absent
    dropout: float | None = None  # as in pretraining where absent
    keep: Literal["best", "last"] = "best"  # the epoch that counts: of the lowest validation loss, or the last
    optimiser: OptimiserSettings = OptimiserSettings()

    def __post_init__(self) -> None:
        require(self.lr > 0, "lr", self.lr, "expected a number above 0")
        for field in ("epochs", "batch_size", "max_length"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(
            self.examples is None or self.examples > 0, "examples", self.examples, "expected a whole number above 0"
        )
        require(self.dropout is None or 0 <= self.dropout < 1, "dropout", self.dropout, "expected 0 up to 1")


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
