"""The shapes, token files and measurements that the comparisons share. Standard library only."""
import argparse
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANKS = 2
PYTORCH = ROOT / "build/pytorch"  # a virtual environment
PACKAGES = ["torch==2.11.0", "transformers==5.17.0", "safetensors", "numpy", "sentencepiece", "protobuf", "peft==0.21.2"]


def program(text):
    """An argument that names a program."""
    found = shutil.which(text)
    if not found:
        raise argparse.ArgumentTypeError(f"there is no program {text}")
    return Path(found).absolute()


def bench_program(name):
    """One of bench/CMakeLists.txt, built beside the release."""
    folder = ROOT / "build/bench"
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release", "-B", folder, "-DTRAINYARD_BENCH=ON"],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, name], check=True, stdout=subprocess.DEVNULL)
    return folder / "bin" / name


def install_pytorch():
    done = PYTORCH / "installed"
    if done.exists() and done.read_text() == str(PACKAGES):
        return
    subprocess.run([sys.executable, "-m", "venv", PYTORCH], check=True)
    subprocess.run([PYTORCH / "bin/pip", "install", "--quiet", *PACKAGES], check=True)
    done.write_text(str(PACKAGES))


def run_in_pytorch(script):
    """From here on `script` runs in the environment that has PyTorch; no effect where it does already."""
    install_pytorch()
    if Path(sys.prefix).resolve() != PYTORCH.resolve():
        python = PYTORCH / "bin/python"
        os.execv(python, [python, script, *sys.argv[1:]])


# Of a Python that is to train beside Trainyard; its argument is the device.
PYTORCH_HERE = """
import platform, sys
import torch, transformers, safetensors
if sys.argv[1] == "cuda" and not torch.cuda.is_available():
    sys.exit(f"PyTorch {torch.__version__} sees no GPU; it is for CUDA {torch.version.cuda}")
device = torch.cuda.get_device_name(0) if sys.argv[1] == "cuda" else "the CPU"
versions = f"PyTorch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
print(f"{versions}, on {device}")
"""


def describe_pytorch(python, device):
    """The versions of a `python` that can train on `device`; ends this program with 2 where it cannot."""
    asked = subprocess.run([python, "-c", PYTORCH_HERE, device], capture_output=True, text=True)
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or [f"it ended with {asked.returncode}"]
        sys.stderr.write(f"error: {python} cannot train beside Trainyard: {said[-1]}; it needs torch, transformers and "
                         "safetensors\n")
        sys.exit(2)
    return asked.stdout.strip().splitlines()[-1]


@dataclass(frozen=True)
class Shape:
    name: str
    vocab: int
    hidden: int
    layers: int
    ff: int
    heads: int
    kv_heads: int
    head_dim: int
    rows: int  # a rank
    tokens: int  # a row
    steps: int

    def parameters(self):
        """Tied: the head is the embedding."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        norms = 2 * self.hidden + 2 * self.head_dim
        block = attention + 3 * self.hidden * self.ff + norms
        return self.vocab * self.hidden + self.layers * block + self.hidden

    def flops_per_token(self, attention=1):
        """runner/metrics/mfu.h; `attention`: the share of its pairs of tokens that count."""
        return 6 * (self.parameters() + attention * 2 * self.layers * self.heads * self.head_dim * self.tokens)

    def config(self):
        """config.json for both sides."""
        return {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": self.vocab,
            "hidden_size": self.hidden, "intermediate_size": self.ff, "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim,
            "hidden_act": "silu", "max_position_embeddings": max(2048, self.tokens), "initializer_range": 0.02, "rms_norm_eps": 1e-6,
            "rope_theta": 1000000.0, "tie_word_embeddings": True, "attention_bias": False,
        }


SHAPES = {
    "A": Shape("29.4 M: d 512, 8 layers, 2 x 512 a rank", 8192, 512, 8, 1536, 8, 4, 64, 2, 512, 12),
    "B": Shape("0.9 M: d 128, 4 layers, 8 x 128 a rank", 512, 128, 4, 384, 4, 2, 32, 8, 128, 30),
    "C": Shape("0.7 M: d 64, 10 layers, 32 x 64 a rank", 1024, 64, 10, 256, 4, 2, 16, 32, 64, 30),
}
# For a GPU: published sizes, 8192 tokens a step.
GPU_SHAPES = {
    "0.6B-1024": Shape("Qwen3-0.6B, 8 x 1024", 151936, 1024, 28, 3072, 16, 8, 128, 8, 1024, 12),
    "0.6B-4096": Shape("Qwen3-0.6B, 2 x 4096", 151936, 1024, 28, 3072, 16, 8, 128, 2, 4096, 12),
    "1.7B-1024": Shape("Qwen3-1.7B, 8 x 1024", 151936, 2048, 28, 6144, 16, 8, 128, 8, 1024, 12),
    "1.7B-4096": Shape("Qwen3-1.7B, 2 x 4096", 151936, 2048, 28, 6144, 16, 8, 128, 2, 4096, 12),
}


def write_config(shape, folder):
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.json"
    config.write_text(json.dumps(shape.config(), indent=2))
    return config


def prepare(shape, folder, steps, ranks=RANKS):
    """config.json and a safetensors file of random tokens, [steps, rows of all ranks, tokens]: (config, tokens)."""
    config, tokens = write_config(shape, folder), folder / f"tokens-{steps}-{ranks}.safetensors"
    dims = [steps, shape.rows * ranks, shape.tokens]
    write_tokens(tokens, dims, random.Random(1).choices(range(shape.vocab), k=dims[0] * dims[1] * dims[2]))
    return config, tokens


def write_tokens(tokens, dims, ids):
    """`ids`, dims[0] · dims[1] · dims[2] numbers, as the tokens of a training."""
    ids = struct.pack(f"<{len(ids)}i", *ids)
    names = ("train.input_ids", "train.labels")  # labels are not shifted: the model does that
    header = json.dumps({name: {"dtype": "I32", "shape": dims, "data_offsets": [i * len(ids), (i + 1) * len(ids)]}
                         for i, name in enumerate(names)}).encode()
    header += b" " * (-len(header) % 8)
    tokens.write_bytes(struct.pack("<Q", len(header)) + header + ids + ids)


def text_tokens(shape, folder, steps):
    """So many steps of Shakespeare, a token a byte, from its beginning and again where it ends: the file."""
    corpus = (ROOT / "runner/assemble/demo/shakespeare.txt").read_bytes()
    tokens, count = folder / f"text-{steps}.safetensors", steps * shape.rows * shape.tokens
    write_tokens(tokens, [steps, shape.rows, shape.tokens], (corpus * (count // len(corpus) + 1))[:count])
    return tokens


# Of bench/compare_t5, both sides: the job of kustomize/overlays/t5-summarization.
T5_JOB = {"lr": 1e-5, "betas": (0.9, 0.999), "weight_decay": 0.01, "clip_grad_norm": 1.0, "source": 512, "target": 128,
          "rows": 4}


ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # a rank


@dataclass
class Run:
    tokens_per_second: float
    first_step: float  # seconds from the start of the process to the end of its first step
    peak_bytes: int  # the largest of any rank: resident, or what its process held of a GPU's memory
    losses: list


def run_recorded(command, record, log, environment=ONE_THREAD):
    """Runs `command`, which leaves a JSON line a step in `record`: the lines, when it started, and the largest resident
    size of any rank in bytes."""
    record.unlink(missing_ok=True)
    start = time.time()
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=Path(log).parent,
                                   env={**os.environ, **environment})
    # One that hangs in a part of bench/gpu/run leaves the other side its time.
    seconds = float(os.environ.get("TRAINYARD_PART_SECONDS", 0)) or threading.TIMEOUT_MAX
    limit = threading.Timer(0.4 * seconds, process.kill)
    limit.daemon = True  # else whoever interrupts the bench waits for it
    limit.start()
    _, status, usage = os.wait4(process.pid, 0)  # the usage of the ranks comes with it: the launcher waited for them
    limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {process.returncode}\n{Path(log).read_text()[-3000:]}")
    return [json.loads(line) for line in record.read_text().splitlines()], start, usage.ru_maxrss * 1024


def measure(command, record, shape, log, ranks=RANKS, device=None, environment={}):
    """`device` is told where a rank has it, or all the machine's threads, to itself."""
    lines, start, peak = run_recorded(command, record, log, environment if device else {**ONE_THREAD, **environment})
    if device == "cuda":
        peak = max(line["memory_bytes"] for line in lines)
    times = [line["time"] for line in lines]
    seconds = [after - before for before, after in zip(times[1:], times[2:])]  # the first two steps warm up
    return Run(tokens_per_second=shape.rows * ranks * shape.tokens / statistics.median(seconds),
               first_step=times[0] - start, peak_bytes=peak, losses=[line["loss"] for line in lines])


def trainyard_command(binary, config, tokens, folder, steps, ranks=RANKS, extra=()):
    """`config`: a config.json, a folder with weights beside it, or the name of a preset."""
    if isinstance(config, str):
        model = "--model.preset"
    else:
        model = "--model.init_from" if config.is_dir() else "--model.config"
    return [binary, "launch", "--nproc-per-node", str(ranks), "train", model, config, "--data.tokens", tokens,
            "--training.steps", str(steps), "--optimizer.decay", "constant", "--checkpoint.enabled", "false",
            "--metrics.dir", folder / "ours", *extra]


def pytorch_command(config, tokens, folder, ranks=RANKS, extra=(), python=PYTORCH / "bin/python"):
    # One rank needs no launcher, whose workers would also outlive whoever ends it. The address: else it asks for that of
    # this machine's name, without end where nobody knows it.
    launcher = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1",
                                      "--nproc-per-node", str(ranks)]
    return [python, *launcher, ROOT / "bench/pytorch_fsdp2.py", "--config", config, "--tokens", tokens, "--output",
            folder / "theirs.jsonl", *extra]


# For matrix_peak(); its argument is the device.
PYTORCH_PRODUCT = """
import sys, torch
from torch.utils.benchmark import Timer
size = 8192 if sys.argv[1] == "cuda" else 1024
a, b = torch.randn(2, size, size, dtype=torch.bfloat16, device=sys.argv[1])
seconds = min(Timer("a @ b", globals=globals()).blocked_autorange(min_run_time=0.5).times)
print("matrix peak", 2 * size**3 / seconds * 1e-9, "GFLOP/s")
"""


def matrix_peak(command, processes=1):
    """FLOP/s of all together of so many processes of `command` at once: ops_bench, or PyTorch's product."""
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit(f"{' '.join(map(str, command))}: failed")
    rates = [text.split("matrix peak ")[1].replace(",", " ").split()[:2] for text in said]
    return sum(float(rate) * {"GFLOP/s": 1e9, "TFLOP/s": 1e12}[unit] for rate, unit in rates)
