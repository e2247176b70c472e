"""The operator's validating webhook as an API server calls it: through a Service, whose name its certificate has."""
import http.client
import json
import ssl

PATH = "/validate-kubeflow-org-v1-pytorchjob"
CONFIGURATION = "validator.training-operator.kubeflow.org"


def install_webhook(admin, namespace, port, timeout_seconds=10):
    """For an operator on this machine: the Service leads to loopback. It fills in the caBundle."""
    admin.create({"apiVersion": "v1", "kind": "Service",
                  "metadata": {"name": "training-operator", "namespace": namespace},
                  "spec": {"type": "ExternalName", "externalName": "localhost"}})
    service = {"name": "training-operator", "namespace": namespace, "path": PATH, "port": port}
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "resources": ["pytorchjobs"],
            "operations": ["CREATE", "UPDATE"]}
    admin.create({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                  "metadata": {"name": CONFIGURATION},
                  "webhooks": [{"name": "validator.pytorchjob.training-operator.kubeflow.org", "sideEffects": "None",
                                "admissionReviewVersions": ["v1"], "clientConfig": {"service": service},
                                "rules": [rule], "failurePolicy": "Fail", "timeoutSeconds": timeout_seconds}]})


def ca_bundle(admin):
    """As it is published, or None."""
    found = admin.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", CONFIGURATION)
    return found["webhooks"][0]["clientConfig"].get("caBundle")


def review_of(job, operation="CREATE", old_job=None):
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": "1", "kind": {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"},
                        "operation": operation, "object": job, "oldObject": old_job}}


class Reviewer:
    """Asks the webhook itself, over one connection."""

    def __init__(self, port, timeout=60):
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout,
                                                      context=ssl._create_unverified_context())

    def post(self, body, path=PATH, method="POST"):
        """The answer's status and text. `body`: bytes, or what becomes JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    def is_allowed(self, job):
        status, text = self.post(review_of(job))
        if status != 200:
            raise AssertionError(f"{status}: {text}")
        return json.loads(text)["response"]["allowed"]

    def close(self):
        self.connection.close()
