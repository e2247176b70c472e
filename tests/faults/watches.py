"""A watch through the proxy, line by line, and what ends it."""
import asyncio
import json

from aiohttp import web

import proxy as proxies

EXPIRED = {"type": "ERROR", "object": {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410,
                                       "reason": "Expired", "message": "a fault of the test: too old"}}


async def relay(proxy, request, call, fault, rng):
    """Until the server ends it, or after so many events or so long `fault` does."""
    async with proxy.open(call) as upstream:
        response = web.StreamResponse(status=upstream.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if upstream.status != 200 or not fault:
            await _pass_on(response, upstream, None, None)
            return response
        await _pass_on(response, upstream, rng.randrange(12), rng.uniform(0.3, 10))
        if fault == "paused":
            await asyncio.sleep(rng.uniform(0.5, 2))
            await _pass_on(response, upstream, None, None)
        elif fault == "expired":
            await response.write(json.dumps(EXPIRED).encode() + b"\n")
        elif fault == "cut":
            await response.write(b'{"type":"MODIFIED","object":{"metadata":{"na')
            proxies.reset(request)
        elif fault == "hung":
            await asyncio.sleep(rng.uniform(1, 4))
            proxies.reset(request)
        return response  # and in order: "ended"


async def _pass_on(response, upstream, most, seconds):
    """The next `most` lines, for so long; to the end where these are None."""
    deadline = seconds and asyncio.get_running_loop().time() + seconds
    passed = 0
    while most is None or passed < most:
        left = deadline and deadline - asyncio.get_running_loop().time()
        try:
            line = await asyncio.wait_for(upstream.content.readline(), left and max(left, 0))
        except asyncio.TimeoutError:
            return
        if not line:
            return
        await response.write(line)
        passed += 1
