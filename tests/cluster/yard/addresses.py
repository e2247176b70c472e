"""Who has which address, in a network that nobody else sees."""
CONTROL = "10.77.0.1"  # API server, CoreDNS, and the bridge between all machines
PODS = "10.244.0.0/16"


def node_name(number):
    return f"node-{number}"


def node(number):
    return f"10.77.0.{10 + number}"


def pods(number):
    return f"10.244.{number}.0/24"
