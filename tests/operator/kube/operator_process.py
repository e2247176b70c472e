"""An operator that runs against a control plane, with its endpoints on loopback."""
import http.client

from .ports import free_ports
from .process import Process, wait_until


class OperatorProcess(Process):
    """The operator at `program`, with the flags that every operator of PyTorchJobs takes, then `flags`."""

    def __init__(self, program, kubeconfig, log, flags=(), environment=None):
        self.metrics_port, self.probe_port, self.webhook_port = free_ports(3)
        command = [program, "--kubeconfig", kubeconfig, "--metrics-bind-address", f"127.0.0.1:{self.metrics_port}",
                   "--health-probe-bind-address", f"127.0.0.1:{self.probe_port}",
                   "--webhook-server-port", self.webhook_port, *flags]
        super().__init__("the operator", command, log, environment)

    @property
    def metrics_url(self):
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    @property
    def webhook_url(self):
        return f"https://127.0.0.1:{self.webhook_port}"

    def wait_until_ready(self, timeout=60):
        wait_until("the operator's /readyz", lambda: self.probe("/readyz") == 200, timeout, [self])

    def probe(self, path):
        """The status of /healthz or /readyz."""
        connection = http.client.HTTPConnection("127.0.0.1", self.probe_port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def __enter__(self):
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            self.kill()
