"""Writes the folders that meta_llama_test.cpp reads, with torch 2.15, transformers 5.24 and the script
convert_llama_weights_to_hf.py of transformers 4.46, which says what the weights are: python3 make.py SCRIPT"""
import importlib.util
import json
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB = 16, 2, 4, 2, 24
HEAD = HIDDEN // HEADS
PARAMS = {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "n_kv_heads": KV_HEADS, "vocab_size": VOCAB,
          "multiple_of": 8, "ffn_dim_multiplier": 1.3, "norm_eps": 1e-5, "rope_theta": 500000.0}
INTERMEDIATE = 56


def weights():
    torch.manual_seed(0)

    def made(*shape):
        return torch.randn(*shape).to(torch.bfloat16)

    tensors = {"tok_embeddings.weight": made(VOCAB, HIDDEN), "norm.weight": made(HIDDEN),
               "output.weight": made(VOCAB, HIDDEN), "rope.freqs": torch.randn(HEAD // 2)}
    for layer in range(LAYERS):
        tensors |= {f"layers.{layer}.{name}.weight": made(*shape) for name, shape in (
            ("attention.wq", (HEADS * HEAD, HIDDEN)), ("attention.wk", (KV_HEADS * HEAD, HIDDEN)),
            ("attention.wv", (KV_HEADS * HEAD, HIDDEN)), ("attention.wo", (HIDDEN, HEADS * HEAD)),
            ("feed_forward.w1", (INTERMEDIATE, HIDDEN)), ("feed_forward.w2", (HIDDEN, INTERMEDIATE)),
            ("feed_forward.w3", (INTERMEDIATE, HIDDEN)), ("attention_norm", (HIDDEN,)), ("ffn_norm", (HIDDEN,)))}
    return tensors


def part_of(name, tensor, part, parts, is_llama_3):
    if tensor.dim() < 2:
        return tensor
    by_columns = name.endswith(("wo.weight", "w2.weight")) or (name.startswith("tok_") and not is_llama_3)
    return tensor.chunk(parts, dim=1 if by_columns else 0)[part].clone()


def write(folder, parts, params, is_llama_3):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(params) + "\n")
    for part in range(parts):
        tensors = {name: part_of(name, tensor, part, parts, is_llama_3) for name, tensor in weights().items()}
        torch.save(tensors, folder / f"consolidated.{part:02}.pth")


def convert(script, folder, parts, version):
    spec = importlib.util.spec_from_file_location("script", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory() as out:
        module.write_model(out, str(folder), llama_version=version, vocab_size=VOCAB, num_shards=parts)
        return load_file(pathlib.Path(out) / "model.safetensors")


def main(script):
    write(HERE / "one", 1, PARAMS | {"use_scaled_rope": True}, True)
    write(HERE / "rows", 2, PARAMS, True)
    write(HERE / "columns", 2, {key: value for key, value in PARAMS.items() if key != "rope_theta"} | {"vocab_size": -1},
          False)
    read = [convert(script, HERE / "one", 1, "3.1"), convert(script, HERE / "rows", 2, "3"),
            convert(script, HERE / "columns", 2, "2")]
    for other in read[1:]:
        assert read[0].keys() == other.keys() and all(torch.equal(read[0][name], other[name]) for name in other)
    save_file({name: tensor.float() for name, tensor in read[0].items()}, HERE / "whole.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
