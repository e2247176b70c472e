"""Writes the checkpoints that distcp_test.cpp reads, with torch 2.15: python3 make.py"""
import os
import pathlib
import shutil

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from safetensors.torch import save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

HERE = pathlib.Path(__file__).parent
WORLD = 3


def write(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29561")
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    mesh = init_device_mesh("cpu", (WORLD,))
    torch.manual_seed(0)
    whole = {"layers.0.weight": torch.randn(7, 5), "layers.0.bias": torch.randn(7),
             "columns": torch.randn(4, 6).to(torch.bfloat16), "one": torch.randn(2, 3)}
    cut = {name: distribute_tensor(tensor, mesh, [Shard(1 if name == "columns" else 0)]) if name != "one" else tensor
           for name, tensor in whole.items()}
    dcp.save(cut, checkpoint_id=HERE / "flat")
    dcp.save({"model": cut, "optim": {"layers.0.weight": {"exp_avg": torch.zeros(2)}}, "step": 5},
             checkpoint_id=HERE / "nested")
    if rank == 0:
        save_file({name: tensor.float() for name, tensor in whole.items()}, HERE / "whole.safetensors")
    dist.destroy_process_group()


if __name__ == "__main__":
    for name in ("flat", "nested"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    mp.spawn(write, nprocs=WORLD)
