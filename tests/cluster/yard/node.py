"""What makes a machine a node of Kubernetes: its files and its programs, containerd, kubelet and kube-proxy."""
import json
from pathlib import Path

from leftovers import CGROUPS, hierarchies

from kube.certificates import write_kubeconfig

from . import addresses

PAUSE = "localhost/pause:1"
CNI = "/etc/cni/net.d"


def describe(folder, number, cluster):
    """Writes the files of node-<number> below `folder`, and node.json, which machine.py reads.

    cluster: {"server": …, "authority": Authority, "programs": {name: path}, "cgroup": …, "gpus": number}
    """
    name, files = addresses.node_name(number), Path(folder) / "files"
    for below in ("files", "var-lib-kubelet/device-plugins", "var-lib-containerd", "var-log", "etc-cni", "run"):
        (Path(folder) / below).mkdir(parents=True)
    paths = cluster["programs"]
    (files / "containerd.toml").write_text(_containerd(paths))
    (Path(folder) / "etc-cni/pods.conflist").write_text(json.dumps(_pod_network(number)))
    kubelet_config = _write(files / "kubelet.json", _kubelet(number, cluster))
    proxy_config = _write(files / "kube-proxy.json", _kube_proxy(name, files))
    _identity(files / "kubelet.kubeconfig", cluster, f"system:node:{name}", ["system:nodes"])
    _identity(files / "kube-proxy.kubeconfig", cluster, "system:kube-proxy", [])
    programs = {
        "containerd": [paths["containerd"], "--config", files / "containerd.toml"],
        "kubelet": [paths["kubelet"], "--config", kubelet_config, "--kubeconfig", files / "kubelet.kubeconfig",
                    "--hostname-override", name, "--node-ip", addresses.node(number),
                    "--node-labels", f"kubernetes.io/os=linux,topology.kubernetes.io/zone=zone-{number}"],
        "kube-proxy": [paths["kube-proxy"], "--config", proxy_config],
    }
    if cluster["gpus"] and number > 1:  # one node has none, as in clusters with a pool of GPUs
        programs["device-plugin"] = [paths["device-plugin"], "--count", cluster["gpus"]]
    _write(Path(folder) / "node.json", {
        "name": name, "path": f"{Path(paths['containerd']).parent}:{Path(paths['runc']).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "programs": {key: [str(word) for word in command] for key, command in programs.items()}})


def _write(path, document):
    path.write_text(json.dumps(document, indent=1))  # JSON is YAML
    return path


def _identity(path, cluster, user, groups):
    certificate, key = cluster["authority"].issue(f"{user.replace(':', '-')}", user, groups)
    write_kubeconfig(path, cluster["server"], cluster["authority"].certificate,
                     {"client-certificate": certificate, "client-key": key})


def _containerd(paths):
    # Without the capability a container's score cannot go below its parent's, and no container would start.
    restrict = "false" if _has_capability(24) else "true"  # CAP_SYS_RESOURCE
    return f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = {restrict}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{paths['runc']}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{paths['cni']}"
    conf_dir = "{CNI}"
"""


def _has_capability(number):
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> number & 1)


def _pod_network(number):
    # Each pod has a cable of its own to its node, and everything is routed: nothing depends on bridges and their filters.
    addresses_of_pods = {"type": "host-local", "ranges": [[{"subnet": addresses.pods(number)}]],
                         "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni"}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": addresses_of_pods}]}


def _kubelet(number, cluster):
    return {
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "address": addresses.node(number), "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(cluster["authority"].certificate)}},
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"{cluster['cgroup']}/{addresses.node_name(number)}",
        "clusterDNS": [addresses.CONTROL], "clusterDomain": "cluster.local", "resolvConf": "",
        "failSwapOn": False, "failCgroupV1": False, "maxPods": 110, "serializeImagePulls": False,
        # This machine's disk is not the cluster's to tidy.
        "imageGCHighThresholdPercent": 100, "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        # A node that is lost is to be noticed within seconds: nodes report as often as the control plane looks.
        "nodeStatusUpdateFrequency": "3s", "nodeLeaseDurationSeconds": 8,
        "syncFrequency": "10s", "shutdownGracePeriod": "0s",
    }


def _kube_proxy(name, files):
    return {
        "kind": "KubeProxyConfiguration", "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "mode": "iptables",
        "clientConnection": {"kubeconfig": str(files / "kube-proxy.kubeconfig")}, "hostnameOverride": name,
        "clusterCIDR": addresses.PODS, "iptables": {"localhostNodePorts": False, "minSyncPeriod": "100ms"},
        # These are settings of the whole machine, which is not ours.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def make_cgroups(name, nodes):
    """A group for each node below one for the cluster, in every hierarchy that this machine has; returns its name."""
    if (CGROUPS / "cgroup.controllers").exists():
        for group in (CGROUPS / name, *(CGROUPS / name / node for node in nodes)):
            group.mkdir(exist_ok=True)
            available = (group.parent / "cgroup.controllers").read_text().split()
            (group.parent / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in available))
        return f"/{name}"
    for hierarchy in hierarchies():
        for group in (hierarchy / name, *(hierarchy / name / node for node in nodes)):
            group.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists():
                    (group / file).write_text((group.parent / file).read_text())
    return f"/{name}"
