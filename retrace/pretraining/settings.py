"""Settings of pretraining."""

from typing import Self

from pydantic import Field, model_validator

from retrace.core.settings import Count, MaskReplacement, Params, Positive, Precision, Section, Seed, require
from retrace.models.settings import ModelSettings
from retrace.tokens.settings import SHORTEST_PAIR
from retrace.training.settings import OptimizerSettings


class PretrainSettings(Section):
    """Language modelling on blocks of the training texts, or on pairs of sentences."""

    epochs: int = Field(ge=0, description="number of epochs; 0: the checkpoint is used unchanged")
    text_epochs: int = Field(
        default=0,
        ge=0,
        description="number of epochs at the end that train on the running text alone; max_tokens may end before them",
    )
    batch_size: Count = Field(description="blocks per step, over all processes")
    block_size: int = Field(ge=3, description="tokens per block")
    max_lr: Positive | None = Field(default=None, description="a larger lr is an error; null: no limit")
    max_tokens: Count | None = Field(
        default=None, description="stop after this many tokens, rounded up to whole batches as large as the first"
    )
    mask_rate: float = Field(default=0.3, gt=0, lt=1, description="exact share of each block's tokens to mask")
    mask_replacement: MaskReplacement = Field(
        default="mask",
        description="masked tokens become [MASK]; or 80% [MASK], 10% random tokens and 10% unchanged, as in BERT",
    )
    whole_word_mask: bool = Field(
        default=False, description="mask whole words; a block may fall short of mask_rate by up to one word"
    )
    intra_document_attention: bool = Field(
        default=False, description="no attention across the documents that share a block"
    )
    next_sentence: bool = Field(default=False, description="add next-sentence prediction, as in BERT; family bert only")
    optimizer: OptimizerSettings = Field(default=OptimizerSettings(), description="the optimizer")

    @model_validator(mode="after")
    def _pairs_fit(self) -> Self:
        most, why = (0, "with next_sentence") if self.next_sentence else (self.epochs, "the epochs")
        require(self.text_epochs <= most, "text_epochs", self.text_epochs, f"expected at most {most}, {why}")
        go_together = not (self.intra_document_attention and self.next_sentence)
        require(go_together, "intra_document_attention", True, "pairs of sentences (next_sentence) share no block")
        has_room = not self.next_sentence or self.block_size >= SHORTEST_PAIR
        require(has_room, "block_size", self.block_size, f"expected at least {SHORTEST_PAIR} with next_sentence")
        return self


class PretrainParams(Params):
    """What stages/pretrain.py reads."""

    lr: Positive = Field(description="peak learning rate of pretraining, for AdamW; Muon's is a multiple of it")
    seed: Seed = Field(description="draws the initial weights, the masks and the order of blocks in pretraining")
    family: str = Field(description="the architecture, a file of retrace/families: modernbert, bert, roberta or llama")
    precision: Precision = Field(
        description="precision of matrix products; auto: bf16 where the hardware is fast at it, else fp32"
    )
    model: ModelSettings
    pretrain: PretrainSettings

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        recipe, is_given, longest = self.pretrain, self.model.checkpoint is not None, self.model.max_positions
        needed = "expected 1 or more with model.checkpoint: null, as nothing else trains the weights"
        require(recipe.epochs > 0 or is_given, "pretrain.epochs", 0, needed)
        is_low = recipe.max_lr is None or self.lr <= recipe.max_lr
        require(is_low, "lr", self.lr, f"expected at most pretrain.max_lr ({recipe.max_lr})")
        fits, allowed = is_given or recipe.block_size <= longest, f"expected at most model.max_positions ({longest})"
        require(fits, "pretrain.block_size", recipe.block_size, allowed)
        return self
