#!/usr/bin/env python3
"""A training run that tells an operator how far it is, whatever the operator does: takes it, has got another certificate
authority, is another one than the job trusts, refuses it, hangs, or is not there. Training ends with 0 in each case, and says at most one line about it.
It is told, too, that the configuration was changed while the run went on.

usage: progress_test.py TRAINYARD
"""
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

MODEL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 257, "hidden_size": 32, "intermediate_size": 64,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "max_position_embeddings": 128, "tie_word_embeddings": True, "hidden_act": "silu"}
STEPS = 200  # which take longer than the first post


class Operator(http.server.ThreadingHTTPServer):
    """Speaks TLS, keeps the posts, and answers as `status` says. Asked who signs its certificate, it proves `authorities`
    with `token`."""
    daemon_threads = True

    def __init__(self, folder, status=204, authorities="", token="no job's"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.posts, self.tokens, self.questions = status, [], set(), []
        self.authorities, self.token = authorities, token
        self.at_first_post = lambda: None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"https://127.0.0.1:{self.server_address[1]}/progress/team/llama"

    def handle_error(self, request, client_address):
        pass  # a client that does not trust the certificate


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/progress/team/llama/authorities":
            return self.prove(body)
        self.server.tokens.add(self.headers["Authorization"])
        if not self.server.posts:
            self.server.at_first_post()
        self.server.posts.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def prove(self, nonce):
        self.server.questions.append((nonce, self.headers["Authorization"]))
        text = b"trainyard-authorities-1" + nonce + self.server.authorities.encode()
        proof = hmac.new(self.server.token.encode(), text, hashlib.sha256).hexdigest()
        answer = json.dumps({"authorities": self.server.authorities, "proof": proof}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=operator", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem",
                    "-out", folder / "cert.pem"], check=True, capture_output=True)
    return (folder / "cert.pem").read_text()


class ConfigMap:
    """A mounted one: its file is a link through ..data, which the kubelet makes anew when the ConfigMap was edited."""

    def __init__(self, folder, text):
        self.folder, self.versions = folder, 0
        folder.mkdir()
        self.write(text)
        self.file = folder / "train.yaml"
        self.file.symlink_to("..data/train.yaml")

    def write(self, text):
        self.versions += 1
        version = self.folder / f"..version-{self.versions}"
        version.mkdir()
        (version / "train.yaml").write_text(text)
        (self.folder / "..data_tmp").symlink_to(version.name)
        (self.folder / "..data_tmp").replace(self.folder / "..data")


def train(program, folder, url, ca, processes=1, more=()):
    (folder / "config.json").write_text(json.dumps(MODEL))
    (folder / "corpus.txt").write_text("".join(f"{i % 41} times {i % 13} is {i % 41 * (i % 13)}.\n" for i in range(2000)))
    words = ["train", "--model.config", folder / "config.json", "--data.path", folder / "corpus.txt", "--data.tokenizer", "bytes",
             "--training.sequence_length", "32", "--training.batch_size", "2", "--training.steps", str(STEPS),
             "--checkpoint.dir", folder / "checkpoints", "--checkpoint.interval", str(STEPS // 2), "--metrics.dir", folder, "--device.threads", "1", *more]
    if processes > 1:
        words = ["launch", "--nproc-per-node", str(processes)] + words
    environment = {**os.environ, "TRAINYARD_JOB_TOKEN": "secret", "TRAINYARD_GENERATION": "2", "TRAINYARD_PROGRESS_URL": url,
                   "TRAINYARD_PROGRESS_CA": ca}
    return subprocess.run([program, *map(str, words)], env=environment, capture_output=True, text=True, timeout=120)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def lines_about(ended):
    return [line for line in ended.stderr.splitlines() if "progress at https://" in line]


def run(name, program, url, ca, expected_line=None, processes=1):
    with tempfile.TemporaryDirectory() as folder:
        ended = train(program, pathlib.Path(folder), url, ca, processes)
    check(ended.returncode == 0, f"{name}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    lines = lines_about(ended)
    check(len(lines) == (1 if expected_line else 0), f"{name}: lines about progress: {lines}\n{ended.stderr}")
    check(not expected_line or expected_line in lines[0], f"{name}: {lines}")
    print(f"ok: {name}")


def run_with_an_edit(program, operator, ca, processes):
    """The ConfigMap is edited once the run has posted: the last post says so, and one line of the log."""
    with tempfile.TemporaryDirectory() as temporary:
        config = ConfigMap(pathlib.Path(temporary) / "mounted", "optimizer: {lr: 0.001}\n")
        operator.at_first_post = lambda: config.write("optimizer: {lr: 0.002}\n")
        ended = train(program, pathlib.Path(temporary), operator.url(), ca, processes, ["--config", config.file])
        check(ended.returncode == 0, f"an edit: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
        digest = hashlib.sha256(config.file.read_bytes()).hexdigest()[:12]
        first, last = operator.posts[0][1], operator.posts[-1][1]
        check("configChanged" not in first, f"first: {first}")
        check(last.get("configChanged") == f"{config.file} (sha256 {digest})", f"last: {last}\n{ended.stderr}")
        check(last["step"] == STEPS, f"last: {last}")
        check(ended.stderr.count("the configuration has changed since this run read it") == 1, ended.stderr)
    print(f"ok: a configuration that is edited while {processes} rank(s) run")


def main(program):
    with tempfile.TemporaryDirectory() as temporary:
        folder, other = pathlib.Path(temporary) / "a", pathlib.Path(temporary) / "b"
        folder.mkdir(), other.mkdir()
        ca, other_ca = make_certificate(folder), make_certificate(other)

        for processes in (1, 2):
            operator = Operator(folder)
            run(f"{processes} rank(s), an operator that takes it", program, operator.url(), ca, processes=processes)
            check(operator.tokens == {"Bearer secret"}, f"tokens {operator.tokens}")
            check({path for path, _ in operator.posts} == {"/progress/team/llama"}, "paths")
            first, last = operator.posts[0][1], operator.posts[-1][1]
            check(first["step"] < STEPS // 2 and first["totalSteps"] == STEPS and first["checkpointStep"] == -1, f"first: {first}")
            check(last["step"] == STEPS and last["checkpointStep"] == STEPS and last["generation"] == 2, f"last: {last}")
            check(last["loss"] > 0 and last["tokensPerSecond"] > 0 and last["silentRanks"] == [], f"last: {last}")
            check(len(operator.posts) <= 12, f"{len(operator.posts)} posts of {STEPS} steps")
            operator.shutdown()

            operator = Operator(folder)
            run_with_an_edit(program, operator, ca, processes)
            operator.shutdown()

        renewed = Operator(other, authorities=other_ca, token="secret")
        run("an operator with another authority, proven with the job's token", program, renewed.url(), ca)
        check(renewed.posts[-1][1]["step"] == STEPS and renewed.tokens == {"Bearer secret"}, f"posts {renewed.posts}")
        check([token for _, token in renewed.questions] == [None], f"asked once, without the token: {renewed.questions}")
        check(len(renewed.questions[0][0]) == 64, f"nonce {renewed.questions}")
        renewed.shutdown()

        for name, proves in (("does not trust", {}), ("is not told the truth by", {"authorities": other_ca}),
                             ("trusts for another authority than it has", {"authorities": ca, "token": "secret"})):
            stranger = Operator(other, **proves)
            run(f"an operator that the job {name}", program, stranger.url(), ca, "certificate")
            check(stranger.posts == [] and {token for _, token in stranger.questions} == {None}, "the token went to a stranger")
            stranger.shutdown()

        failing = Operator(folder, status=500)
        run("an operator that answers 500", program, failing.url(), ca, "HTTP 500")
        failing.shutdown()

        with socket.create_server(("127.0.0.1", 0)) as hanging:
            run("an operator that hangs", program, f"https://127.0.0.1:{hanging.getsockname()[1]}/progress/team/llama", ca, "Timeout")
            port = hanging.getsockname()[1]
        run("no operator at all", program, f"https://127.0.0.1:{port}/progress/team/llama", ca, "connect")


main(sys.argv[1])
