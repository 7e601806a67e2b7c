"""Perplexity on held-out text: models/pretrained and models/tokens → reports/perplexity.json.

Of a masked model the perplexity over fixed masks and the pseudo-perplexity over a sample of passages, of
a causal one the perplexity with sliding windows, beside the unigram baseline; each a token, a word and a
byte of the original text.

    accelerate launch --config_file launch/one.yaml -m stages.perplexity_eval
"""

from pathlib import Path

from stages.corpus.blocks import open_stream
from stages.corpus.source import running_text, source_folder
from stages.corpus.text import read_documents, text_path
from stages.corpus.tokenizer import load_tokenizer
from stages.harness.device import open_device
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.precision import Precision
from stages.harness.records import read_json, write_json
from stages.harness.settings import build, check_value, profile_key, read_params
from stages.metrics.perplexity import PerplexitySettings, Text, perplexities, unigram_loss
from stages.nets.heads import objective_of
from stages.nets.language_model import read_language_model
from stages.nets.vocabulary import Vocabulary
from stages.training.causal import sliding_batches
from stages.training.language import mean_loss
from stages.training.masking import masked_batches
from stages.training.pseudo import pseudo_loss, sample_passages

TOKENS, MODEL, OUT = Path("models/tokens"), Path("models/pretrained"), Path("reports/perplexity.json")


def main() -> None:
    params = read_params()
    keys = [profile_key(params, name) for name in ("perplexity", "pretrain.block")]
    settings = build(PerplexitySettings, params, keys[0])
    block = check_value(params, keys[1], int)
    source = source_folder(check_value(params, "data", str))
    device = open_device(settings.seed, check_value(params, "precision", Precision))
    with guarded(f"perplexity-{device.rank}", [source, TOKENS, MODEL], ["data", "precision", *keys]):
        tokenizer = load_tokenizer(MODEL)
        vocabulary = Vocabulary.of(tokenizer)
        model = device.placed(read_language_model(MODEL, settings.seed, device.attention)).eval()
        counts, train = read_json(TOKENS / "counts.json"), open_stream(TOKENS / "train.npy")
        report = {}
        for part in ("valid", "test"):
            stream = open_stream(TOKENS / f"{part}.npy")
            text = Text(counts[part]["tokens"], counts[part]["words"], counts[part]["bytes"])
            if objective_of(model.body.config) == "causal":
                batches = sliding_batches(stream, block, min(settings.stride, block), vocabulary)
                loss, _ = mean_loss(model, batches, device)
                found = {"causal": perplexities(loss, text)}
            else:
                loss, _ = mean_loss(model, masked_batches(stream, block, settings.mask_rate, vocabulary), device)
                documents = read_documents(text_path(running_text(source), part))
                passages = sample_passages(documents, tokenizer, settings.passages, block, settings.seed)
                found = {"masked": perplexities(loss, text)}
                found["pseudo"] = perplexities(*pseudo_loss(model, passages, vocabulary, device))
            unigram = unigram_loss(train, stream, vocabulary.size, vocabulary.special)
            found["unigram"] = perplexities(unigram, text)
            report[part] = {**found, "beats_unigram": loss < unigram}
            print(f"{part}: " + "  ".join(f"{name} {figures['per_token']:.2f}" for name, figures in found.items()))
        if device.is_main:
            write_json(OUT, report)


if __name__ == "__main__":
    exit_cleanly(main)
