"""How perplexity is measured."""

from pydantic import Field

from retrace.core.settings import Count, Params, Precision, Resamples, Section, Seed


class PerplexitySettings(Section):
    """The masks, passages and windows with which perplexity is measured."""

    mask_rate: float = Field(default=0.15, gt=0, lt=1, description="share of tokens to mask")
    pseudo_passages: Count = Field(
        default=64, description="passages that are scored token by token, for the pseudo-perplexity"
    )
    stride: Count = Field(default=64, description="tokens between the starts of a causal model's windows")
    seed: Seed = Field(default=0, description="seed of the passages of the pseudo-perplexity")


class PerplexityParams(Params):
    """What stages/perplexity_eval.py reads."""

    precision: Precision
    perplexity: PerplexitySettings
    block_size: Count = Field(alias="pretrain.block_size")
    bootstrap_samples: Resamples = Field(alias="metrics.bootstrap_samples")
    bootstrap_seed: Seed = Field(alias="metrics.seed")
