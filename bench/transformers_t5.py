"""The job of docs/seq2seq.md by transformers and FSDP2 over gloo: what bench/compare_t5 runs under torchrun.

Reads the rows that both sides learn, [steps, rows of all ranks, tokens], and pads as --padding says. Each step leaves a
line {"step", "loss", "time", "samples"} in --output: as metrics.jsonl, with which it is compared.
"""
import argparse
import json
import time

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch.distributed.fsdp import fully_shard
from transformers import T5ForConditionalGeneration

from workload import T5_JOB


def longest(mask, labels):
    """As DataCollatorForSeq2Seq pads: to the longest source and the longest target of a rank's rows."""
    return int(mask.sum(1).max()), int((labels >= 0).sum(1).max())


def main():
    parser = argparse.ArgumentParser()
    for name in ("--model", "--tokens", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--padding", choices=["max_length", "longest"], required=True)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = T5ForConditionalGeneration.from_pretrained(arguments.model).train()
    for block in [*model.encoder.block, *model.decoder.block]:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=T5_JOB["lr"], betas=T5_JOB["betas"],
                                  weight_decay=T5_JOB["weight_decay"])
    data = load_file(arguments.tokens)
    steps = zip(*(data[f"train.{name}"].long() for name in ("input_ids", "attention_mask", "labels")))

    with open(arguments.output if rank == 0 else "/dev/null", "w") as output:
        for step, (ids, mask, labels) in enumerate(steps, 1):
            valid = (labels >= 0).sum().item()
            ids, mask, labels = (part[rank::world].contiguous() for part in (ids, mask, labels))
            if arguments.padding == "longest":
                source, target = longest(mask, labels)
                ids, mask, labels = ids[:, :source], mask[:, :source], labels[:, :target].contiguous()
            # transformers' loss averages over this rank's targets, FSDP2 the gradients over the ranks; the mean over all
            # targets, which both sides report, is neither.
            share = (labels >= 0).sum() * world / valid
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss * share
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), T5_JOB["clip_grad_norm"])
            optimizer.step()
            optimizer.zero_grad()
            mean = loss.detach() / world
            dist.all_reduce(mean)
            line = {"step": step, "loss": mean.item(), "time": time.time(), "samples": len(ids) * world}
            print(json.dumps(line), file=output, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
