#!/usr/bin/env python3
"""Models and tokenizers by their names on the Hugging Face hub, against a small server on 127.0.0.1 that speaks its protocol.
Where huggingface_hub is installed it finds offline what was downloaded here, and what it downloaded is found here.

usage: hub_test.py TRAINYARD
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

from hub_server import MODEL, Hub, Repository, weights
from program_case import ProgramCase

TOKEN = "hf_a-secret-of-the-test"


def lines_of(text):
    return json.dumps({"text": text * 200}).encode() + b"\n"


DATA_SET = {"README.md": b"""---
license: mit
configs:
- config_name: poems
  default: true
  data_files:
  - split: train
    path: poems/*-of-00002.jsonl
  - split: held
    path: poems/held.jsonl
- config_name: prose
  data_files: prose/train.jsonl
---
# Texts
""", "poems/00000-of-00002.jsonl": lines_of("a rose "), "poems/00001-of-00002.jsonl": lines_of("is a "),
            "poems/held.jsonl": lines_of("rose "), "prose/train.jsonl": lines_of("it was "), "prose/test.jsonl": lines_of("night ")}
try:
    import huggingface_hub
except ImportError:
    huggingface_hub = None


class HubTest(ProgramCase):
    secrets = (TOKEN,)

    @classmethod
    def setUpClass(cls):
        cls.learned = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.learned.name)
        (folder / "text.txt").write_text("to be or not to be that is the question\n" * 50)
        subprocess.run([PROGRAM, "tokenizer", "train", "--input", folder / "text.txt", "--vocab-size", "257", "--output", folder],
                       check=True, capture_output=True)
        cls.files = {"config.json": json.dumps(MODEL).encode(), "README.md": b"# tiny\n", "model.safetensors": weights(),
                     "tokenizer.json": (folder / "tokenizer.json").read_bytes(), "onnx/model.bin": b"elsewhere" * 10,
                     "tokenizer_config.json": (folder / "tokenizer_config.json").read_bytes()}

    @classmethod
    def tearDownClass(cls):
        cls.learned.cleanup()

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.home = self.folder / "home"
        self.tiny = Repository(self.files, branches=("main", "refs/pr/1"))
        self.hub = Hub({"org/tiny": self.tiny, "org/private": Repository(self.files, token=TOKEN),
                        "org/gated": Repository(self.files, token=TOKEN, gated=True),
                        "org/no-weights": Repository({"config.json": b"{}"}),
                        "datasets/org/texts": Repository(DATA_SET),
                        "datasets/org/plain": Repository({name: body for name, body in DATA_SET.items() if name != "README.md"})},
                       renamed={"org/old": "org/tiny"})

    def tearDown(self):
        self.hub.stop()
        self.scratch.cleanup()

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        return kept | {"HF_ENDPOINT": self.hub.url(), "HF_HOME": str(self.home), "no_proxy": "*"} | more

    def cache(self, repo="org/tiny"):
        return self.home / "hub" / ("models--" + repo.replace("/", "--"))

    def train(self, *settings, **more):
        (self.folder / "text.txt").write_text("to be or not to be " * 200)
        return self.run_well("train", *settings, "--data.path", "text.txt", "--data.append_eos", "false",
                             "--training.sequence_length", 16, "--training.batch_size", 2, "--training.steps", 2, "--device", "cpu",
                             **more)

    def test_the_cache_is_as_huggingface_hub_has_it(self):
        printed = self.run_well("download", "org/tiny").stdout.strip()
        snapshot = self.cache() / "snapshots" / self.tiny.commit
        self.assertEqual(printed, str(snapshot))
        self.assertEqual((self.cache() / "refs" / "main").read_text(), self.tiny.commit)
        taken = sorted(path.name for path in snapshot.iterdir())
        self.assertEqual(taken, ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
        for name in taken:
            self.assertEqual(os.readlink(snapshot / name), f"../../blobs/{self.tiny.etag(name)}")
            self.assertEqual((snapshot / name).read_bytes(), self.files[name])
            self.assertTrue((self.home / "hub" / ".locks" / "models--org--tiny" / f"{self.tiny.etag(name)}.lock").exists())
        self.assertEqual(list((self.cache() / "blobs").glob("*.incomplete")), [])
        self.hub.asked.clear()
        self.run_well("download", "org/tiny")
        self.assertEqual(len(self.hub.asked), 1, "all is there: one question, what main is")
        self.assertEqual(self.hub.storage.paths("GET"), [f"/{self.tiny.etag('model.safetensors')}?signed=yes"])
        self.run_well("download", "org/tiny@refs/pr/1", "--all")
        self.assertEqual((self.cache() / "refs" / "refs" / "pr" / "1").read_text(), self.tiny.commit)
        self.assertEqual(os.readlink(snapshot / "onnx" / "model.bin"), f"../../../blobs/{self.tiny.etag('onnx/model.bin')}")
        self.run_well("download", "org/texts", "--repo-type", "dataset")
        self.assertTrue((self.home / "hub" / "datasets--org--texts" / "refs" / "main").exists())

    def test_repositories_that_cannot_be_read(self):
        self.fails(2, ["org/missing", "there is no model", "without a token"], "download", "org/missing")
        self.fails(2, ["org/private", "or it is private", "HF_TOKEN"], "download", "org/private")
        self.fails(2, ["org/private", "the token that was sent"], "download", "org/private", HF_TOKEN="hf_other")
        self.fails(2, ["org/gated", "is gated", "ask for access", "HF_TOKEN"], "download", "org/gated")
        self.fails(2, ["org/tiny@v9", "no revision 'v9'"], "download", "org/tiny", "--revision", "v9")
        self.fails(2, ["org/no-weights", "has no weights"], "download", "org/no-weights")
        self.fails(2, ["'tiny' is no name", "org/name"], "download", "tiny")
        self.fails(2, ["a token has no spaces"], "download", "org/tiny", HF_TOKEN="two words")
        self.fails(2, ["HF_HUB_ETAG_TIMEOUT is 'soon'"], "download", "org/tiny", HF_HUB_ETAG_TIMEOUT="soon")
        self.fails(2, ["cannot be reached", "HF_HUB_OFFLINE=1"], "download", "org/tiny", HF_ENDPOINT="http://127.0.0.1:1")

    def test_a_token_goes_to_the_hub_alone(self):
        self.run_well("download", "org/private", HF_TOKEN=TOKEN)
        (self.home / "token").write_text(TOKEN + "\n")
        self.run_well("download", "org/gated")
        self.run_well("download", "--repo_id", "org/private", "--all", "--hf_token", TOKEN, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        self.assertEqual({token for _, _, token, _ in self.hub.asked}, {f"Bearer {TOKEN}"})
        self.assertEqual({token for _, _, token, _ in self.hub.storage.asked}, {None})
        (self.home / "token").unlink()
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(TOKEN.encode(), path.read_bytes(), path)
        self.fails(2, ["gated"], "download", "org/gated", "--local_dir", "new", HF_HUB_DISABLE_IMPLICIT_TOKEN="1", HF_TOKEN=TOKEN)

    def test_a_new_name_is_told_once(self):
        ended = self.run_well("download", "org/old")
        self.assertEqual(ended.stderr.count("org/old is now called org/tiny"), 1, ended.stderr)
        self.assertTrue((self.cache("org/old") / "snapshots" / self.tiny.commit / "config.json").exists())

    def test_a_cut_connection_goes_on_where_it_ended(self):
        self.hub.storage.cuts, self.hub.storage.cut_after = 2, 10000
        self.run_well("download", "org/tiny")
        ranges = [asked for _, _, _, asked in self.hub.storage.asked]
        self.assertEqual(ranges, [None, "bytes=10000-", "bytes=20000-"])
        self.assertEqual((self.cache() / "snapshots" / self.tiny.commit / "model.safetensors").read_bytes(), self.files["model.safetensors"])

    def test_another_start_goes_on_too_and_what_is_wrong_is_loaded_again(self):
        blob = self.cache() / "blobs" / self.tiny.etag("model.safetensors")
        blob.parent.mkdir(parents=True)
        incomplete = blob.with_name(blob.name + ".incomplete")
        incomplete.write_bytes(self.files["model.safetensors"][:5000])
        self.run_well("download", "org/tiny")
        self.assertEqual(self.hub.storage.asked[-1][3], "bytes=5000-")
        blob.unlink()
        incomplete.write_bytes(b"x" * 5000)
        self.run_well("download", "org/tiny")
        self.assertEqual([asked for _, _, _, asked in self.hub.storage.asked[-2:]], ["bytes=5000-", None])
        self.assertEqual(hashlib.sha256(blob.read_bytes()).hexdigest(), blob.name)

    def test_a_wrong_checksum_is_an_error_and_nothing_stays(self):
        self.hub.storage.wrong = True
        self.fails(2, ["model.safetensors", "its sha256 is", "but the hub tells " + self.tiny.etag("model.safetensors")], "download", "org/tiny")
        self.assertEqual([path for path in (self.cache() / "blobs").iterdir() if path.name.startswith(self.tiny.etag("model.safetensors"))], [])

    def test_a_busy_hub_is_asked_again(self):
        self.hub.busy = 2
        self.run_well("download", "org/tiny")
        self.hub.busy = 100
        self.run_well("download", "org/tiny", HF_HUB_OFFLINE="1")
        self.fails(138, ["org/gated", "HTTP 503"], "download", "org/gated")
        self.assertIn("going on with commit", self.run_well("download", "org/tiny").stderr)

    def test_a_hub_that_hangs_is_not_waited_for_without_end(self):
        self.hub.pause.clear()
        self.fails(138, ["org/tiny", "waited 1 s for an answer", "HF_HUB_ETAG_TIMEOUT"], "download", "org/tiny", HF_HUB_ETAG_TIMEOUT="1")
        self.hub.pause.set()
        self.run_well("download", "org/tiny", "--assets", "config")
        self.hub.storage.pause.clear()
        threading.Timer(2.5, self.hub.storage.pause.set).start()
        ended = self.run_well("download", "org/tiny", HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assertIn("trying again", ended.stderr)

    def test_offline_only_the_cache_is_read(self):
        self.fails(2, ["HF_HUB_OFFLINE is set", "does not know this revision"], "download", "org/tiny", HF_HUB_OFFLINE="1")
        self.run_well("download", "org/tiny", "--assets", "config")
        self.hub.asked.clear()
        self.fails(2, ["HF_HUB_OFFLINE is set", self.tiny.commit, "has no model.safetensors"], "download", "org/tiny", HF_HUB_OFFLINE="1")
        self.fails(2, ["HF_HUB_OFFLINE is set"], "download", "--repo_id", "org/tiny", "--all", HF_HUB_OFFLINE="1")
        self.assertEqual(self.hub.asked, [])

    def test_a_commit_of_which_a_file_is_missing_is_asked_for(self):
        snapshot = pathlib.Path(self.run_well("download", "org/tiny").stdout.strip())
        pinned = f"org/tiny@{self.tiny.commit}"
        self.hub.asked.clear()
        self.run_well("download", pinned)
        self.assertEqual(self.hub.asked, [], "all is there, and what it names never changes")
        (snapshot / "tokenizer_config.json").unlink()
        self.fails(2, ["has no tokenizer_config.json"], "download", pinned, HF_HUB_OFFLINE="1")
        self.run_well("download", pinned)
        self.assertTrue((snapshot / "tokenizer_config.json").exists())

    def test_two_processes_at_once_download_each_file_once(self):
        self.hub.storage.pause.clear()
        threading.Timer(1.0, self.hub.storage.pause.set).start()
        both = [subprocess.Popen([PROGRAM, "download", "org/tiny"], env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(2)]
        for process in both:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(self.hub.storage.paths("GET")), 1)

    def test_torchtitans_flags(self):
        self.run_well("download", "--repo_id", "org/tiny", "--assets", "tokenizer", "config", "--additional_patterns", "*.md")
        folder = self.folder / "assets" / "hf" / "tiny"
        self.assertEqual(sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")),
                         ["README.md", "config.json", "tokenizer.json", "tokenizer_config.json"])
        self.assertFalse((folder / "config.json").is_symlink())
        self.run_well("download", "--repo-id", "org/tiny", "--assets=safetensors", "--local-dir", "here")
        self.assertEqual((self.folder / "here" / "tiny" / "model.safetensors").read_bytes(), self.files["model.safetensors"])
        self.hub.asked.clear()
        self.run_well("download", "--repo_id", "org/tiny", "--assets", "config")
        self.assertEqual([path for path in self.hub.paths("GET") if "resolve" in path], [], "it is there")
        self.fails(2, ["--assets is 'wieghts'", "tokenizer, safetensors, index, config"], "download", "--repo_id", "org/tiny", "--assets", "wieghts")
        self.fails(2, ["--repo_id needs --all"], "download", "--repo_id", "org/tiny")
        self.assertIn("usage", self.run_well("download", "-h").stdout.lower())

    def test_training_from_names(self):
        ended = self.train("--model.config", "org/tiny", "--data.tokenizer", "org/tiny", "--checkpoint.dir", "random")
        self.assertIn(f"understood as model.config org/tiny: commit {self.tiny.commit}", ended.stderr)
        self.assertEqual(self.hub.storage.asked, [], "weights are not needed")
        self.run_well("checkpoint", "export", "random", "--output", "exported")
        self.assertEqual(json.loads((self.folder / "exported" / "config.json").read_text())["model_type"], "llama")
        ended = self.train("--model.init_from", f"org/tiny@{self.tiny.commit}", "--data.tokenizer", "org/tiny", "--checkpoint.dir", "from")
        self.assertIn(f"understood as data.tokenizer org/tiny: commit {self.tiny.commit}", ended.stderr)
        self.assertEqual(len(self.hub.storage.paths("GET")), 1)
        saved = b"".join(path.read_bytes() for path in (self.folder / "from").rglob("*.json"))
        self.assertIn(f"model.init_from org/tiny@{self.tiny.commit}: commit {self.tiny.commit}".encode(), saved)
        self.hub.stop()
        self.train("--model.init_from", "org/tiny", "--data.tokenizer", "org/tiny", "--checkpoint.dir", "offline", HF_HUB_OFFLINE="1")
        self.hub = Hub({})

    def test_ranks_of_a_machine_look_up_once(self):
        (self.folder / "text.txt").write_text("to be or not to be " * 200)
        ended = self.run_well("launch", "--nproc-per-node", 2, "train", "--model.init_from", "org/tiny", "--data.tokenizer", "org/tiny",
                              "--data.path", "text.txt", "--data.append_eos", "false", "--training.sequence_length", 16,
                              "--training.batch_size", 2, "--training.steps", 2, "--device", "cpu", "--checkpoint.dir", "two")
        self.assertEqual(len(self.hub.storage.paths("GET")), 1, ended.stderr)
        asked = [path for path in self.hub.paths("GET") if path.startswith("/api/")]
        self.assertEqual(asked, ["/api/models/org/tiny/revision/main"], "the launcher asked what main is, and the ranks nothing")

    def train_on(self, path, *settings, **more):
        return self.run_well("train", "--model.config", "org/tiny", "--data.tokenizer", "bytes", "--data.path", path, *settings,
                             "--training.sequence_length", 16, "--training.batch_size", 2, "--training.steps", 1, "--device", "cpu",
                             "--checkpoint.enabled", "false", **more)

    def test_a_data_set_by_its_name(self):
        def files_in(ended):
            self.assertEqual(ended.stderr.count("understood as data.path org/"), 1, ended.stderr)
            return sorted(path for path in self.hub.paths("GET") if "/datasets/org/" in path and "cached" in path)

        ended = self.train_on("org/texts")
        self.assertIn("data.path org/texts (split train): commit " + self.hub.repositories["datasets/org/texts"].commit, ended.stderr)
        taken = [path.rsplit("/", 1)[1] for path in files_in(ended)]
        self.assertEqual(taken, ["README.md?cached", "00000-of-00002.jsonl?cached", "00001-of-00002.jsonl?cached"])
        snapshot = self.home / "hub" / "datasets--org--texts" / "snapshots"
        self.assertEqual([path for path in snapshot.rglob(".trainyard")], [], "what is made of it lies elsewhere")
        self.assertEqual(len(list((self.home / "trainyard").glob("*.tokens"))), 1)
        self.train_on("org/texts", "--data.split", "held", HF_HUB_ETAG_TIMEOUT="5")
        self.train_on("org/texts@main", "--data.config", "prose")
        self.hub.asked.clear()
        self.train_on("org/texts", "--data.config", "prose", HF_HUB_OFFLINE="1")
        self.assertEqual(self.hub.asked, [])
        self.train_on("org/plain", "--data.config", "prose", "--data.split", "test")

    def test_a_data_set_whose_part_is_not_there(self):
        def fails(words, path, *settings, **more):
            self.fails(2, words, "train", "--model.config", "org/tiny", "--data.tokenizer", "bytes", "--data.path", path, *settings,
                       "--training.steps", 1, "--device", "cpu", **more)

        both = ["there is no such file or folder here", "on the hub"]
        fails([*both, "no configuration 'verse'", "poems, prose"], "org/texts", "--data.config", "verse")
        fails([*both, "several configurations", "poems, prose"], "org/plain")
        fails([*both, "no files of the split 'test'"], "org/texts", "--data.split", "test")
        fails([*both, "there is no data set"], "org/missing")
        fails(["--data.split is test", "a name on the hub"], "embedded", "--data.split", "test")
        (self.folder / "org" / "texts").mkdir(parents=True)
        fails(["--data.split is test", "data.path is here"], "org/texts", "--data.split", "test")

    def test_ranks_read_the_same_data_set(self):
        ended = self.run_well("launch", "--nproc-per-node", 2, "train", "--model.config", "org/tiny", "--data.tokenizer", "bytes",
                              "--data.path", "org/texts", "--training.sequence_length", 16, "--training.batch_size", 2,
                              "--training.steps", 1, "--device", "cpu", "--checkpoint.enabled", "false")
        asked = [path for path in self.hub.paths("GET") if path.startswith("/api/datasets")]
        self.assertEqual(len(asked), 2, ended.stderr)  # what main is, and what that commit has: the launcher's

    def test_a_plan_needs_no_weights(self):
        self.assertIn("parameters", self.run_well("plan", "--model.init_from", "org/tiny", "--data.path", "random", "--training.steps", 2).stdout)
        self.assertEqual(self.hub.storage.asked, [])
        self.run_well("train", "--dry-run", "--model.config", "org/tiny", "--data.path", "random", "--training.steps", 2, "--device", "cpu")

    def test_an_error_names_both_places(self):
        words = ["--model.init_from is 'org/missing'", "there is no such file or folder here", "on the hub", "there is no model", "org/missing"]
        self.fails(2, words, "train", "--model.init_from", "org/missing", "--data.path", "random", "--training.steps", 2, "--device", "cpu")
        self.fails(2, ["--data.tokenizer is 'org/no-weights'", "has no tokenizer"], "train", "--model.config", "org/tiny",
                   "--data.tokenizer", "org/no-weights", "--data.path", "embedded", "--device", "cpu")
        local = self.folder / "org" / "tiny"
        local.mkdir(parents=True)
        self.hub.asked.clear()
        self.fails(2, ["org/tiny"], "train", "--model.init_from", "org/tiny", "--data.path", "random", "--training.steps", 2, "--device", "cpu")
        self.fails(2, ["--model is 'org/other'", "`trainyard download org/other` fetches it"], "generate", "--model", "org/other", "--prompt", "a", "--device", "cpu")
        self.fails(2, ["SOURCE is 'org/other'", "`trainyard download org/other` fetches it"], "checkpoint", "convert", "org/other", "--output", "x")
        self.fails(2, ["--tokenizer is 'org/other'", "`trainyard download org/other` fetches it"], "tokenizer", "encode", "--tokenizer", "org/other")
        self.assertEqual(self.hub.asked, [], "a path here is no name, and other flags take none")

    @unittest.skipIf(huggingface_hub is None, "huggingface_hub is not installed")
    def test_huggingface_hub_finds_what_is_here_and_the_other_way_round(self):
        folder = self.run_well("download", "org/tiny", "--all").stdout.strip()
        ask = "from huggingface_hub import snapshot_download, hf_hub_download; print(snapshot_download('org/tiny')); " \
              "print(hf_hub_download('org/tiny', 'config.json', revision='main'))"
        found = subprocess.run([sys.executable, "-c", ask], env=self.environment(HF_HUB_OFFLINE="1"), text=True, capture_output=True)
        self.assertEqual(found.stdout.split(), [folder, folder + "/config.json"], found.stderr)
        self.home = self.folder / "another"
        subprocess.run([sys.executable, "-c", ask], env=self.environment(), check=True, capture_output=True)
        self.hub.asked.clear()
        self.run_well("download", "org/tiny", HF_HUB_OFFLINE="1")
        self.assertEqual(self.hub.asked, [])


if __name__ == "__main__":
    PROGRAM = ProgramCase.program = sys.argv.pop(1)
    unittest.main()
