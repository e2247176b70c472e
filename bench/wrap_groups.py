"""What PyTorch's size_based_auto_wrap_policy groups in small Hugging Face models: the reference of tests/unit/train/wrap_test.cpp.

    pip install torch transformers && python3 bench/wrap_groups.py > tests/unit/train/wrap_groups.json

One record for each model and min_num_params: the groups, innermost first, each the names of its parameters, the root's last.
"""
import functools
import json

import torch
from torch.distributed.fsdp.wrap import _recursive_wrap, size_based_auto_wrap_policy
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

SHAPE = dict(vocab_size=40, hidden_size=12, intermediate_size=48, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=6,
             tie_word_embeddings=False)
LIMITS = [100, 200, 300, 500, 600, 700, 1000, 1200, 1500, 1800, 2000, 2500, 3000, 4000, 5000, 10000]


def groups_of(model, least):
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    taken, groups = set(), []

    class Recorded(torch.nn.Module):
        def __init__(self, module, **_):
            super().__init__()
            self.module = module
            own = [names[id(p)] for p in module.parameters() if id(p) not in taken]
            taken.update(id(p) for p in module.parameters())
            groups.append(own)

    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=least)
    # As FullyShardedDataParallel does: its constructor wraps the children, then takes what is left itself.
    _recursive_wrap(model, policy, Recorded, set(), set(), only_wrap_children=True)
    groups.append([name for key, name in names.items() if key not in taken])
    return groups


def main():
    records = []
    for family, model, config in (("llama", LlamaForCausalLM, LlamaConfig), ("qwen3", Qwen3ForCausalLM, Qwen3Config)):
        for least in LIMITS:
            with torch.device("meta"):
                records.append({"family": family, "min_num_params": least, "groups": groups_of(model(config(**SHAPE)), least)})
    print(json.dumps({"shape": SHAPE, "torch": torch.__version__, "records": records}, indent=None, separators=(",", ":")))


if __name__ == "__main__":
    main()
