#!/usr/bin/env python3
"""Runs the commands of a page of documentation, in order, in an empty folder of their own.

usage: run_page.py PAGE.md BIN_FOLDER
       run_page.py --self-test

The word after a fence's backticks says what is done with the block:
  sh               run by bash -euo pipefail; must end with exit code 0
  sh exit=2        run; must end with that code
  sh notest        not run: only blocks that NOT_RUN below gives a reason for
  yaml file=NAME   written to NAME
Every page finds a text in corpus.txt; PREPARE makes what a page takes for granted beyond that. A block of another kind
that holds a command is an error, so that none escapes.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CORPUS = SOURCE / "runner/assemble/demo/shakespeare.txt"
SECONDS_A_BLOCK = 300  # a loaded machine is no failure, a hang is

# (page, first line of the block without a comment behind it): why it cannot run here.
NOT_RUN = {
    ("README.md", "./quickstart"): "it builds the tree that this test is a part of; tests/setup/clean_root runs it",
    ("README.md", "./check"): "it runs this test",
    ("hub.md", "trainyard download Qwen/Qwen3-0.6B"): "it takes a network; tests/e2e/hub_test.py has a hub of its own",
    ("hub.md", "trainyard launch --nproc-per-node 2 train --model.init_from Qwen/Qwen3-0.6B --data.tokenizer Qwen/Qwen3-0.6B --data.path corpus.txt"):
        "it takes a network; tests/e2e/hub_test.py has a hub of its own",
    ("hub.md", "trainyard train --config run.yaml --data.path Salesforce/wikitext --data.config wikitext-103-raw-v1 --data.split train"):
        "it takes a network; tests/e2e/hub_test.py has a hub of its own",
    **{("s3.md", first): "it takes a network; tests/e2e/s3_test.py has a server of its own" for first in (
        "trainyard launch --nproc-per-node 8 train --model.init_from s3://models/qwen3-0.6b --data.tokenizer s3://models/qwen3-0.6b \\",
        "export AWS_ENDPOINT_URL=http://minio:9000 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…")},
    ("coming-from-pytorch.md", "#!/bin/bash"): "it is a batch script of Slurm",
    ("training.md", "# on the first machine"): "it takes two machines",
    ("operator.md", "kubectl apply -k manifests"):
        "it takes a cluster; tests/operator/manifests_test.py applies them",
    ("operator.md", "sed 's|image: .*|image: registry.example.org/team/pytorch:2|' manifests/examples/python.yaml | kubectl apply -f -"):
        "it takes a cluster and an image with PyTorch",
    ("faults.md", "kubectl get pytorchjobs"): "it takes a cluster; tests/cluster/walk_test.py does it",
    ("metrics.md", "kubectl get --raw /api/v1/namespaces/kubeflow/services/training-operator:8080/proxy/metrics"):
        "it takes a cluster; bench/operator/prometheus scrapes the operator",
    ("operator.md", "kubectl apply -k kustomize/overlays/elastic"): "it takes a cluster; tests/operator/kustomize_test.py scales it",
    ("kustomize.md", "kubectl apply -k kustomize/overlays/cpu-demo"): "it takes a cluster; tests/cluster/walk_test.py does it",
    ("testing.md", "./cluster up && tests/cluster/walk_test.py"):
        "the tests labelled cluster run it",
    **{("quickstart-cluster.md", first): "it takes a cluster; tests/cluster/walk_test.py does it" for first in (
        "kubectl apply -k manifests", "kubectl apply -k kustomize/overlays/cpu-demo",
        "kubectl logs -f train-cpu-demo-master-0", "kubectl describe pytorchjob train-cpu-demo",
        "kubectl apply -k kustomize/overlays/shared-storage", "kubectl delete -k kustomize/overlays/cpu-demo")},
    ("quickstart-cluster.md", "./cluster up"): "it takes root",
    ("quickstart-cluster.md", "./cluster up --context kind-kind"):
        "it takes kind",
    ("kustomize.md", "kubectl kustomize kustomize/overlays/cpu-demo | trainyard-operator run -f -"): "it takes kubectl",
    ("kustomize.md", "kubectl kustomize . | trainyard-operator validate -f -"): "it takes kubectl",
    ("images.md", "container/build"):
        "tests/cluster/images_test.py builds them",
    ("images.md", "cmake --preset cuda -DTRAINYARD_CUDA_ARCHITECTURES=\"80;89;90a;100;120\" && ninja -C build/cuda trainyard"): "it builds with CUDA again",
    ("images.md", "docker run --rm --gpus all --shm-size 16g --ulimit memlock=-1 --volume \"$PWD:/workspace\" --user \"$(id -u)\" \\"):
        "it takes docker, and GPUs",
    ("images.md", "container/build runner-cuda"):
        "tests/cluster/images_test.py builds them",
    ("library.md", "cmake --preset release && ninja -C build/release trainyard_library"):
        "tests/library/library_test.py installs the library and builds the sample",
    ("clients.md", "bench/cluster/sdk"):
        "it takes root, and a package from PyPI",
    ("performance.md", "bench/operator/webhook"):
        "a bench",
    ("gpu.md", "ninja -C build/cuda tensor_test ops_test comm_test comm_conformance_test train_test model_parity_test trajectory_test"): "it takes a GPU",
    ("gpu.md", "cmake --preset cuda && ninja -C build/cuda trainyard ops_bench"): "benches, on a GPU",
    ("gpu.md", "container/packages/cuda"): "./check brings CUDA and builds with it",
    ("gpu.md", "bench/gpu/bundle"): "a bench, which builds with CUDA",
    ("gpu.md", "tar --extract --file trainyard-gpu.tar.xz && cd trainyard-gpu"): "it takes a GPU",
    ("gpu.md", 'cp build/gpu/results.txt "$OUT" 2>/dev/null; python3 -m tarfile -e build/gpu/trainyard-gpu.tar.xz /tmp &&'):
        "it takes a GPU",
    ("gpu.md", "bench/gpu/run environment"): "it takes a GPU; tests/e2e/gpu_bundle_test.py runs the command",
    ("gpu.md", "trainyard launch --nproc-per-node gpu comm-bench all_reduce -b 8 -e 1G -f 4"): "it takes GPUs",
    ("gpu.md", "for node in 0 1; do"): "it takes a GPU; tests/unit/train/one_gpu_training_test.cpp does it there",
    ("storage.md", "aws s3 sync /checkpoints/run-1 s3://bucket/run-1 --exclude '*' --include 'step-*/*'"): "it takes a bucket",
    ("testing.md", "./check --fast"): "it runs this test",
    ("testing.md", "./check --only tsan"): "it builds another preset",
    ("testing.md", "TRAINYARD_SEED=42 TRAINYARD_FAULTS_LOGS=build/faults /usr/bin/python3 tests/faults/faults_test.py \\"):
        "the tests labelled operator run it",
    ("testing.md", "tests/operator/control_plane run --crd manifests/crd -- kubectl get crds"):
        "the tests labelled operator run it",
    ("testing.md", "tests/setup/clean_root"): "it takes a quarter of an hour and root",
    ("testing.md", "cmake --preset asan && ninja -C build/asan shard_test"): "it builds the tree again",
}

TRAIN = "trainyard train --demo --training.steps 2 --training.batch_size 2 --sample.max_new_tokens 8"
PREPARE = {
    "launching.md": "trainyard train --demo --print-config >x.yaml",
    "checkpoints.md": f"{TRAIN} --checkpoint.dir checkpoints --checkpoint.interval 10 --training.steps 50",
}

FENCE = re.compile(r"^( *)```(.*)$")
COMMAND = re.compile(r"^(\$ )?(trainyard-operator |trainyard (train|launch|evaluate|generate|tokenizer|checkpoint|config)\b(?!:)|\./(quickstart|check)\b|mpirun )", re.M)


def blocks_of(text):
    """(line, words after the backticks, content) of each fenced block."""
    found, start = [], None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if match and start is None:
            start, indent, words, content = number, match[1], match[2].split(), []
        elif match and not match[2]:
            found.append((start, words, "".join(each.removeprefix(indent) + "\n" for each in content)))
            start = None
        elif start is not None:
            content.append(line)
    return found


def command_of(content):
    """The first line of a block, without a comment behind it."""
    return re.sub(r"(?<=\S)\s+#.*", "", content.split("\n", 1)[0])


def unmatched_reasons():
    """What is amiss between NOT_RUN and the blocks marked `notest`, a line each: known here in seconds, before any page runs."""
    pages = {"README.md": SOURCE / "README.md", **{page.name: page for page in (SOURCE / "docs").glob("*.md")}}
    blocks = {(name, command_of(content)) for name, page in pages.items()
              for _, words, content in blocks_of(page.read_text()) if "notest" in words}
    return [f"NOT_RUN gives no reason for {each}" for each in sorted(blocks - set(NOT_RUN))] + [
        f"NOT_RUN gives a reason for {each}, which is no block" for each in sorted(set(NOT_RUN) - blocks)]


def environment_of(bin_folder, home):
    keep = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "OMP_WAIT_POLICY"}}
    return keep | {"PATH": f"{bin_folder}:{keep.get('PATH', '')}", "HOME": str(home),
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run_block(content, folder, environment):
    """(exit code, output)"""
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", content], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=SECONDS_A_BLOCK)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        return None, output


def run_page(name, text, folder, environment):
    """What went wrong first; None where all went well. Also the number of blocks that ran."""
    ran = 0
    if name in PREPARE:
        code, output = run_block(PREPARE[name], folder, environment)
        if code != 0:
            return f"{name}: preparing ended with {code}:\n{output}", ran
    for line, words, content in blocks_of(text):
        where = f"{name}:{line}"
        language = words[0] if words else ""
        options = dict(word.partition("=")[::2] for word in words[1:])
        if language == "yaml" and "file" in options:
            (folder / options["file"]).write_text(content)
        elif language != "sh":
            if COMMAND.search(content):
                return f"{where}: a command in a block that is not ```sh", ran
        elif "notest" in options:
            if (name, command_of(content)) not in NOT_RUN:
                return f"{where}: NOT_RUN in tests/docs/run_page.py gives no reason for this block", ran
        else:
            code, output = run_block(content, folder, environment)
            ran += 1
            if code != int(options.get("exit", 0)):
                ended = f"did not end within {SECONDS_A_BLOCK} s" if code is None else f"ended with exit code {code}"
                return f"{where}: {ended}:\n{content}--\n{output[-3000:]}", ran
    return None, ran


def run_in_folder(name, text, bin_folder):
    with tempfile.TemporaryDirectory(prefix="trainyard-docs-") as temporary:
        folder = Path(temporary)
        shutil.copy(CORPUS, folder / "corpus.txt")
        return run_page(name, text, folder, environment_of(bin_folder, folder))


def self_test():
    pages = {  # text, and what must be said of it
        "```sh\ntouch a\n```\n\n  ```sh\n  test -e a && test -s corpus.txt\n  ```\n": None,
        "```yaml file=b.yaml\nk: 1\n```\n```sh\ngrep -q 'k: 1' b.yaml\n```\n": None,
        "```sh exit=3\nexit 3\n```\n": None,
        "```sh\ntrue\nfalse | true\ntrue\n```\n": "x.md:1: ended with exit code 1",
        "```sh exit=3\ntrue\n```\n": "x.md:1: ended with exit code 0",
        "text\n```sh notest\nreboot\n```\n": "x.md:2: NOT_RUN",
        "```\n$ trainyard train --demo\n```\n": "x.md:1: a command in a block",
    }
    failures = []
    for text, expected in pages.items():
        problem, _ = run_in_folder("x.md", text, Path("/nonexistent"))
        if (problem is not None) if expected is None else expected not in (problem or ""):
            failures.append(f"self-test: {text!r}: expected {expected!r}, found {problem!r}")
    failures += unmatched_reasons()
    return "\n".join(failures) or None


def main(arguments):
    if arguments == ["--self-test"]:
        problem = self_test()
    elif len(arguments) == 2:
        page = Path(arguments[0])
        problem, ran = run_in_folder(page.name, page.read_text(), Path(arguments[1]).resolve())
        print(f"{page.name}: {ran} blocks ran")
    else:
        sys.exit(__doc__)
    print(problem or "", end="\n" if problem else "")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
