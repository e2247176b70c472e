#!/usr/bin/env python3
"""Objects of S3 in place of files, against a small server on 127.0.0.1 that speaks its protocol and checks signatures: who asks,
what is read, and what becomes of faults on the way.

usage: s3_test.py TRAINYARD
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hub_server import MODEL, weights
from program_case import ProgramCase
from s3_server import KEYS, S3, Giver

(ACCESS, (SECRET, _)), = KEYS.items()
GIVEN = ("ASIAGIVEN", "another/secret", "a-session-token")
TEXT = b"to be or not to be that is the question\n" * 200
LINES = b"".join(json.dumps({"text": f"a rose is a rose {i} " * 50}).encode() + b"\n" for i in range(40))


class S3Test(ProgramCase):
    secrets = (SECRET, *GIVEN[1:], "a-token-of-a-pod", "Signature=")

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.servers = []
        self.s3 = self.serve(S3({"bucket": {
            "text.txt": TEXT, "model/config.json": json.dumps(MODEL).encode(), "model/model.safetensors": weights(),
            "model/extra.bin": b"not needed" * 100, "set/a-0.jsonl": LINES, "set/deeper/b+c d.jsonl.gz": gzip.compress(LINES), "set/": b"",
            "odd/a": b"1", "odd/a/b": b"2"}}))

    def serve(self, server):
        self.servers.append(server)
        return server

    def tearDown(self):
        for server in self.servers:
            server.stop()
        self.scratch.cleanup()

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_", "HUGGING"))}
        kept |= {"AWS_ENDPOINT_URL_S3": self.s3.url(), "TRAINYARD_CACHE": str(self.folder / "cache"), "no_proxy": "*",
                 "HOME": str(self.folder / "home"), "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "4"}
        if not any(name.startswith(("AWS_WEB", "AWS_CONTAINER", "AWS_EC2", "AWS_PROFILE", "AWS_ACCESS")) for name in more):
            kept |= {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
        return kept | more

    def download(self, name, **more):
        return pathlib.Path(self.run_well("download", name, **more).stdout.strip())

    def train(self, *settings, **more):
        return self.run_well("train", "--checkpoint.enabled", "false", "--training.steps", 2, "--data.tokenizer", "bytes",
                             "--training.sequence_length", 16, "--training.batch_size", 2, "--device", "cpu", *settings, **more)

    def asked(self, method):
        return [path for path in self.s3.paths(method)]

    # Who asks.

    def test_keys_of_files(self):
        aws = self.folder / "home" / ".aws"
        aws.mkdir(parents=True)
        (aws / "credentials").write_text(f"[work]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n")
        (aws / "config").write_text(f"[profile work]\nendpoint_url = {self.s3.url()}\nregion = eu-central-1\n")
        self.s3.region = "eu-central-1"
        environment = self.environment(AWS_PROFILE="work")
        del environment["AWS_ENDPOINT_URL_S3"]
        ended = subprocess.run([PROGRAM, "download", "s3://bucket/text.txt"], env=environment, text=True, capture_output=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(pathlib.Path(ended.stdout.strip()).read_bytes(), TEXT)

    def test_the_role_of_a_service_account_irsa(self):
        self.s3.keys = {GIVEN[0]: GIVEN[1:]}
        sts = self.serve(Giver(GIVEN, token="a-token-of-a-pod"))
        token = self.folder / "token"
        token.write_text("a-token-of-a-pod\n")
        role = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(token), "AWS_ROLE_ARN": "arn:aws:iam::1:role/train", "AWS_ENDPOINT_URL_STS": sts.url()}
        self.assertEqual(self.download("s3://bucket/text.txt", **role).read_bytes(), TEXT)
        token.write_text("another")
        self.fails(2, ["AssumeRoleWithWebIdentity of arn:aws:iam::1:role/train", "InvalidIdentityToken", "trust policy"],
                   "download", "s3://bucket/text.txt", **role)

    def test_an_agent_of_the_node_eks_pod_identity(self):
        self.s3.keys = {GIVEN[0]: GIVEN[1:]}
        agent = self.serve(Giver(GIVEN, token="a-token-of-a-pod"))
        (self.folder / "token").write_text("a-token-of-a-pod\n")
        given = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.url() + "/v1/credentials",
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self.folder / "token")}
        self.assertEqual(self.download("s3://bucket/text.txt", **given).read_bytes(), TEXT)
        (self.folder / "token").write_text("wrong\n")
        self.fails(2, ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "HTTP 401"], "download", "s3://bucket/text.txt", **given)

    def test_the_role_of_an_instance_imds(self):
        self.s3.keys = {GIVEN[0]: GIVEN[1:]}
        imds = self.serve(Giver(GIVEN))
        given = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": imds.url()}
        self.assertEqual(self.download("s3://bucket/text.txt", **given).read_bytes(), TEXT)
        self.assertEqual([path for method, path, _, _ in imds.asked if method == "PUT"], ["/latest/api/token"])
        imds.asked.clear()
        self.download("s3://bucket/set/a-0.jsonl", **given, AWS_ACCESS_KEY_ID=GIVEN[0], AWS_SECRET_ACCESS_KEY=GIVEN[1], AWS_SESSION_TOKEN=GIVEN[2])
        self.assertEqual(imds.asked, [], "nobody asks the instance where something else is set")
        self.fails(2, ["no credentials for S3", "no instance with a role answers"], "download", "s3://bucket/text.txt",
                   AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:1")

    def test_credentials_that_expire_are_asked_for_again(self):
        self.s3.keys = {GIVEN[0]: (GIVEN[1], "expired"), "ASIANEXT": GIVEN[1:]}
        agent = self.serve(Giver(GIVEN))
        given = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": agent.url()}
        first, agent.json = agent.json, lambda **more: first(**more) if len(agent.asked) <= 3 else first(AccessKeyId="ASIANEXT", **more)
        self.assertEqual(self.download("s3://bucket/text.txt", **given).read_bytes(), TEXT)
        self.assertEqual(len(agent.asked), 6, "the role was asked for twice")

    def test_wrong_credentials_are_told_from_others(self):
        self.fails(2, ["does not take the credentials of AWS_ACCESS_KEY_ID"], "download", "s3://bucket/text.txt", AWS_ACCESS_KEY_ID=ACCESS,
                   AWS_SECRET_ACCESS_KEY="wrong")
        self.fails(2, ["no credentials for S3"], "download", "s3://bucket/text.txt", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        self.s3.region = "eu-west-1"
        self.fails(2, ["the bucket lies in eu-west-1, but us-east-1 was asked; set AWS_REGION=eu-west-1"], "download", "s3://bucket/text.txt")
        self.assertEqual(self.download("s3://bucket/text.txt", AWS_REGION="eu-west-1").read_bytes(), TEXT)

    # What is read.

    def test_objects_prefixes_and_patterns(self):
        self.s3.page = 2
        folder = self.download("s3://bucket/set")
        self.assertEqual(sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()), ["a-0.jsonl", "deeper/b+c d.jsonl.gz"])
        self.assertEqual(gzip.decompress((folder / "deeper/b+c d.jsonl.gz").read_bytes()), LINES)
        self.s3.asked.clear()
        self.assertEqual(self.download("s3://bucket/set/"), folder)
        self.assertEqual([path for path in self.asked("GET") if "list-type" not in path], [], "what is here is not downloaded again")
        pattern = self.download("s3://bucket/set/*.jsonl")
        self.assertEqual([path.name for path in pattern.parent.glob(pattern.name)], ["a-0.jsonl"])
        self.s3.put("bucket", "set/a-0.jsonl", LINES[:100])
        self.s3.asked.clear()
        again = self.download("s3://bucket/set")
        self.assertNotEqual(again, folder)
        self.assertEqual((again / "a-0.jsonl").read_bytes(), LINES[:100])
        self.assertEqual((folder / "a-0.jsonl").read_bytes(), LINES)
        self.assertEqual(len([path for path in self.asked("GET") if "list-type" not in path]), 1)

    def test_what_is_not_there_or_cannot_be_a_file(self):
        self.fails(2, ["s3://bucket/missing", "there is no such object, and none below it"], "download", "s3://bucket/missing")
        self.fails(2, ["s3://bucket/set/*.txt", "no object matches"], "download", "s3://bucket/set/*.txt")
        self.fails(2, ["s3://other/x", "there is no such bucket"], "download", "s3://other/x")
        self.fails(2, ["a file and a folder at once"], "download", "s3://bucket/odd")
        self.s3.put("bucket", "evil/../../x", b"x")
        self.fails(2, ["cannot be the name of a file"], "download", "s3://bucket/evil")
        self.fails(2, ["'s3://b' is no name of S3", "3 to 63"], "download", "s3://b")
        self.fails(2, ["takes no other flag"], "download", "s3://bucket/set", "--local_dir", "x")
        self.fails(2, ["cannot be reached", "AWS_ENDPOINT_URL_S3"], "download", "s3://bucket/x", AWS_ENDPOINT_URL_S3="http://127.0.0.1:1",
                   AWS_MAX_ATTEMPTS="1")
        self.assertFalse((self.folder / "x").exists())

    def test_training_from_objects(self):
        ended = self.train("--model.init_from", "s3://bucket/model", "--data.path", "s3://bucket/set", "--validation.path", "s3://bucket/text.txt")
        self.assertIn("understood as model.init_from s3://bucket/model: 2 files, version ", ended.stderr)
        self.assertEqual([path for path in self.asked("GET") if "extra.bin" in path], [], "what training does not need stays there")
        self.assertEqual(len(list((self.folder / "cache" / "tokens").glob("*.tokens"))), 2)
        self.train("--model.config", "s3://bucket/model", "--data.path", "s3://bucket/set/*.jsonl")
        self.train("--model.config", "s3://bucket/model/config.json", "--data.path", "s3://bucket/text.txt")

    def test_going_on_from_a_checkpoint_that_was_copied(self):
        settings = ["--model.config", "s3://bucket/model", "--data.path", "s3://bucket/text.txt"]
        self.train(*settings, "--checkpoint.enabled", "true", "--checkpoint.dir", "ck")
        for path in (self.folder / "ck" / "step-2").iterdir():
            self.s3.put("bucket", f"runs/1/step-2/{path.name}", path.read_bytes())
        ended = self.train(*settings, "--checkpoint.resume", "s3://bucket/runs/1/step-2", "--training.steps", 3)
        self.assertIn("Loaded checkpoint from step 2", ended.stderr)
        ended = self.train(*settings, "--checkpoint.initial_load_path", "s3://bucket/runs/1/step-2", "--training.steps", 3)
        self.assertIn("Loaded checkpoint from step 2", ended.stderr)

    def test_ranks_take_the_same_version_and_one_process_downloads(self):
        ended = self.run_well("launch", "--nproc-per-node", 2, "train", "--model.init_from", "s3://bucket/model", "--data.path", "s3://bucket/set",
                              "--data.tokenizer", "bytes", "--training.sequence_length", 16, "--training.batch_size", 2, "--training.steps", 1,
                              "--device", "cpu", "--checkpoint.enabled", "false")
        read = [path for path in self.asked("GET") if "list-type" not in path]
        self.assertEqual(len(read), len(set(read)), ended.stderr)
        self.assertEqual(len([path for path in self.asked("GET") if "list-type" in path]), 2, "the launcher listed, and the ranks nothing")
        version = self.download("s3://bucket/set").name
        self.assertEqual(self.download(f"s3://bucket/set#{version}").name, version)
        self.s3.put("bucket", "set/a-0.jsonl", b"{}")
        self.assertEqual(self.download(f"s3://bucket/set#{version}").name, version, "what is here does not change")
        self.fails(2, ["its objects are other ones now"], "download", f"s3://bucket/set#{version}", TRAINYARD_CACHE="another")

    def test_keys_that_take_no_name(self):
        both = ["train", "--model.config", "s3://bucket/model", "--data.path", "s3://bucket/text.txt", "--data.tokenizer", "bytes", "--device", "cpu"]
        self.fails(2, ["--checkpoint.dir is s3://bucket/c", "takes no name of S3", "model.init_from"], *both, "--checkpoint.dir", "s3://bucket/c")
        self.fails(2, ["--metrics.dir is s3://bucket/m", "takes no name of S3", "model.init_from"], *both, "--metrics.dir", "s3://bucket/m")
        self.fails(2, ["--data.mix", "takes no name of S3"], "train", "--demo", "--data.path", "", "--data.mix", "s3://bucket/a=1")
        self.fails(2, ["--model is 's3://bucket/model'", "`trainyard download s3://bucket/model` fetches it"], "generate", "--model",
                   "s3://bucket/model", "--prompt", "a", "--device", "cpu")
        self.assertEqual(self.s3.asked, [])
        self.assertEqual([path.name for path in self.folder.iterdir()], [])

    # What becomes of faults.

    def test_faults_on_the_way_lose_nothing(self):
        faults = [{"busy": 2}, {"resets": 2}, {"cuts": 3, "cut_after": 1000}, {"wrong_bytes": 1}, {"wrong_bytes": 1, "tells_checksums": False}]
        for number, fault in enumerate(faults):
            for name, value in fault.items():
                setattr(self.s3, name, value)
            path = self.download("s3://bucket/text.txt", TRAINYARD_CACHE=str(self.folder / str(number)))
            self.assertEqual(path.read_bytes(), TEXT, fault)

    def test_what_is_always_wrong_is_an_error_and_nothing_stays(self):
        self.s3.wrong_bytes = 100
        self.fails(2, ["s3://bucket/text.txt", "its CRC-32 is", "but the server tells"], "download", "s3://bucket/text.txt")
        self.s3.tells_checksums = False
        self.fails(2, ["its MD5 is"], "download", "s3://bucket/text.txt")
        self.assertEqual([path for path in (self.folder / "cache").rglob("blobs/*")], [])

    def test_a_server_that_is_down_is_not_asked_without_end(self):
        self.s3.busy = 1000
        self.fails(138, ["s3://bucket/text.txt", "HTTP 503 again and again"], "download", "s3://bucket/text.txt", AWS_MAX_ATTEMPTS="2")
        self.assertEqual(len(self.s3.asked), 2)

    def test_another_start_goes_on_where_one_ended(self):
        self.s3.cuts, self.s3.cut_after = 1, 3000
        self.assertEqual(self.download("s3://bucket/text.txt").read_bytes(), TEXT)
        self.assertEqual([asked for method, path, _, asked in self.s3.asked if method == "GET"], [None, "bytes=3000-"])

    def test_an_object_that_is_written_again_meanwhile_is_an_error(self):
        reply = self.s3.takes
        def takes(fault):  # after the HEAD and before the GET
            if fault == "busy" and len(self.s3.asked) == 3:
                self.s3.put("bucket", "text.txt", TEXT[::-1])
            return reply(fault)
        self.s3.takes = takes
        self.fails(2, ["it was written again, or removed, while it was read"], "download", "s3://bucket/text.txt")


if __name__ == "__main__":
    PROGRAM = ProgramCase.program = sys.argv.pop(1)
    unittest.main()
