#!/usr/bin/env python3
"""Prints the table of nf4_test.cpp: what torchao makes of the same matrices.

  pip install torch torchao      # CPU; the table is of torch 2.15 and torchao 0.18
  tests/unit/ops/nf4_reference.py

Hashes are FNV-1a of the bytes.
"""
import numpy
import torch
from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import to_nf4


def fnv(tensor):
    value = 0xCBF29CE484222325
    for byte in tensor.numpy().tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:#018x}"


def matrix(rows, columns):
    """Numbers without pattern, of another size in each row; exact in float32."""
    i = numpy.arange(rows * columns, dtype=numpy.uint64)
    drawn = (i * 2654435761 % 2**32 >> 8).astype(numpy.float32) / 2**24 - 0.5
    of_row = (1 + i // columns % 7).astype(numpy.float32)
    return torch.from_numpy(drawn * of_row).reshape(rows, columns)


torch.set_num_threads(1)  # of which the order of a mean is part, from 32,768 blocks on
for rows, columns in ((128, 128), (64, 1024), (192, 256), (1024, 832), (1920, 1024)):
    packed = to_nf4(matrix(rows, columns))
    whole = packed.get_original_weight()
    fields = [fnv(packed.quantized_data), fnv(packed.quantized_scalers), fnv(packed.quantization_factor), fnv(whole),
              fnv(whole.to(torch.bfloat16).view(torch.int16)), f"{packed.scaler_mean.item().hex()}F"]
    print(f"    {{{rows}, {columns}, {', '.join(fields)}}},")
