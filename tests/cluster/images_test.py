#!/usr/bin/env python3
"""The images, looked at as archives and run as a restricted pod runs them: as user 65532, with nowhere to write but a
volume. Prints their sizes. Takes root. The image with CUDA is looked at where BINARIES_WITH_CUDA has the program.

usage: images_test.py BINARIES BINARIES_WITH_CUDA
"""
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

BINARIES, WITH_CUDA = (Path(argument).resolve() for argument in sys.argv[1:])
REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = {"operator": "trainyard-operator", "runner": "trainyard"}
MB = 1_000_000
LARGEST = {"operator": 40 * MB, "runner": 80 * MB}  # over the base
BEYOND_LINKING = {"operator": {"ca-certificates"}, "runner": {"ca-certificates", "openmpi-bin"}}


class Image:
    """An archive in OCI layout: its digest, its configuration, its layers."""

    def __init__(self, path):
        with tarfile.open(path) as archive:
            blob = lambda digest: archive.extractfile("blobs/" + digest.replace(":", "/")).read()
            entry, = json.load(archive.extractfile("index.json"))["manifests"]
            manifest = json.loads(blob(entry["digest"]))
            self.digest = entry["digest"]
            self.reference = entry["annotations"]["org.opencontainers.image.ref.name"]
            self.config = json.loads(blob(manifest["config"]["digest"]))
            self.layers = [gzip.decompress(blob(layer["digest"])) for layer in manifest["layers"]]

    def size_over_base(self):
        return sum(len(layer) for layer in self.layers[1:])

    def unpack(self, folder):
        """As a runtime lays layers over each other."""
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as files:
                for file in files.getmembers():
                    path = folder / file.name
                    if path.name.startswith(".wh."):
                        gone = path.with_name(path.name.removeprefix(".wh."))
                        shutil.rmtree(gone) if gone.is_dir() and not gone.is_symlink() else gone.unlink(missing_ok=True)
                        continue
                    if not file.isdir() and path.is_symlink():
                        path.unlink()
                    files.extract(file, folder, numeric_owner=True)


def build(*arguments, **options):
    return subprocess.run([REPOSITORY / "container/build", "--base", "bootstrap", *map(str, arguments)],
                          capture_output=True, text=True, timeout=400, **options)


def read_list(name):
    lines = (REPOSITORY / f"container/packages/{name}.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


class Unpacked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="trainyard-images-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.images, cls.roots = {}, {}

    @classmethod
    def unpack(cls, target, archive):
        cls.images[target] = Image(archive)
        cls.roots[target] = cls.work / target
        cls.images[target].unpack(cls.roots[target])

    def run_in(self, target, *command, volume=None, **environment):
        """Read-only, in namespaces of its own and with no network but loopback; `volume` is /mnt."""
        volume = volume or Path(tempfile.mkdtemp(dir=self.work))
        os.chown(volume, 65532, 65532)
        variables = [f"{name}={value}" for name, value in environment.items()]
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "bash", "-euc", """
               ip link set lo up
               mount --bind "$0" "$0" && mount --bind "$1" "$0/mnt" && mount --rbind /dev "$0/dev"
               mount -t tmpfs -o mode=1777 shm "$0/dev/shm" && mount -t proc proc "$0/proc"
               mount -o remount,bind,ro "$0"
               exec chroot --userspec=65532:65532 "$0" env -i PATH=/usr/local/bin:/usr/bin:/bin "${@:2}" """,
             self.roots[target], volume, *variables, *map(str, command)],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


class Images(Unpacked):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        script = REPOSITORY / "tests/cluster/images/build"
        built = subprocess.run([script, BINARIES], stdout=subprocess.PIPE, text=True, check=True, timeout=400)
        cls.folder = Path(built.stdout.strip())
        for target, program in PROGRAMS.items():
            cls.unpack(target, cls.folder / f"{program}.tar")

    def installed(self, target):
        status = (self.roots[target] / "var/lib/dpkg/status").read_text().split("\n\n")
        fields = (dict(re.findall(r"^(Package|Status|Version|Architecture): (.*)$", one, re.M)) for one in status)
        return {(f["Package"], f["Version"], f["Architecture"]) for f in fields
                if f.get("Status") == "install ok installed"}

    def linked(self, target):
        """The packages of the libraries that the program names."""
        program = self.roots[target] / "usr/local/bin" / PROGRAMS[target]
        dynamic = subprocess.run(["readelf", "--dynamic", program], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
        owners = {}
        for listing in (self.roots[target] / "var/lib/dpkg/info").glob("*.list"):
            for path in listing.read_text().splitlines():
                owners.setdefault(Path(path).name, listing.stem.split(":")[0])
        return {owners[name] for name in names}

    def test_sizes(self):
        for target, program in PROGRAMS.items():
            image = self.images[target]
            print(f"{program}: {image.size_over_base() / MB:.1f} MB over a base of {len(image.layers[0]) / MB:.1f} MB")
            self.assertLessEqual(image.size_over_base(), LARGEST[target])

    def test_the_same_programs_make_the_same_digest(self):
        again = build("--binaries", BINARIES, "--output", self.work / "again", "--no-cache")
        self.assertEqual(again.returncode, 0, again.stderr)
        for target, program in PROGRAMS.items():
            self.assertEqual(Image(self.work / f"again/{program}.tar").digest, self.images[target].digest)

    def test_they_bear_the_names_of_the_manifests_and_a_user_without_rights(self):
        for target, program in PROGRAMS.items():
            image = self.images[target]
            self.assertEqual(image.reference, f"docker.io/library/{program}:0.1.0")
            self.assertEqual(image.config["config"]["User"], "65532:65532")
        self.assertEqual(self.images["operator"].config["config"]["Entrypoint"], ["trainyard-operator"])

    def test_no_compiler_and_nothing_of_the_build_is_in_them(self):
        for target in PROGRAMS:
            root = self.roots[target]
            for name in ["cc", "gcc", "g++", "clang", "ld", "as", "make", "cmake", "ninja", "git", "python3"]:
                self.assertFalse((root / "usr/bin" / name).exists(), name)
            self.assertEqual([*root.glob("usr/include/*.h"), *root.glob("var/log/*"), *root.glob("var/lib/apt/lists/*")], [])

    def test_package_lists_are_what_the_programs_link(self):
        for target in PROGRAMS:
            self.assertEqual(read_list(target), self.linked(target) | BEYOND_LINKING[target])

    def test_the_sbom_lists_every_package_and_lies_beside_the_archive(self):
        for target, program in PROGRAMS.items():
            sbom = (self.roots[target] / "usr/share/trainyard/sbom.spdx").read_text()
            self.assertEqual((self.folder / f"{program}.spdx").read_text(), sbom)
            purls = set(re.findall(r"pkg:deb/debian/(\S+?)@(\S+)\?arch=(\S+)", sbom))
            self.assertEqual(purls, self.installed(target))
            links = set(re.findall(r"DYNAMIC_LINK SPDXRef-(\S+)-(?:amd64|arm64|all)\n", sbom + "\n"))
            self.assertLessEqual({re.sub(r"[^A-Za-z0-9.-]", "-", package) for package in self.linked(target)}, links)

    def test_the_notice_names_what_is_linked_and_copyrights_stay(self):
        for target in PROGRAMS:
            notice = (self.roots[target] / "usr/share/trainyard/NOTICE").read_text()
            self.assertTrue((self.roots[target] / "usr/share/trainyard/LICENSE").is_file())
            for package in self.linked(target):
                self.assertRegex(notice, rf"(^|\s){re.escape(package)}[,\s]")
                self.assertTrue((self.roots[target] / "usr/share/doc" / package / "copyright").exists(), package)

    def test_dpkg_finds_the_packages_consistent(self):
        for target in PROGRAMS:
            audit = subprocess.run(["chroot", self.roots[target], "apt-get", "check"], capture_output=True, text=True)
            self.assertEqual(audit.returncode, 0, audit.stderr)

    def test_programs_run_and_say_what_they_are(self):
        for target, program in PROGRAMS.items():
            version = self.run_in(target, program, "--version")
            self.assertEqual((version.returncode, version.stdout), (0, f"{program} 0.1.0\n"), version.stderr)
            self.assertEqual(self.run_in(target, program, "--help").returncode, 0)
            wrong = self.run_in(target, program, "--frobnicate")
            self.assertEqual(wrong.returncode, 2)
            self.assertIn("--frobnicate", wrong.stderr)

    def test_public_authorities_are_trusted(self):
        for target in PROGRAMS:
            bundle = (self.roots[target] / "etc/ssl/certs/ca-certificates.crt").read_text()
            self.assertGreater(bundle.count("BEGIN CERTIFICATE"), 50)

    def test_pods_have_the_shell_that_manifests_and_people_call(self):
        for target in PROGRAMS:
            shell = self.run_in(target, "/bin/bash", "-c", "id --user && df / >/dev/null && touch /tmp/file")
            self.assertEqual((shell.returncode, shell.stdout), (1, "65532\n"), shell.stderr)
            self.assertIn("Read-only file system", shell.stderr)

    def train(self, *launcher):
        volume = Path(tempfile.mkdtemp(dir=self.work))
        done = self.run_in(
            "runner", *launcher, "trainyard", "train", "--model.preset", "qwen3-tiny", "--data.path", "embedded",
            "--data.tokenizer", "bytes", "--training.batch_size", 2, "--training.sequence_length", 16,
            "--training.steps", 2, "--checkpoint.dir", "/mnt/run", "--metrics.dir", "/mnt", volume=volume,
            OMP_NUM_THREADS=1, TMPDIR="/mnt")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Training completed! 2 steps", done.stdout)
        self.assertTrue((volume / "run/step-2").is_dir())
        return done.stdout

    def test_a_rank_trains(self):
        self.assertIn("1 rank", self.train())

    def test_ranks_of_our_launcher_talk_through_gloo(self):
        self.assertIn("2 ranks", self.train("trainyard", "launch", "--nproc-per-node", 2, "--"))

    def test_ranks_of_mpirun_talk_through_mpi(self):
        self.assertIn("2 ranks", self.train("mpirun", "-n", 2, "--oversubscribe"))

    def test_a_launcher_with_no_temporary_folder_says_what_to_set(self):
        launcher = ["trainyard", "launch", "--nproc-per-node", 2, "--", "true"]
        for environment, message in [({}, "no temporary folder can be made in /tmp: Read-only file system; set TMPDIR"),
                                     ({"TMPDIR": "/nowhere"}, "TMPDIR names no folder")]:
            refused = self.run_in("runner", *launcher, **environment)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(message, refused.stderr)

    def test_programs_of_another_release_are_refused(self):
        strange = self.work / "strange"
        strange.mkdir()
        subprocess.run(["gcc", "-shared", "-x", "c", "-Wl,-soname,libstrange.so.7", "-o", "libstrange.so", "/dev/null"],
                       cwd=strange, check=True)
        subprocess.run(["gcc", "-x", "c", "-", "-o", "trainyard-operator", "-x", "none", "-Wl,--no-as-needed",
                        "libstrange.so"], cwd=strange, check=True, text=True, input="int main(void) { return 0; }")
        refused = build("operator", "--binaries", strange, "--output", self.work / "refused")
        self.assertNotEqual(refused.returncode, 0)
        self.assertRegex(refused.stderr, "error: trainyard-operator was linked on another release .*libstrange.so.7")
        self.assertFalse((self.work / "refused").exists())

    def test_wrong_arguments_are_said(self):
        for arguments, message in [(["runer"], "unknown argument 'runer'"), (["--base"], "--base needs a value"),
                                   (["--binaries", "/nowhere"], "--binaries: /nowhere is not there"),
                                   (["--binaries", self.work], f"--binaries: {self.work} has no trainyard-operator")]:
            refused = subprocess.run([REPOSITORY / "container/build", *arguments], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(refused.stderr.splitlines()[-1], "error: " + re.escape(message))

    def test_a_program_without_cuda_is_none_for_its_image(self):
        refused = build("runner-cuda", "--binaries", BINARIES, "--output", self.work / "refused")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("trainyard was built without CUDA: cmake --preset cuda", refused.stderr.splitlines()[-1])


@unittest.skipUnless((WITH_CUDA / "trainyard").exists(), f"no trainyard in {WITH_CUDA}: cmake --preset cuda")
class CudaImage(Unpacked):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        built = build("runner-cuda", "--binaries", WITH_CUDA, "--output", cls.work / "archive")
        if built.returncode:
            raise AssertionError(built.stderr)
        cls.unpack("runner-cuda", cls.work / "archive/trainyard-cuda.tar")

    def trainyard(self, *arguments, **environment):
        return self.run_in("runner-cuda", "trainyard", *arguments, **environment)

    def test_it_bears_the_name_of_the_manifests_and_a_user_without_rights(self):
        image = self.images["runner-cuda"]
        print(f"trainyard-cuda: {image.size_over_base() / MB:.1f} MB over its base")
        self.assertEqual(image.reference, "docker.io/library/trainyard-cuda:0.1.0")
        self.assertEqual(image.config["config"]["User"], "65532:65532")
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=compute,utility", image.config["config"]["Env"])

    def test_it_finds_nvidias_libraries_and_says_that_the_driver_is_the_hosts(self):
        environment = self.trainyard("--env").stdout
        versions = dict(line.split("==") for line in read_list("cuda"))
        self.assertIn(f"nccl      {versions['nvidia-nccl-cu13']} ", environment)
        self.assertIn(f"cudnn     {versions['nvidia-cudnn-cu13'].rpartition('.')[0]} ", environment)
        self.assertIn("there is no NVIDIA driver", environment)

    def test_it_trains_where_there_is_no_gpu_and_not_where_one_is_asked_for(self):
        train = ["train", "--model.preset", "qwen3-tiny", "--data.path", "embedded", "--data.tokenizer", "bytes",
                 "--training.batch_size", 2, "--training.sequence_length", 16, "--training.steps", 2,
                 "--checkpoint.dir", "/mnt/run", "--metrics.dir", "/mnt"]
        done = self.trainyard(*train, OMP_NUM_THREADS=1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Training completed! 2 steps", done.stdout)
        refused = self.trainyard(*train, "--device", "cuda")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("there is no NVIDIA driver", refused.stderr)

    def test_the_sbom_names_what_is_nvidias_and_its_licences_are_there(self):
        root = self.roots["runner-cuda"]
        sbom = (root / "usr/share/trainyard/sbom.spdx").read_text()
        for line in read_list("cuda"):
            name, version = line.split("==")
            if name not in {"nvidia-cublas", "nvidia-cuda-cupti", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-nccl-cu13"}:
                continue  # the compiler's
            self.assertIn(f"pkg:pypi/{name}@{version}\n", sbom)
            self.assertTrue((root / f"usr/local/lib/cuda/{name.replace('-', '_')}-{version}.txt").is_file(), name)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("mmdebstrap"):
        print("SKIPPED: takes root, buildah and mmdebstrap")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
