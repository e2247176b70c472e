"""Free TCP ports on loopback for servers that must be told theirs."""
import random
import socket
from pathlib import Path


def free_ports(count):
    """Different ports, each free now and below those that the kernel gives to connections, so that none takes it."""
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    held = []
    try:
        for port in random.sample(range(10000, max(lowest_given, 30000)), 2000):
            if len(held) == count:
                break
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", port))
                held.append(candidate)
            except OSError:
                candidate.close()
        return [candidate.getsockname()[1] for candidate in held]
    finally:
        for candidate in held:
            candidate.close()
