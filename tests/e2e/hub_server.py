"""A small hub on 127.0.0.1 that speaks the Hugging Face hub's protocol, and the server behind it to which it redirects for
large files. Repositories are folders of bytes; what was asked is kept for tests to look at."""
import hashlib
import http.server
import json
import random
import re
import struct
import threading
import urllib.parse

MODEL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 257, "hidden_size": 32, "intermediate_size": 64,
         "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "max_position_embeddings": 128, "tie_word_embeddings": True, "hidden_act": "silu"}


def weights():
    """model.safetensors of MODEL."""
    hidden, ff, kv, rng = 32, 64, 16, random.Random(7)
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [257, hidden], "model.norm.weight": [hidden],
              layer + "input_layernorm.weight": [hidden], layer + "post_attention_layernorm.weight": [hidden],
              layer + "self_attn.q_proj.weight": [hidden, hidden], layer + "self_attn.k_proj.weight": [kv, hidden],
              layer + "self_attn.v_proj.weight": [kv, hidden], layer + "self_attn.o_proj.weight": [hidden, hidden],
              layer + "mlp.gate_proj.weight": [ff, hidden], layer + "mlp.up_proj.weight": [ff, hidden],
              layer + "mlp.down_proj.weight": [hidden, ff]}
    header, body = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if len(shape) == 1 else [rng.gauss(0, 0.05) for _ in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + 4 * count]}
        body += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


class Repository:
    """Files at one commit. `large` ones lie on the other server."""

    def __init__(self, files, token=None, gated=False, branches=("main",)):
        self.files, self.token, self.gated, self.branches = files, token, gated, branches
        listing = json.dumps({name: hashlib.sha1(body).hexdigest() for name, body in files.items()})
        self.commit = hashlib.sha1(listing.encode()).hexdigest()

    @staticmethod
    def is_large(name):
        return name.endswith((".safetensors", ".bin", ".parquet"))

    def etag(self, name):
        body = self.files[name]
        return hashlib.sha256(body).hexdigest() if self.is_large(name) else hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.asked = []  # (method, path, Authorization, Range)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self):
        self.shutdown()
        self.server_close()

    def paths(self, method):
        return [path for asked, path, _, _ in self.asked if asked == method]

    def handle_error(self, request, client_address):
        pass  # a client that went away


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization"), self.headers.get("Range")))
        self.reply()

    def send(self, status, headers=None, body=b"", length=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Storage(Server):
    """Holds the large files by their sha256. It sends `cut_after` bytes of a file and hangs up, as often as `cuts` says, and
    changes a byte where it is `wrong`."""

    def __init__(self):
        self.files, self.cuts, self.cut_after, self.wrong, self.pause = {}, 0, 0, False, threading.Event()
        self.pause.set()
        super().__init__(StorageHandler)


class StorageHandler(Handler):
    def reply(self):
        server, name = self.server, self.path[1:].split("?")[0]
        body = server.files.get(name)
        if body is None:
            return self.send(404)
        server.pause.wait(20)
        if server.wrong:
            body = bytes([body[0] ^ 1]) + body[1:]
        status, headers, begin = 200, {}, 0
        if match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or ""):
            begin = int(match[1])
            if begin >= len(body):
                return self.send(416, {"Content-Range": f"bytes */{len(body)}"})
            status, headers = 206, {"Content-Range": f"bytes {begin}-{len(body) - 1}/{len(body)}"}
        rest = body[begin:]
        if server.cuts > 0 and self.command == "GET":
            server.cuts -= 1
            self.send(status, headers, rest[:server.cut_after], len(rest))
            self.close_connection = True
            return None
        return self.send(status, headers, rest)


class Hub(Server):
    """`repositories`: by "org/name", data sets by "datasets/org/name". `renamed`: old name to new. `busy`: so many
    answers are HTTP 503 first. While `pause` is cleared it says nothing."""

    def __init__(self, repositories, renamed=None):
        self.storage = Storage()
        self.repositories, self.renamed, self.busy, self.pause = repositories, renamed or {}, 0, threading.Event()
        self.pause.set()
        for repository in repositories.values():
            self.add_large(repository)
        super().__init__(HubHandler)

    def add_large(self, repository):
        for name, body in repository.files.items():
            if repository.is_large(name):
                self.storage.files[repository.etag(name)] = body

    def stop(self):
        self.storage.stop()
        super().stop()


class HubHandler(Handler):
    def refuse(self, status, code, message):
        self.send(status, {"X-Error-Code": code, "X-Error-Message": message}, json.dumps({"error": message}).encode())

    def reply(self):
        self.server.pause.wait(20)
        if self.server.busy > 0:
            self.server.busy -= 1
            return self.send(503)
        path = urllib.parse.urlsplit(self.path).path
        api = re.fullmatch(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path)
        file = re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        match = api or file
        if not match:
            return self.refuse(404, "", "Not found")
        prefix, repo = ("datasets/" if match[1] in ("datasets", "datasets/") else ""), match[2]
        if prefix + repo in self.server.renamed:
            return self.send(307, {"Location": self.path.replace(repo, self.server.renamed[prefix + repo])})
        repository = self.server.repositories.get(prefix + repo)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if repository is None or (repository.token and not repository.gated and token != repository.token):
            return self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        revision = urllib.parse.unquote((api[4] if api else file[3]) or "main")
        if revision not in (*repository.branches, repository.commit):
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if api:
            return self.tell(repository, repo, api[3])
        if repository.gated and token != repository.token:
            return self.refuse(403 if token else 401, "GatedRepo", f"Access to model {repo} is restricted.")
        return self.file(repository, urllib.parse.unquote(file[4]))

    def tell(self, repository, repo, kind):
        if kind == "tree":
            entries = [{"type": "file", "oid": repository.etag(name), "size": len(body), "path": name} for name, body in repository.files.items()]
            for entry in entries:
                if repository.is_large(entry["path"]):
                    entry["lfs"] = {"oid": entry["oid"], "size": entry["size"], "pointerSize": 134}
            return self.send(200, {"Content-Type": "application/json"}, json.dumps(entries).encode())
        about = {"_id": "1", "id": repo, "sha": repository.commit, "private": False, "gated": repository.gated,
                 "siblings": [{"rfilename": name} for name in repository.files]}
        return self.send(200, {"Content-Type": "application/json"}, json.dumps(about).encode())

    def file(self, repository, name):
        if name not in repository.files:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        body, etag = repository.files[name], repository.etag(name)
        about = {"X-Repo-Commit": repository.commit}
        if repository.is_large(name):
            about |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(body)), "Location": f"{self.server.storage.url()}/{etag}?signed=yes"}
            return self.send(302, about)
        if "?cached" not in self.path:  # the hub itself serves small files from another path
            return self.send(307, about | {"Location": f"{urllib.parse.urlsplit(self.path).path}?cached"})
        return self.send(200, about | {"ETag": f'"{etag}"'}, body)
