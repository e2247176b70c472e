"""The same training as `trainyard train`, by PyTorch's FSDP2 over gloo or, on GPUs, NCCL: what bench/compare_pytorch and
bench/strategies run under torchrun, or as it is where one rank is all. Its options are FSDP2's own strategies, --help names
them.

Each step leaves a line {"step", "loss", "time", "tokens"} in --output: as metrics.jsonl, with which it is compared; on a
GPU with "memory_bytes", what PyTorch's allocator has taken at most. As there, a step's loss is read when the next step is
queued, and "time" is when it was there.
"""
import argparse
import contextlib
import functools
import json
import os
import time

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               loss_parallel, parallelize_module)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.loss.loss_utils import ForCausalLMLoss

KEPT = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default}


def keep_products(context, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op in KEPT else CheckpointPolicy.PREFER_RECOMPUTE


def checkpointed(block, mode):
    wrap = functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
    if mode == "selective":
        return wrap(block, context_fn=functools.partial(create_selective_checkpoint_contexts, keep_products))
    return wrap(block)


def build(arguments):
    torch.manual_seed(0)
    if os.path.isdir(arguments.config):
        model = Qwen3ForCausalLM.from_pretrained(arguments.config, attn_implementation="sdpa", dtype=torch.float32)
        model.to(arguments.device)
    else:
        with torch.device(arguments.device):
            model = Qwen3ForCausalLM(Qwen3Config.from_pretrained(arguments.config, attn_implementation="sdpa"))
    if arguments.lora:
        model = adapted(model, arguments)
    layers = layers_of(model)
    for i in range(0, len(layers), 2 if arguments.checkpointing == "every_n" else 1):
        if arguments.checkpointing:
            layers[i] = checkpointed(layers[i], arguments.checkpointing)
    if arguments.compile:
        for i, block in enumerate(layers):
            layers[i] = torch.compile(block)
        if not arguments.eager_loss:
            model.loss_function = torch.compile(ForCausalLMLoss)
    if arguments.tensor:
        return tensor_parallel(model)
    return DistributedDataParallel(model) if arguments.ddp else sharded(model, arguments)


def layers_of(model):
    """PEFT puts two modules around what it adapts."""
    return (model.base_model.model if hasattr(model, "peft_config") else model).model.layers


def adapted(model, arguments):
    from peft import LoraConfig, get_peft_model  # the other benches do without
    targets = arguments.lora_targets
    return get_peft_model(model, LoraConfig(r=arguments.lora, lora_alpha=arguments.lora_alpha, lora_dropout=0.0,
                                            target_modules=targets if targets == "all-linear" else targets.split(",")))


def sharded(model, arguments):
    world = dist.get_world_size()
    options = {"reshard_after_forward": arguments.reshard_over or not arguments.keep_gathered,
               "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
               if arguments.bf16 else MixedPrecisionPolicy(),
               "offload_policy": CPUOffloadPolicy(pin_memory=False) if arguments.offload else OffloadPolicy()}
    mesh = (world,) if arguments.replicate == 1 else (arguments.replicate, world // arguments.replicate)
    names = ("shard",) if len(mesh) == 1 else ("replicate", "shard")
    options["mesh"] = init_device_mesh(arguments.device, mesh, mesh_dim_names=names)
    if not arguments.one_group:
        for block in layers_of(model):
            fully_shard(block, **options)
    if options["reshard_after_forward"] is True:
        del options["reshard_after_forward"]  # by itself the root stays gathered from forward to backward
    return fully_shard(model, **options)


def tensor_parallel(model):
    """As torchtitan lays Qwen3 out over ranks: with sequence parallelism and a loss that stays split."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tensor",))
    tokens, heads = SequenceParallel(), SequenceParallel(sequence_dim=2, use_local_output=True)
    whole = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    whole_by_name = PrepareModuleInput(input_kwarg_layouts={"hidden_states": Shard(1)},
                                       desired_input_kwarg_layouts={"hidden_states": Replicate()})
    parallelize_module(model, mesh, {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "model.norm": tokens,
        "lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
        "model.layers.*.input_layernorm": tokens, "model.layers.*.post_attention_layernorm": tokens,
        "model.layers.*.self_attn": whole_by_name,
        "model.layers.*.self_attn.q_norm": heads, "model.layers.*.self_attn.k_norm": heads,
        "model.layers.*.self_attn.[qkv]_proj": ColwiseParallel(),
        "model.layers.*.self_attn.o_proj": RowwiseParallel(output_layouts=Shard(1)),
        "model.layers.*.mlp": whole,
        "model.layers.*.mlp.gate_proj": ColwiseParallel(), "model.layers.*.mlp.up_proj": ColwiseParallel(),
        "model.layers.*.mlp.down_proj": RowwiseParallel(output_layouts=Shard(1))})
    model.lm_head.weight = model.model.embed_tokens.weight
    return model


def loss_of(model, ids, labels, arguments):
    """transformers' loss averages over this rank's tokens. The rows have equally many, so the mean over ranks that
    FSDP2 takes of the gradients is the mean over all tokens."""
    if not arguments.tensor:
        rank, world = dist.get_rank(), dist.get_world_size()
        return model(input_ids=ids[rank::world], labels=labels[rank::world], use_cache=False).loss
    positions = torch.arange(ids.shape[1]).unsqueeze(0)  # the embedding's output has a part of them
    logits = model(input_ids=ids, position_ids=positions, use_cache=False).logits
    next_labels = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), next_labels.flatten())


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True, help="a config.json, or a folder with weights beside it")
    for name in ("--tokens", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile of each block and of the loss")
    parser.add_argument("--eager-loss", action="store_true", help="of the blocks alone")
    parser.add_argument("--ddp", action="store_true")
    parser.add_argument("--keep-gathered", action="store_true", help="reshard_after_forward=False")
    parser.add_argument("--reshard-over", type=int, default=0, help="reshard_after_forward=N")
    parser.add_argument("--replicate", type=int, default=1, help="copies, HSDP")
    parser.add_argument("--tensor", action="store_true", help="tensor parallelism over all ranks in place of FSDP2")
    parser.add_argument("--one-group", action="store_true", help="fully_shard of the whole model alone")
    parser.add_argument("--offload", action="store_true", help="CPUOffloadPolicy")
    parser.add_argument("--lora", type=int, default=0, help="rank of PEFT's adapters, which alone are trained")
    parser.add_argument("--lora-alpha", type=int, default=8)
    parser.add_argument("--lora-targets", default="q_proj,v_proj", help="with commas between, or all-linear")
    parser.add_argument("--bf16", action="store_true", help="param_dtype bfloat16, reduce_dtype float32")
    parser.add_argument("--checkpointing", choices=["full", "selective", "every_n"], help="every_n: every second block")
    parser.add_argument("--offload-activations", action="store_true", help="save_on_cpu")
    return parser.parse_args()


def join(on_gpu):
    """This rank's process group: torchrun's, else of this process alone."""
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    alone = {}
    if "RANK" not in os.environ:
        alone = {"store": dist.TCPStore("127.0.0.1", 0, 1, is_master=True), "rank": 0, "world_size": 1}
    dist.init_process_group("nccl" if on_gpu else "gloo", **alone)


class Line:
    """A step's line, whose loss is on its way to the host."""

    def __init__(self, step, loss, tokens):
        dist.all_reduce(loss)
        self.values = {"step": step, "tokens": tokens}
        self.loss = loss.to("cpu", non_blocking=True)  # into pinned memory
        self.is_there = None
        if loss.is_cuda:
            self.is_there = torch.cuda.Event()
            self.is_there.record()
            self.values["memory_bytes"] = torch.cuda.max_memory_reserved()
        else:
            self.values["time"] = time.time()

    def write(self, output):
        if self.is_there:
            self.is_there.synchronize()
            self.values["time"] = time.time()
        self.values["loss"] = self.loss.item() / dist.get_world_size()
        print(json.dumps(self.values), file=output, flush=True)


def main():
    arguments = parse()
    on_gpu = arguments.device == "cuda"
    join(on_gpu)
    rank = dist.get_rank()
    model = build(arguments)
    trained = [each for each in model.parameters() if each.requires_grad]
    groups = [{"params": [each for each in trained if (each.dim() >= 2) == decays],
               "weight_decay": 0.1 if decays else 0.0} for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=on_gpu)
    waiting = torch.autograd.graph.save_on_cpu if arguments.offload_activations else contextlib.nullcontext
    data = load_file(arguments.tokens)
    steps = zip(*(data[name].long().to(arguments.device) for name in ("train.input_ids", "train.labels")))

    with open(arguments.output if rank == 0 else "/dev/null", "w") as output:
        before = None
        for step, (ids, labels) in enumerate(steps, 1):
            counting = CommDebugMode() if arguments.tensor and step == 1 else contextlib.nullcontext()
            with waiting(), counting, loss_parallel() if arguments.tensor else contextlib.nullcontext():
                loss = loss_of(model, ids, labels, arguments)
                loss.backward()
            if arguments.tensor and step == 1 and rank == 0:
                print("collectives:", {str(op): count for op, count in counting.get_comm_counts().items()}, flush=True)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            line = Line(step, loss.full_tensor().detach() if arguments.tensor else loss.detach(), ids.numel())
            if before:
                before.write(output)
            before = line
        before.write(output)
    dist.barrier()
    if arguments.tensor:
        os._exit(0)  # gloo's threads of the functional collectives do not end, and the process would abort
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
