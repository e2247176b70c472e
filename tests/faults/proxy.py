"""A proxy between operators and the real API server that does them harm.

HTTP/1.1, as aiohttp has no HTTP/2: what is tested is what the operator makes of lost and wrong answers, which is
decided above either. The API server's own HTTP/2 is what every other test speaks.
"""
import asyncio
import collections
import json
import logging
import socket
import ssl
import struct
import threading
import traceback
from dataclasses import dataclass

import aiohttp
from aiohttp import web

import watches
from kube.certificates import Authority, write_kubeconfig

BODY_LIMIT = 64 << 20
REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
           504: "Timeout"}


@dataclass
class Call:
    """What is asked, and by which process: each has a token of its own."""
    process: str
    method: str
    url: str
    headers: dict
    body: bytes
    sort: str  # watch, list, read or write
    key: str   # the same in each run


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes


async def read_call(request):
    body = await request.read()
    name = json.loads(body).get("metadata", {}).get("name", "") if request.method == "POST" and body else ""
    parts = request.path.strip("/").split("/")
    collection = parts[3 if parts[0] == "apis" else 2:]  # after the group's version
    sort = ("write" if request.method != "GET" else "watch" if "watch" in request.query else
            "list" if len(collection) in (1, 3) else "read")
    headers = {key: request.headers[key] for key in ("Accept", "Content-Type") if key in request.headers}
    return Call(request.headers.get("Authorization", "").removeprefix("Bearer "), request.method, request.raw_path,
                headers, body, sort, f"{request.method} {sort} {request.path} {name}".strip())


def refusal(status, seconds=None):
    body = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": status, "reason": REASONS[status],
            "message": f"a fault of the test: {status}"}
    headers = {"Content-Type": "application/json", **({"Retry-After": str(seconds)} if seconds else {})}
    return Answer(status, headers, json.dumps(body).encode())


def reset(request):
    """Ends the connection as a machine does that has lost it: with a reset, at once."""
    if request.transport is None:
        return
    connection = request.transport.get_extra_info("socket")
    if connection and connection.fileno() >= 0:  # else the operator was killed meanwhile
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


class StaleLists:
    """Lists that a process was given before, once it has been given a newer one."""

    def __init__(self):
        self._given = collections.defaultdict(list)

    def note(self, call, answer):
        if answer.status == 200:
            version = int(json.loads(answer.body)["metadata"]["resourceVersion"])
            self._given[call.process, call.url].append((version, answer))

    def older(self, call, rng):
        given = self._given[call.process, call.url]
        newest = max((version for version, _ in given), default=0)
        return rng.choice([answer for version, answer in given if version < newest] or [None])


class Proxy:
    """Serves from a thread of its own while `with` lasts.

      faults   a Faults
      on_kill  called with a process' name, from that thread, where the process is to be killed
      clock    of the certificates: they must hold on an operator's clock that is set back, too
    """

    def __init__(self, cluster, faults, on_kill, clock):
        self._cluster, self._faults, self._on_kill = cluster, faults, on_kill
        self._stale = StaleLists()
        self.defects = []  # of the proxy itself, as text
        self._authority = Authority(cluster.folder / "proxy", clock.environment)

    def __enter__(self):
        logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # it reports each connection that is reset
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def kubeconfig(self, process):
        """For the process of that name, which nobody else may use."""
        return write_kubeconfig(self._cluster.folder / f"{process}.kubeconfig", self._address,
                                self._authority.certificate, {"token": process})

    async def _start(self):
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._cluster.client().tls), read_bufsize=BODY_LIMIT,
            headers={"Accept-Encoding": "identity"}, timeout=aiohttp.ClientTimeout(total=None))
        application = web.Application(client_max_size=BODY_LIMIT)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*self._authority.issue("proxy", "proxy", hosts=["IP:127.0.0.1"]))
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls, shutdown_timeout=1)
        await site.start()
        self._address = "https://127.0.0.1:%d" % self._runner.addresses[0][1]

    async def _stop(self):
        await self._runner.cleanup()
        await self._session.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def open(self, call):
        """The server's answer, as an asynchronous context."""
        return self._session.request(call.method, aiohttp.client.URL(self._cluster.server + call.url, encoded=True),
                                     headers=call.headers, data=call.body or None)

    async def _forward(self, call):
        async with self.open(call) as answer:
            headers = {key: answer.headers[key] for key in ("Content-Type", "Retry-After") if key in answer.headers}
            return Answer(answer.status, headers, await answer.read())

    async def _serve(self, request):
        try:
            return await self._handle(request)
        except (aiohttp.ClientError, OSError):
            reset(request)  # the API server, or the operator, is gone
            return web.Response()
        except Exception:
            self.defects.append(traceback.format_exc())
            raise

    async def _handle(self, request):
        call = await read_call(request)
        fault, rng = self._faults.choose(call)
        stale = self._stale.older(call, rng) if fault == "stale" else None
        if fault == "stale" and not stale:
            fault = None
        if fault:
            self._faults.note(call, fault)
        if call.sort == "watch" and not isinstance(fault, int) and fault != "dropped before":
            return await watches.relay(self, request, call, fault, rng)
        answer = stale or await self._suffer(call, fault, rng)
        if not answer:
            reset(request)
            return web.Response()
        if call.sort == "list" and not stale and fault != "truncated":
            self._stale.note(call, answer)
        return await (give_half(request, answer, rng) if fault == "truncated" else give(answer))

    async def _suffer(self, call, fault, rng):
        """The answer to give; None where the connection is to be reset."""
        if fault == "dropped before":
            return None
        if fault in ("late", "killed before"):
            if fault == "killed before":
                self._on_kill(call.process)
            await asyncio.sleep(rng.uniform(0.02, 0.7))
        if fault in (409, 410, 429):
            return refusal(fault, 1 if fault == 429 else None)
        if fault in (500, 503, 504):
            seconds = rng.choice([None, 1]) if fault == 503 else None
            if not seconds and rng.random() < 0.5:  # only the answer is wrong. With Retry-After it is a promise
                await self._forward(call)
            return refusal(fault, seconds)
        answer = await self._forward(call)
        if fault == "sent twice":
            answer = await self._forward(call)
        if fault == "slow":
            await asyncio.sleep(rng.uniform(0.02, 0.7))
        if fault == "killed after":
            self._on_kill(call.process)
        return None if fault in ("dropped after", "killed after") else answer


async def give(answer):
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


async def give_half(request, answer, rng):
    kept = answer.body[:int(len(answer.body) * rng.uniform(0.1, 0.9))]
    if rng.random() < 0.3:  # whole to HTTP, and no JSON
        return await give(Answer(answer.status, answer.headers, kept))
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(request)
    await response.write(kept)
    reset(request)
    return response
