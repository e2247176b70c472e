"""The same training as `trainyard train`, by PyTorch's FSDP2 over gloo: what bench/compare_pytorch runs under torchrun.

Each step leaves a line {"step", "loss", "time", "tokens"} in --output: as metrics.jsonl, with which it is compared.
"""
import argparse
import json
import time

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch.distributed.fsdp import fully_shard
from transformers import Qwen3Config, Qwen3ForCausalLM


def build(config_path):
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config.from_pretrained(config_path, attn_implementation="sdpa"))
    for block in model.model.layers:
        fully_shard(block)
    fully_shard(model)
    return model


def main():
    parser = argparse.ArgumentParser()
    for name in ("--config", "--tokens", "--output"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = build(arguments.config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
    data = load_file(arguments.tokens)
    steps = zip(data["train.input_ids"].long(), data["train.labels"].long())

    with open(arguments.output if rank == 0 else "/dev/null", "w") as output:
        for step, (ids, labels) in enumerate(steps, 1):
            # transformers' loss averages over this rank's tokens; the rows have equally many, so the mean over ranks
            # that FSDP2 takes of the gradients is the mean over all tokens.
            loss = model(input_ids=ids[rank::world], labels=labels[rank::world], use_cache=False).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            mean = loss.detach()
            dist.all_reduce(mean)
            line = {"step": step, "loss": mean.item() / world, "time": time.time(), "tokens": ids.numel()}
            print(json.dumps(line), file=output, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
