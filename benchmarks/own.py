"""What the benchmarks of Retrace's own side share: a project's pretraining, ready to run, and two processes."""

import numpy as np

from retrace.compute.device import Device, open_device
from retrace.pretraining.settings import PretrainParams
from retrace.tokens.blocks import open_stream
from retrace.tokens.tokenizer import SubwordTokenizer, load_tokenizer
from stages import pretrain

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]


def open_pretraining(seed: int) -> tuple[PretrainParams, SubwordTokenizer, np.ndarray, Device]:
    """A project's settings, tokenizer, training tokens and device, for `retrace.pretraining.run.load`."""
    settings = PretrainParams.read().model_copy(update={"seed": seed})
    stream = open_stream(pretrain.TOKENS / "train.npy")
    return settings, load_tokenizer(pretrain.TOKENIZER), stream, open_device(seed, settings.precision)
