"""A certificate authority of the test's own, and kubeconfigs for the identities that it vouches for."""
import json
import subprocess
from pathlib import Path

_CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Authority:
    def __init__(self, folder, environment=None):
        """`environment`: of openssl, which says when certificates begin to hold."""
        self.folder, self._environment = Path(folder), environment
        self.folder.mkdir()
        # Without a configuration of our own the system's would add extensions that contradict these.
        self.configuration = self.folder / "openssl.cnf"
        self.configuration.write_text("[req]\ndistinguished_name = name\n[name]\n")
        self.certificate, self.key = self._files("ca")
        self._openssl("req", "-x509", *_CURVE, "-keyout", self.key, "-out", self.certificate, "-days", "3650",
                      "-subj", "/CN=trainyard-tests", "-config", self.configuration,
                      "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "subjectKeyIdentifier=hash")

    def issue(self, file, name, groups=(), hosts=(), days=365):
        """Certificate and key files for a user (its groups are organizations to a certificate) or a server."""
        certificate, key = self._files(file)
        subject = "".join(f"/{field}={_escaped(value)}" for field, value in [*(("O", g) for g in groups), ("CN", name)])
        extensions = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=clientAuth,serverAuth"]
        if hosts:
            extensions.append("subjectAltName=" + ",".join(hosts))
        self._openssl("req", "-x509", *_CURVE, "-keyout", key, "-out", certificate, "-days", days, "-subj", subject,
                      "-CA", self.certificate, "-CAkey", self.key, "-config", self.configuration,
                      *(word for extension in extensions for word in ("-addext", extension)))
        return certificate, key

    def signing_key(self, file):
        """The private key that signs ServiceAccount tokens, and the public one that checks them."""
        public, key = self.folder / f"{file}.pub", self.folder / f"{file}.key"
        self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        self._openssl("pkey", "-in", key, "-pubout", "-out", public)
        return key, public

    def _files(self, file):
        return self.folder / f"{file}.crt", self.folder / f"{file}.key"

    def _openssl(self, *arguments):
        command = ["openssl", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=self._environment)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr}")


def _escaped(value):
    return value.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+").replace("=", "\\=")


def write_kubeconfig(path, server, authority, user):
    """`user` as in a kubeconfig: {"client-certificate": …, "client-key": …} or {"token": …}."""
    document = {
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "test", "user": {key: str(value) for key, value in user.items()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    Path(path).write_text(json.dumps(document, indent=1))  # JSON is YAML
    return Path(path)
