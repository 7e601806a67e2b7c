"""LoRA (Hu et al. 2021): low-rank updates of chosen matrices are trained, the rest of the body is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.settings import Dropout, Positive, Size
from retrace.finetuning.settings import MethodSettings

if TYPE_CHECKING:  # torch and peft are imported where they are used, as `retrace check` reads the settings only
    from peft import LoraConfig
    from transformers import PreTrainedModel

    from retrace.models.heads import Head

TASK_TYPES = {"classifier": "SEQ_CLS", "spans": "QUESTION_ANS", "language_model": "CAUSAL_LM"}  # of peft


class Settings(MethodSettings):
    """The rank of the updates, and which matrices they are added to."""

    rank: Size = Field(default=16, description="rank of the update")
    alpha: Positive = Field(default=32.0, description="the update is scaled by alpha / rank")
    dropout: Dropout = Field(default=0.0, description="dropout on the update's input")
    targets: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="names of the matrices to update; null: those of attention"
    )
    embeddings: bool = Field(default=False, description="also update the token embeddings")


def tune(model: PreTrainedModel, head: Head, settings: Settings) -> None:
    """Freeze what was pretrained and add updates to the body, drawn from torch's generator.

    A language model's head is pretrained and so frozen, as with peft's task type CAUSAL_LM. Raises InputError for
    `embeddings` with a language model, whose head may share the embeddings' weights, and for targets that the body
    does not have.
    """
    from peft import inject_adapter_in_model
    from peft.tuners.lora import LoraLayer

    from retrace.finetuning.method import freeze_pretrained
    from retrace.models.dropout import quicken_dropout

    if settings.embeddings and head == "language_model":
        raise InputError("embeddings: true is not allowed with answers: generative")
    inject_adapter_in_model(_config(model, settings), model)
    quicken_dropout(model)  # the updates' too
    for module in model.modules():
        if isinstance(module, LoraLayer):
            module.cast_input_dtype_enabled = False  # autocast would round its bf16 input to bf16 again
    freeze_pretrained(model, head)


def save_adapter(
    model: PreTrainedModel, head: Head, settings: Settings, base: str, commit: str | None, folder: Path
) -> None:
    """Write the trained weights in peft's format, for peft or transformers to load onto `base` at a `commit`.

    A new head is listed in peft's `modules_to_save`.
    """
    from peft import TaskType
    from safetensors.torch import save_file

    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    config = _config(model, settings)
    config.task_type, config.inference_mode = TaskType[TASK_TYPES[head]], True
    config.base_model_name_or_path, config.revision = base, commit
    # The outermost modules of the head, and BERT's pooler.
    parts = [name.removeprefix(f"{model.base_model_prefix}.") for name in trained if "lora_" not in name]
    config.modules_to_save = sorted({part.partition(".")[0] for part in parts}) or None
    values = {name: sorted(value) if isinstance(value, set) else value for name, value in config.to_dict().items()}
    write_json(folder / "adapter_config.json", values)
    weights = {
        f"base_model.model.{name.replace('.default', '')}": weight.contiguous() for name, weight in trained.items()
    }
    save_file(weights, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def _config(model: PreTrainedModel, settings: Settings) -> LoraConfig:
    from peft import LoraConfig

    from retrace.models.heads import family_of, in_body, layer_matrices, token_embeddings

    embeddings = [token_embeddings(model)] if settings.embeddings else []
    targets, of_head = settings.targets or layer_matrices(model, "ATTENTION"), []
    for target in targets:  # peft compares the ends of names, in the head as well
        names = [name for name, _ in model.named_modules() if f".{name}".endswith(f".{target}")]
        weights = [getattr(model.get_submodule(name), "weight", None) for name in names if in_body(model, name)]
        if not weights or any(weight is None or weight.ndim != 2 for weight in weights):
            allowed = f"expected names of matrices, such as {', '.join(family_of(model.config).ATTENTION)}"
            raise InputError(f"targets: {target!r} is not allowed; {allowed}")
        of_head += [name for name in names if not in_body(model, name)]
    return LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout,  # pyright: ignore[reportArgumentType]
        target_modules=[*targets, *embeddings], exclude_modules=of_head or None,
    )  # fmt: skip
