"""A small client of the Kubernetes API: what a test writes to it and asks of it."""
import base64
import http.client
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a CRD of 10,000 lines takes seconds without the C parser


class ApiError(Exception):
    """An answer of 300 and above; `reason` is the API's own word: AlreadyExists, NotFound, Conflict, Forbidden…"""

    def __init__(self, status, body):
        self.status, self.reason = status, body.get("reason", "")
        super().__init__(f"{status} {self.reason}: {body.get('message', '')}")


def load_manifests(path):
    """The objects of a YAML file, or of all of a folder."""
    path = Path(path)
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"no *.yaml in {path}")
    return [each for file in files for each in yaml.load_all(file.read_text(), _Loader) if each]


class Client:
    """Speaks for the identity of a kubeconfig. Threads may share it: each has a connection of its own."""

    def __init__(self, kubeconfig, timeout=30):
        config = yaml.load(Path(kubeconfig).read_text(), _Loader)
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        self._address = urllib.parse.urlsplit(cluster["server"])
        self._timeout = timeout
        self.tls = _tls_for(cluster, user)
        self._token = user.get("token")
        self._connections = threading.local()
        self._resources = {}

    # -- objects: {"apiVersion": …, "kind": …, "metadata": {…}, …}

    def create(self, thing):
        return self.request("POST", self.path_of(thing), thing)

    def apply(self, thing):
        """Creates or changes it so that it has these fields, by server-side apply."""
        query = {"fieldManager": "trainyard-tests", "force": "true"}
        return self.request("PATCH", self.path_of(thing, named=True), thing, "application/apply-patch+yaml", query)

    def replace(self, thing):
        return self.request("PUT", self.path_of(thing, named=True), thing)

    def get(self, api_version, kind, name, namespace=None):
        """The object, or None where there is none of this name."""
        try:
            return self.request("GET", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, api_version, kind, namespace=None, selector=None):
        query = {"labelSelector": selector} if selector else None
        return self.request("GET", self.path(api_version, kind, namespace), query=query)["items"]

    def patch(self, api_version, kind, name, change, namespace=None, subresource=None):
        """`change`: a dictionary is a merge patch, a list a JSON patch."""
        how = "json-patch" if isinstance(change, list) else "merge-patch"
        path = self.path(api_version, kind, namespace, name, subresource)
        return self.request("PATCH", path, change, f"application/{how}+json")

    def delete(self, api_version, kind, name, namespace=None, grace=None, propagation="Background"):
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return self.request("DELETE", self.path(api_version, kind, namespace, name), options)

    # -- paths

    def path_of(self, thing, named=False):
        metadata = thing["metadata"]
        name = metadata["name"] if named else None
        return self.path(thing["apiVersion"], thing["kind"], metadata.get("namespace"), name)

    def path(self, api_version, kind, namespace=None, name=None, subresource=None):
        """A kind of resource is found in what the server says it serves, so that CRDs need no table here."""
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if (api_version, kind) not in self._resources:
            for resource in self.request("GET", base)["resources"]:
                if "/" not in resource["name"]:
                    self._resources[api_version, resource["kind"]] = resource["name"]
        if (api_version, kind) not in self._resources:
            raise LookupError(f"the server serves no {kind} in {api_version}; is its CRD applied?")
        plural = self._resources[api_version, kind]
        parts = [base, *(["namespaces", namespace] if namespace else []), plural, name, subresource]
        return "/".join(part for part in parts if part)

    # -- requests

    def request(self, method, path, body=None, content_type="application/json", query=None):
        """The answer as JSON, or as text where it is none (/readyz). Throws ApiError, OSError, HTTPException. A server
        that is busy, or whose etcd is, is asked again for as long as it may take to answer at all."""
        path += "?" + urllib.parse.urlencode(query) if query else ""
        text = None if body is None else json.dumps(body)
        deadline = time.monotonic() + self._timeout
        while True:
            status, kind, answer = self._exchange(method, path, text, content_type)
            is_busy = status == 429 or (status >= 500 and b"etcdserver" in answer)
            if not is_busy or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        parsed = json.loads(answer) if kind == "application/json" else answer.decode(errors="replace")
        if status >= 300:
            raise ApiError(status, parsed if isinstance(parsed, dict) else {"message": parsed})
        return parsed

    def stream(self, path, query):
        """The lines of a watch, as they come; it has a connection of its own and ends with it, or after an hour."""
        connection = http.client.HTTPSConnection(self._address.hostname, self._address.port, context=self.tls,
                                                 timeout=3600)
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {self._token}"} if self._token else {})}
        connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}", headers=headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ApiError(answer.status, json.loads(answer.read()))
        return answer

    def _exchange(self, method, path, body, content_type):
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection, is_new = self._connection()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get_content_type(), answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connections.open = None
            connection.close()
            # The server has closed a connection that stood idle, before it read this request: ask once more.
            if not is_new and isinstance(error, (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError)):
                return self._exchange(method, path, body, content_type)
            raise

    def _connection(self):
        if getattr(self._connections, "open", None):
            return self._connections.open, False
        self._connections.open = http.client.HTTPSConnection(
            self._address.hostname, self._address.port, context=self.tls, timeout=self._timeout)
        return self._connections.open, True


def _named(entries, name):
    return next(entry for entry in entries if entry["name"] == name)


def _tls_for(cluster, user):
    tls = ssl.create_default_context()
    tls.load_verify_locations(cluster.get("certificate-authority"),
                              cadata=_decoded(cluster.get("certificate-authority-data")))
    if "client-certificate" in user:
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
    elif "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile("w") as both:  # Python takes a certificate only from a file
            both.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            both.flush()
            tls.load_cert_chain(both.name)
    return tls


def _decoded(text):
    return base64.b64decode(text).decode() if text else None
