#!/usr/bin/env python3
"""A training run that tells an operator how far it is, whatever the operator does: takes it, is another one than the job
trusts, refuses it, hangs, or is not there. Training ends with 0 in each case, and says at most one line about it.

usage: progress_test.py TRAINYARD
"""
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
STEPS = 20


class Operator(http.server.ThreadingHTTPServer):
    """Speaks TLS, keeps the posts, and answers as `status` says."""
    daemon_threads = True

    def __init__(self, folder, status=204):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.posts, self.tokens = status, [], set()
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
        self.server.tokens.add(self.headers["Authorization"])
        self.server.posts.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=operator", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem",
                    "-out", folder / "cert.pem"], check=True, capture_output=True)
    return (folder / "cert.pem").read_text()


def train(program, folder, url, ca, processes=1):
    (folder / "config.json").write_text(json.dumps(MODEL))
    (folder / "corpus.txt").write_text("".join(f"{i % 41} times {i % 13} is {i % 41 * (i % 13)}.\n" for i in range(2000)))
    words = ["train", "--model.config", folder / "config.json", "--data.path", folder / "corpus.txt", "--data.tokenizer", "bytes",
             "--training.sequence_length", "32", "--training.batch_size", "2", "--training.steps", str(STEPS),
             "--checkpoint.dir", folder / "checkpoints", "--checkpoint.interval", "10", "--metrics.dir", folder, "--device.threads", "1"]
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
            check(first["step"] <= 1 and first["totalSteps"] == STEPS and first["checkpointStep"] == -1, f"first: {first}")
            check(last["step"] == STEPS and last["checkpointStep"] == STEPS and last["generation"] == 2, f"last: {last}")
            check(last["loss"] > 0 and last["tokensPerSecond"] > 0 and last["silentRanks"] == [], f"last: {last}")
            check(len(operator.posts) <= 12, f"{len(operator.posts)} posts of {STEPS} steps")
            operator.shutdown()

        stranger = Operator(other)
        run("an operator that the job does not trust", program, stranger.url(), ca, "certificate")
        check(stranger.posts == [], "the token went to a stranger")
        stranger.shutdown()

        failing = Operator(folder, status=500)
        run("an operator that answers 500", program, failing.url(), ca, "HTTP 500")
        failing.shutdown()

        with socket.create_server(("127.0.0.1", 0)) as hanging:
            run("an operator that hangs", program, f"https://127.0.0.1:{hanging.getsockname()[1]}/progress/team/llama", ca, "Timeout")
            port = hanging.getsockname()[1]
        run("no operator at all", program, f"https://127.0.0.1:{port}/progress/team/llama", ca, "connect")


main(sys.argv[1])
