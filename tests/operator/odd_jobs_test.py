#!/usr/bin/env python3
"""Jobs that are wrong, huge or odd: the API server (with our schema and our webhook) and `trainyard-operator validate`
name the field and what is allowed; what is accepted runs or says why not, and nothing of others is touched.

usage: odd_jobs_test.py OPERATOR
"""
import json
import subprocess
import sys
import unittest
from pathlib import Path

from kube import ApiError, ControlPlane, OperatorProcess, wait_until
from kube.jobs import API, Kubelet, pytorch_job
from kube.webhook import ca_bundle, install_webhook

ROOT = Path(__file__).resolve().parents[2]
WORKER = "spec.pytorchReplicaSpecs.Worker"
CONTAINER = f"{WORKER}.template.spec.containers.0"
WORKERS = "spec.pytorchReplicaSpecs[Worker]"

# (path, value, what the API server's answer has in it, what validate's has)
WRONG = [
    ("spec", "text", "spec in body must be of type object", "spec: must be an object, but is \"text\""),
    ("spec.pytorchReplicaSpecs", None, "spec.pytorchReplicaSpecs: Required value", "spec.pytorchReplicaSpecs"),
    ("spec.pytorchReplicaSpecs.Chief", {"template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}},
     'Unsupported value: "Chief": supported values: "Master", "Worker"', 'supported values: "Master", "Worker"'),
    (f"{WORKER}.replicas", "two", "Worker.replicas in body must be of type int", "replicas: must be a whole number"),
    (f"{WORKER}.replicas", 1.5, "Worker.replicas in body must be of type int", "must be a whole number, but is 1.5"),
    (f"{WORKER}.replicas", 0, f"{WORKERS}.replicas: Forbidden: must be at least 1", "must be at least 1"),
    (f"{WORKER}.replicas", -1, f"{WORKER}.replicas: Invalid value: -1: should be a non-negative", "must be at least 1"),
    (f"{WORKER}.replicas", 2_000_000_000, f"{WORKERS}.replicas: Invalid value: 2000000000: must be no more than 100000",
     "must be no more than 100000"),
    (f"{WORKER}.replicas", 1 << 70, f"{WORKER}.replicas", f"{WORKER}.replicas"),
    ("spec.pytorchReplicaSpecs.Master.replicas", 2, "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1",
     "Forbidden: must be 1"),
    (f"{WORKER}.template.spec.containers", [], f"{WORKERS}.template.spec.containers: Required", "Required value"),
    (f"{CONTAINER}.image", "", "containers[0].image: Required value", "containers[0].image: Required"),
    (f"{CONTAINER}.name", "main", "must have at least one container with name pytorch", "container with name pytorch"),
    (f"{CONTAINER}.env", [{"value": "x"}], "env[0].name: Required", "env[0].name: is missing, but required"),
    (f"{CONTAINER}.env", "A=b", "env in body must be of type array", "env: must be a list"),
    (f"{CONTAINER}.resources", {"limits": {"cpu": "lots"}}, "resources.limits.cpu", "must be a quantity such as 2"),
    ("spec.runPolicy.suspend", "yes", "spec.runPolicy.suspend in body must be of type bool", "must be true or false"),
    ("spec.runPolicy.activeDeadlineSeconds", "1h", "activeDeadlineSeconds in body must be of type integer",
     "spec.runPolicy.activeDeadlineSeconds: must be a whole number"),
    ("spec.runPolicy.managedBy", "me", 'managedBy: Unsupported value: "me": supported values: "kubeflow.org/training',
     'Unsupported value: "me": supported values'),
    ("spec.elasticPolicy", {"minReplicas": 3, "maxReplicas": 2},
     "spec.elasticPolicy.minReplicas: Invalid value: 3: must be no more than spec.elasticPolicy.maxReplicas, 2",
     "must be no more than"),
    ("spec.nprocPerNode", 4, "spec.nprocPerNode in body must be of type string", "spec.nprocPerNode: must be a text"),
    ("metadata.name", "a.b", "metadata.name: Invalid value: \"a.b\"", "a DNS-1035 label must consist of"),
    ("metadata.name", "a" * 64, "must be no more than 63 characters", "must be no more than 63 characters"),
    ("metadata.name", "a" * 60, "must be no more than 54 characters, since a service's name", "no more than 54"),
    ("metadata.name", "jöb", "metadata.name", "metadata.name: Invalid value: \"jöb\""),
    (f"{WORKER}.template.spec.topologySpreadConstraints",
     [{"maxSkew": skew, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"} for skew in (1, 2)],
     "topologySpreadConstraints[1]: Duplicate value", "topologySpreadConstraints[1]: "),
    ("metadata.annotations", {"a": 1}, "annotations", "metadata.annotations.a: must be a text, but is 1"),
]


def a_pod(ports=(), others=(), **fields):
    return {"containers": [{"name": "pytorch", "image": "i", "ports": list(ports)}, *others], **fields}


def other(pod=None, **fields):
    """A pod with a second container that has these fields."""
    return a_pod(others=[{"name": "b", "image": "i", **fields}], **(pod or {}))


def tolerating(**toleration):
    return a_pod(tolerations=[toleration])


def spread(**constraint):
    return a_pod(topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", **constraint}])


IDS = "must be between 0 and 2147483647, inclusive"


VOLUME, MOUNT = {"volumes": [{"name": "v", "emptyDir": {}}]}, {"name": "v", "mountPath": "/v"}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
# (pod, what the API server says of it, and therefore webhook and validate say of a job that has it)
NO_PODS = [
    (a_pod([{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "web"}]),
     'containers[0].ports[1].name: Duplicate value: "web"'),
    (a_pod([{"containerPort": 0}]), "containers[0].ports[0].containerPort: Required value"),
    (a_pod([{"containerPort": 65536}]),
     "containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive"),
    (a_pod([{"containerPort": 80, "hostPort": -1}]),
     "containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"),
    (a_pod([{"containerPort": 80, "protocol": "tcp"}]),
     'containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'),
    (a_pod([{"containerPort": 80, "name": "a-sixteen-letter"}]),
     'containers[0].ports[0].name: Invalid value: "a-sixteen-letter": must be no more than 15 '),
    (a_pod([{"containerPort": 80, "name": "wEb"}]),
     'containers[0].ports[0].name: Invalid value: "wEb": must contain only alpha-numeric characters (a-z, 0-9), and '),
    (a_pod([{"containerPort": 80, "name": "80"}]),
     'containers[0].ports[0].name: Invalid value: "80": must contain at least one letter (a-z)'),
    (a_pod([{"containerPort": 80, "name": "a--b"}]),
     'containers[0].ports[0].name: Invalid value: "a--b": must not contain consecutive hyphens'),
    (a_pod([{"containerPort": 80, "name": "a-"}]),
     'containers[0].ports[0].name: Invalid value: "a-": must not begin or end with a hyphen'),
    (a_pod([{"containerPort": 80, "hostPort": 81}], hostNetwork=True),
     "containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"),
    (a_pod([{"containerPort": 80, "hostPort": 8080}], [{"name": "b", "image": "i", "ports": [
        {"containerPort": 90, "hostPort": 8080}]}]), 'containers[1].ports[0].hostPort: Duplicate value: "TCP//8080"'),
    (a_pod([{"containerPort": 23456}], [{"name": "b", "image": "i", "ports": [{"containerPort": 23456}]}],
           hostNetwork=True), 'containers[1].ports[0].hostPort: Duplicate value: "TCP//23456"'),
    (a_pod(others=[{"name": "b", "image": "i", "env": [{"name": "A", "value": "1", "valueFrom": FIELD}]}]),
     'containers[1].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'),
    (a_pod(initContainers=[{"name": "pytorch", "image": "i"}]), 'initContainers[0].name: Duplicate value: "pytorch"'),
    (a_pod(others=[{"name": "Log_1", "image": "i"}]),
     'containers[1].name: Invalid value: "Log_1": a lowercase RFC 1123 label must consist of lower case alphanumeric '),
    *((a_pod(initContainers=[{"name": "a", "image": "i", field: {"exec": {"command": ["true"]}}}]),
       f"initContainers[0].{field}: Forbidden: may not be set for init containers without restartPolicy=Always")
      for field in ("livenessProbe", "readinessProbe", "startupProbe")),
    (a_pod(others=[{"name": "b", "image": "i", "volumeMounts": [
        {"name": "v", "mountPath": "/v", "subPath": "x", "subPathExpr": "y"}]}],
           volumes=[{"name": "v", "emptyDir": {}}]),
     'containers[1].volumeMounts[0].subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually exclusive'),
    (other(imagePullPolicy="always"),
     'containers[1].imagePullPolicy: Unsupported value: "always": supported values: "Always", "IfNotPresent", "Never"'),
    (other(env=[{"name": "A=B", "value": "1"}]),
     'containers[1].env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable'),
    (other(resources={"limits": {"gpu": 1}}),
     'resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers'),
    (other(resources={"limits": {"nvidia.com/g pu": 1}}),
     'resources.limits[nvidia.com/g pu]: Invalid value: "nvidia.com/g pu": name part must consist of alphanumeric'),
    (other(resources={"limits": {"nvidia.com/gpu": "500m"}}),
     'resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'),
    (other(resources={"limits": {"cpu": -1}}),
     'resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
    (other(resources={"limits": {"cpu": 1}, "requests": {"cpu": "2000m"}}),
     'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
    (other(resources={"requests": {"nvidia.com/gpu": 1}}),
     "resources.limits: Required value: Limit must be set for non overcommitable resources"),
    (other(resources={"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}),
     'resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'),
    (other(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
     "livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"),
    (other(readinessProbe={"periodSeconds": 1}), "readinessProbe: Required value: must specify a handler type"),
    (other(readinessProbe={"exec": {"command": ["a"]}, "periodSeconds": -1}),
     "readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"),
    (other(lifecycle={"preStop": {}}), "lifecycle.preStop: Required value: must specify a handler type"),
    (other(volumeMounts=[{**MOUNT, "subPath": "a/../b"}], pod=VOLUME),
     """containers[1].volumeMounts.subPath: Invalid value: "a/../b": must not contain '..'"""),
    (other(volumeMounts=[{**MOUNT, "subPathExpr": "/b"}], pod=VOLUME),
     'containers[1].volumeMounts.subPathExpr: Invalid value: "/b": must be a relative path'),
    (a_pod(volumes=[{"name": "V_1", "emptyDir": {}}]),
     'volumes[0].name: Invalid value: "V_1": a lowercase RFC 1123 label must consist of lower case'),
    (a_pod(volumes=[{"name": "a" * 64, "emptyDir": {}}]), "must be no more than 63 characters"),
    (a_pod(volumes=[{"name": "v", "hostPath": {"path": "/a"}, "emptyDir": {}}]),
     "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"),
    (a_pod(volumes=[{"name": "v", "configMap": {}}]), "volumes[0].configMap.name: Required value"),
    (a_pod(volumes=[{"name": "v", "secret": {}}]), "volumes[0].secret.secretName: Required value"),
    (a_pod(hostname="A_b"), 'hostname: Invalid value: "A_b": a lowercase RFC 1123 label must consist'),
    (a_pod(activeDeadlineSeconds=0),
     "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    (a_pod(dnsPolicy="first"), 'dnsPolicy: Unsupported value: "first": supported values: "ClusterFirst'),
    (a_pod(dnsPolicy="None"), "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    (a_pod(dnsPolicy="None", dnsConfig={"searches": ["a"]}),
     "dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"),
    (a_pod(nodeSelector={"a b": "c"}), 'nodeSelector: Invalid value: "a b": name part must consist of alphanumeric'),
    (a_pod(nodeSelector={"a": "b c"}), 'nodeSelector: Invalid value: "b c": a valid label must be an empty string or'),
    (a_pod(nodeSelector={"A.b/c": "d"}), 'nodeSelector: Invalid value: "A.b/c": prefix part a lowercase RFC 1123 sub'),
    (a_pod(nodeSelector={"a/b/c": "d"}), 'nodeSelector: Invalid value: "a/b/c": a qualified name must consist of'),
    (a_pod(nodeSelector={"a/": "d"}), 'nodeSelector: Invalid value: "a/": name part must be non-empty'),
    (a_pod(nodeSelector={"/a": "d"}), 'nodeSelector: Invalid value: "/a": prefix part must be non-empty'),
    (a_pod(nodeSelector={"a" * 64: "d"}), "name part must be no more than 63 characters"),
    (a_pod(nodeSelector={"a": "d" * 64}), "must be no more than 63 characters"),
    (a_pod(securityContext={"runAsUser": -1}), f"securityContext.runAsUser: Invalid value: -1: {IDS}"),
    (a_pod(securityContext={"runAsGroup": 1 << 31}), f"securityContext.runAsGroup: Invalid value: 2147483648: {IDS}"),
    (a_pod(securityContext={"fsGroup": -1}), f"securityContext.fsGroup: Invalid value: -1: {IDS}"),
    (a_pod(securityContext={"supplementalGroups": [0, -1]}),
     f"securityContext.supplementalGroups[1]: Invalid value: -1: {IDS}"),
    (other(securityContext={"runAsUser": 1 << 31}),
     f"containers[1].securityContext.runAsUser: Invalid value: 2147483648: {IDS}"),
    (other(securityContext={"runAsGroup": -1}), f"containers[1].securityContext.runAsGroup: Invalid value: -1: {IDS}"),
    (a_pod(ephemeralContainers=[{"name": "e", "image": "i", "terminationMessagePolicy": "File",
                                 "imagePullPolicy": "Always"}]),
     "ephemeralContainers: Forbidden: cannot be set on create"),
    (spread(maxSkew=0), "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"),
    (spread(topologyKey=""), "topologySpreadConstraints[0].topologyKey: Required value: can not be empty"),
    (spread(whenUnsatisfiable=""), 'topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported '
                                   'values: "DoNotSchedule", "ScheduleAnyway"'),
    (spread(minDomains=0), "topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero"),
    (spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
     "topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
     "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"),
    (tolerating(key="a", operator="Exists", value="b"),
     """tolerations[0].operator: Invalid value: "b": value must be empty when `operator` is 'Exists'"""),
    (tolerating(operator="Equal"), "tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is"),
    (tolerating(key="a", operator="equal"),
     'tolerations[0].operator: Unsupported value: "equal": supported values: "Equal", "Exists"'),
    (tolerating(key="a", operator="Exists", effect="Never"), 'tolerations[0].effect: Unsupported value: "Never": supported'),
    (tolerating(key="a", operator="Exists", tolerationSeconds=5),
     "tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set"),
    (tolerating(key="a", value="b c"), 'tolerations[0].operator: Invalid value: "b c": a valid label must be an empty string'),
]


SPEC = f"{WORKER}.template.spec"
# Fields that are left empty: the API server drops them, or says that they are required.
EMPTY = ["status", "metadata.labels", "metadata.annotations", "metadata.creationTimestamp", "metadata.finalizers",
         "spec.elasticPolicy", "spec.runPolicy", "spec.nprocPerNode", "spec.pytorchReplicaSpecs.Master",
         f"{WORKER}.replicas", f"{WORKER}.restartPolicy", f"{WORKER}.template.metadata",
         *(f"{SPEC}.{field}" for field in ("nodeSelector", "tolerations", "affinity", "volumes", "initContainers",
                                           "imagePullSecrets", "securityContext", "serviceAccountName", "hostNetwork",
                                           "schedulerName", "priorityClassName", "terminationGracePeriodSeconds")),
         *(f"{CONTAINER}.{field}" for field in ("args", "command", "env", "envFrom", "ports", "resources",
                                                "volumeMounts", "workingDir", "imagePullPolicy", "securityContext")),
         "spec", "spec.pytorchReplicaSpecs", WORKER, f"{WORKER}.template", SPEC, f"{SPEC}.containers",
         f"{CONTAINER}.name", f"{CONTAINER}.image"]
# (path, value) of what the API server takes, or not, before it looks at the schema
ODD = [(f"{WORKER}.template.metadata", {"creationTimestamp": None}), ("metadata.labels", {"a": None}),
       ("status", {"conditions": None, "replicaStatuses": None}), ("status", {"condtions": []}),
       ("status", {"startTime": 5}), ("metadata.lables", {}), ("metadata.name", 5), ("metadata.generateName", 5),
       ("metadata.finalizers", [None]), (f"{CONTAINER}.args", [None]), (f"{CONTAINER}.args", [""]),
       (f"{CONTAINER}.comand", None), (f"{CONTAINER}.ports", [{"containerPort": 80.0, "protocol": None}]),
       (f"{CONTAINER}.ports", [{"containerPort": None}]), (f"{CONTAINER}.env", [{"name": "A", "value": None}]),
       (f"{CONTAINER}.env", [None]), (f"{CONTAINER}.resources", {"limits": {"cpu": None}}),
       ("spec.runPolicy", {"suspend": None, "backoffLimit": 3.0}), ("spec.runPolicy", {"backoffLimit": 0.5}),
       (f"{SPEC}.nodeSelector", {"a": None})]


def changed(path, value):
    job = pytorch_job("job", "team")
    *parents, last = path.split(".")
    place = job
    for name in parents:
        place = place[int(name)] if name.isdigit() else place[name]
    place[last] = value
    return job


class OddJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane(crds=[ROOT / "manifests/crd"]))
        cls.admin = cls.cluster.client()
        cls.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        cls.kubelet = Kubelet(cls.admin, "team")
        cls.operator = OperatorProcess(sys.argv[1], cls.cluster.kubeconfig, cls.cluster.folder / "operator.log")
        install_webhook(cls.admin, "default", cls.operator.webhook_port)
        cls.enterClassContext(cls.operator)
        wait_until("the caBundle", lambda: ca_bundle(cls.admin), 60, [cls.operator])
        wait_until("the API server to call the webhook", lambda: "403" in cls.answer_to(changed(*WRONG[5][:2])), 60)

    def tearDown(self):
        self.operator.must_be_running()

    @classmethod
    def answer_to(cls, job, **query):
        try:
            cls.admin.request("POST", f"/apis/{API}/namespaces/team/pytorchjobs", job,
                              query={"dryRun": "All", **query})
            return ""
        except ApiError as error:
            return str(error)

    def trouble_of(self, job):
        conditions = self.kubelet.status(job).get("conditions") or []
        return next((each for each in conditions if each["type"] == "Trouble" and each["status"] == "True"), {})

    def wait_for_trouble(self, job, reason, text):
        wait_until(f"{job} to say {reason}: {text}", lambda: self.trouble_of(job).get("reason") == reason
                   and text in self.trouble_of(job)["message"], 60, [self.operator])

    def test_wrong_values_are_named_by_the_api_server_and_offline(self):
        for path, value, online, offline in WRONG:
            with self.subTest(path=path, value=str(value)[:40]):
                job = changed(path, value)
                self.assertIn(online, self.answer_to(job))
                ended = subprocess.run([sys.argv[1], "validate", "-f", "-"], input=json.dumps(job).encode(), timeout=60,
                                       capture_output=True)
                self.assertEqual(ended.returncode, 2, ended.stdout)
                self.assertIn(offline, ended.stderr.decode())

    def test_what_the_api_server_does_before_it_validates_is_done_offline(self):
        """kubectl asks the server to refuse unknown fields, too."""
        for path, value in [*((path, None) for path in EMPTY), *ODD]:
            with self.subTest(path=path, value=value):
                job = changed(path, value)
                online = self.answer_to(job, fieldValidation="Strict")
                ended = subprocess.run([sys.argv[1], "validate", "-f", "-"], input=json.dumps(job).encode(), timeout=60,
                                       capture_output=True)
                self.assertEqual(ended.returncode, 2 if online else 0, online + ended.stderr.decode())

    def test_a_generated_name_is_as_the_api_servers(self):
        job = changed("metadata", {"generateName": "tune-", "namespace": "team"})
        created = self.admin.create(job)
        names = [created["metadata"]["name"]]
        rendered = subprocess.run([sys.argv[1], "render", "-o", "json", "-f", "-"], input=json.dumps(job).encode(),
                                  timeout=60, capture_output=True, check=True)
        names += {each["metadata"]["labels"]["training.kubeflow.org/job-name"]
                  for each in json.loads(rendered.stdout)["items"] if each["kind"] == "Pod"}
        self.assertEqual(len(names), 2)
        for name in names:
            self.assertRegex(name, "^tune-[bcdfghjklmnpqrstvwxz2456789]{5}$")
        self.admin.delete(API, "PyTorchJob", names[0], "team")

    def test_what_no_pod_can_have_is_said_of_the_job_in_the_servers_own_words(self):
        for spec, said in NO_PODS:
            with self.subTest(said=said):
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
                with self.assertRaises(ApiError) as refused:
                    self.admin.request("POST", "/api/v1/namespaces/team/pods", pod, query={"dryRun": "All"})
                self.assertIn("422", str(refused.exception))
                self.assertIn(said, str(refused.exception))
                job = changed(f"{WORKER}.template.spec", spec)
                self.assertIn(said, self.answer_to(job))
                ended = subprocess.run([sys.argv[1], "validate", "-f", "-"], input=json.dumps(job).encode(), timeout=60,
                                       capture_output=True)
                self.assertEqual(ended.returncode, 2, ended.stdout)
                self.assertIn(said, ended.stderr.decode())

    def test_names_that_others_have_are_left_alone(self):
        labels = {"training.kubeflow.org/job-name": "taken", "training.kubeflow.org/replica-type": "worker",
                  "training.kubeflow.org/replica-index": "0",
                  "training.kubeflow.org/operator-name": "pytorchjob-controller"}
        strange = {"apiVersion": API, "kind": "PyTorchJob", "name": "taken", "controller": True, "uid": "another"}
        metadata = {"namespace": "team", "labels": labels}
        others = [
            self.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": {
                **metadata, "name": "taken-worker-0", "finalizers": ["example.org/kept"]},
                "spec": {"containers": [{"name": "pytorch", "image": "i"}]}}),
            self.admin.create({"apiVersion": "v1", "kind": "Service", "metadata": {
                **metadata, "name": "taken-worker-1", "finalizers": ["example.org/kept"], "ownerReferences": [strange]},
                "spec": {"ports": [{"port": 1}]}})]
        self.admin.create(pytorch_job("taken", "team", run_policy={"cleanPodPolicy": "All"}))
        self.wait_for_trouble("taken", "NameTaken", "belongs to something else")
        self.admin.patch(API, "PyTorchJob", "taken", {"spec": {"runPolicy": {"suspend": True}}}, "team")
        self.kubelet.wait_for_state("taken", "Suspended")
        self.admin.delete(API, "PyTorchJob", "taken", "team")
        wait_until("its pods to be gone", lambda: len(self.admin.list("v1", "Pod", "team", "training.kubeflow.org/"
                                                                      "job-name=taken")) == 1, 60)
        pod = self.admin.get("v1", "Pod", "taken-worker-0", "team")
        self.assertEqual(pod["metadata"]["resourceVersion"], others[0]["metadata"]["resourceVersion"])
        service = self.admin.get("v1", "Service", "taken-worker-1", "team")
        self.assertEqual(service["metadata"]["uid"], others[1]["metadata"]["uid"])
        for thing in others:
            self.admin.patch("v1", thing["kind"], thing["metadata"]["name"], {"metadata": {"finalizers": None}}, "team")

    def test_5000_variables_and_unicode(self):
        job = pytorch_job("rich", "team", workers=5, annotations={"note": "Übung 日本 😀\u2028"})
        values = [{"name": f"V{number}", "value": "ü😀" if number % 2 else ""} for number in range(5000)]
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"] = values
        self.admin.create(job)
        self.kubelet.wait_for_pods("rich", 6, 90)
        worker = next(pod for pod in self.kubelet.pods("rich") if pod["metadata"]["name"] == "rich-worker-4")
        env = worker["spec"]["containers"][0]["env"]
        self.assertEqual(env[:5000], [{key: text for key, text in each.items() if text} for each in values])
        self.assertIn("RANK", [each["name"] for each in env[5000:]])
        self.kubelet.run_until_running("rich", 90)
        self.end_with_message(worker, "é😀" * 682)  # 4,092 bytes: a kubelet keeps 4,096
        wait_until("the cause to be kept", lambda: "é😀" in self.kubelet.status("rich").get("restarts", {}).get(
            "lastCause", {}).get("message", ""), 60, [self.operator])
        self.admin.delete(API, "PyTorchJob", "rich", "team")

    def end_with_message(self, pod, message):
        ended = {"exitCode": 1, "reason": "Error", "message": message}
        self.admin.patch("v1", "Pod", pod["metadata"]["name"], {"status": {"phase": "Failed", "containerStatuses": [
            {"name": "pytorch", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
             "state": {"terminated": ended}}]}}, "team", "status")

    def test_a_job_is_not_scaled_to_zero_but_told_of_suspend(self):
        self.admin.create(pytorch_job("small", "team"))
        none = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 0}}}}
        for subresource, change in (("scale", {"spec": {"replicas": 0}}), (None, none)):
            with self.assertRaisesRegex(ApiError, "cannot be scaled to 0; use suspend"):
                self.admin.patch(API, "PyTorchJob", "small", change, "team", subresource)
        self.admin.patch(API, "PyTorchJob", "small", {"metadata": {"labels": {"a": "b"}}}, "team")
        self.admin.patch(API, "PyTorchJob", "small", {"spec": {"replicas": 1}}, "team", "scale")
        self.admin.delete(API, "PyTorchJob", "small", "team")

    def test_labels_that_no_object_can_have_are_refused(self):
        wrong = {"labels": {"größe": "groß", "a": "b c"}, "annotations": {"a b": "c", "Example.com/a": "right"}}
        said = ['labels: Invalid value: "größe": name part must', 'labels: Invalid value: "b c": a valid label must',
                'annotations: Invalid value: "a b": name part must']
        for path in ("metadata", f"{WORKER}.template.metadata"):
            job = changed(path, {"name": "job", "namespace": "team", **wrong} if path == "metadata" else wrong)
            ended = subprocess.run([sys.argv[1], "validate", "-f", "-"], input=json.dumps(job).encode(), timeout=60,
                                   capture_output=True)
            self.assertEqual(ended.returncode, 2)
            for answer in (self.answer_to(job), ended.stderr.decode()):
                for each in said:
                    self.assertIn("metadata." + each, answer)
                self.assertNotIn("Example.com", answer)

    def test_a_job_that_keeps_to_the_restricted_standard_gets_all_its_pods(self):
        """Init containers, too: the reference's are refused there."""
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        job = pytorch_job("strict", "strict", workers=1)
        for replica in job["spec"]["pytorchReplicaSpecs"].values():
            spec = replica["template"]["spec"]
            spec["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
            spec["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False,
                                                        "capabilities": {"drop": ["ALL"]}}
        self.admin.create(job)
        Kubelet(self.admin, "strict").wait_for_pods("strict", 2, 60)

    def test_a_manifest_that_etcd_cannot_store_twice_over(self):
        job = pytorch_job("large", "team", workers=1)
        container = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": f"V{number}", "value": "x" * 10_000} for number in range(400)]
        self.assertRegex(self.answer_or_creation(job), "413|too large|request is too large")
        container["env"] = container["env"][:135]
        self.admin.create(job)  # 1.4 MB; its pod is a little larger than that
        wait_until("its pod, or the reason why there is none", lambda: len(self.kubelet.pods("large")) == 2
                   or self.trouble_of("large").get("reason") == "CannotCreate", 60, [self.operator])
        self.admin.delete(API, "PyTorchJob", "large", "team")

    def answer_or_creation(self, job):
        try:
            self.admin.create(job)
            return ""
        except ApiError as error:
            return str(error)

    def test_a_scale_that_no_cluster_holds(self):
        """The scale subresource is not what the webhook sees."""
        self.admin.create(pytorch_job("scaled", "team", workers=1))
        self.kubelet.wait_for_pods("scaled", 2)
        self.admin.patch(API, "PyTorchJob", "scaled", {"spec": {"replicas": 2_000_000_000}}, "team", "scale")
        self.wait_for_trouble("scaled", "InvalidSpec", "Worker.replicas is 2000000000; 100000 is the most")
        self.assertLess(self.operator.resident_bytes(), 300 << 20)
        self.admin.patch(API, "PyTorchJob", "scaled", {"spec": {"replicas": 2}}, "team", "scale")
        self.kubelet.wait_for_pods("scaled", 3, 60)
        self.admin.delete(API, "PyTorchJob", "scaled", "team")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
