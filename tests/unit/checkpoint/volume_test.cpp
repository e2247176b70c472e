#include "checkpoint/volume.h"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <array>

#include "support/support.h"

namespace trainyard::checkpoint {

using Catch::Contains;

namespace {

// A pod's, as containerd and the kubelet make it on ext4, with volumes of every kind.
constexpr std::string_view kPod =
    R"(1561 1466 0:267 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/31/fs,upperdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/77/fs,workdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/77/work
1562 1561 0:269 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1563 1561 0:270 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
1564 1561 254:1 /var/lib/kubelet/pods/0a6fbd5c-5e4a-4d0c-9d5f-4d7a9d6f1b0e/volumes/kubernetes.io~empty-dir/checkpoints /checkpoints rw,relatime - ext4 /dev/vda1 rw
1565 1561 254:16 /pods/0a6fbd5c-5e4a-4d0c-9d5f-4d7a9d6f1b0e/volumes/kubernetes.io~empty-dir/work/run-1 /own-disk rw,relatime - ext4 /dev/vdb rw
1566 1561 0:241 / /memory rw,relatime - tmpfs tmpfs rw,size=1048576k,inode64
1567 1561 0:99 / /nfs rw,relatime shared:52 master:3 - nfs4 10.0.0.9:/exports/pvc-1 rw,vers=4.2,rsize=1048576,hard,proto=tcp
1568 1561 0:99 /run-2 /nfs/deeper rw,relatime - nfs4 10.0.0.9:/exports/pvc-2 rw,vers=4.2
1569 1561 259:3 / /block rw,relatime master:12 propagate_from:2 - ext4 /dev/nvme1n1 rw
1570 1561 254:1 /srv/checkpoints /host rw,relatime - ext4 /dev/vda1 rw
1571 1561 254:1 /opt/local-path-provisioner/pvc-3_default_checkpoints /local-path rw,relatime - xfs /dev/vda1 rw
1572 1561 0:300 / /with\040space\134and\011tab rw,relatime - ceph 10.0.0.7:6789:/volumes/csi rw
1573 1561 254:1 /var/lib/kubelet/pods/0a6fbd5c/etc-hosts /etc/hosts rw,relatime - ext4 /dev/vda1 rw
1574 1566 0:301 / /memory/kept rw,relatime - fuse.s3fs s3fs rw,user_id=0
)";

std::string fate_in(std::string_view mountinfo, const char* folder) {
  const auto mount = mount_of(mountinfo, folder);
  return mount ? ends_with_pod(*mount).value_or("stays") : "on nothing";
}

}  // namespace

TEST_CASE("checkpoint: what a pod's folder lies on says whether it goes with the pod", "[checkpoint]") {
  struct Row {
    const char *folder, *fate;
  };
  const std::string_view own = "the container's own file system (overlay)";
  for (const auto& [folder, fate] : std::initializer_list<Row>{
           {"/work/checkpoints", own.data()},
           {"/", own.data()},
           {"/checkpointsX", own.data()},  // not below /checkpoints
           {"/checkpoints", "an emptyDir"},
           {"/checkpoints/run/a", "an emptyDir"},
           {"/own-disk", "an emptyDir"},  // /var/lib/kubelet is a file system of its own; a subPath
           {"/memory/x", "memory (tmpfs)"},
           {"/dev/shm", "memory (tmpfs)"},
           {"/memory/kept/x", "stays"},
           {"/nfs", "stays"},
           {"/nfs/deeper/x", "stays"},
           {"/block/x", "stays"},
           {"/host", "stays"},
           {"/local-path", "stays"},
           {"/with space\\and\ttab/x", "stays"},
       }) {
    CAPTURE(folder);
    CHECK(fate_in(kPod, folder) == fate);
  }
}

TEST_CASE("checkpoint: a container's root is its own, whatever made it", "[checkpoint]") {
  CHECK(
      fate_in(
          "610 580 254:1 /var/lib/containerd/io.containerd.snapshotter.v1.native/snapshots/9 / rw - ext4 /dev/vda1 rw",
          "/checkpoints") == "the container's own file system (ext4)");
  CHECK(fate_in("42 40 0:40 /work /work rw,relatime - overlay overlay rw", "/work/x") ==
        "the container's own file system (overlay)");
}

TEST_CASE("checkpoint: of mounts at one point the last counts, and lines that are none are passed over",
          "[checkpoint]") {
  constexpr std::string_view kTwice =
      "1 0 0:1 / / rw - overlay overlay rw\n"
      "2 1 0:2 / /checkpoints rw - tmpfs tmpfs rw\n"
      "3 2 0:3 / /checkpoints rw shared:1 - nfs nas:/x rw\n"
      "garbage\n\n4 3 0:4 / /checkpoints rw -\n5 3 0:4 / /checkpoints rw shared:1\n - a b c d e f g\n";
  CHECK(mount_of(kTwice, "/checkpoints/x") == Mount{.point = "/checkpoints", .root = "/", .type = "nfs"});
  CHECK_FALSE(mount_of("", "/checkpoints"));
  CHECK_FALSE(mount_of("2 1 0:2 / /elsewhere rw - tmpfs tmpfs rw", "/checkpoints"));
}

TEST_CASE("checkpoint: the warning names the folder, its fate and the way out, before the folder is there",
          "[checkpoint]") {
  if (::access("/dev/shm", W_OK) != 0) return test::skip("no /dev/shm");
  const auto warning = volume_warning("/dev/shm/not-there-yet/run");
  REQUIRE(warning);
  CHECK_THAT(*warning, Contains("checkpoint.dir: /dev/shm/not-there-yet/run is in memory (tmpfs)") &&
                           Contains("kustomize/components/claim"));
  const test::TemporaryFolder folder;  // through a link
  std::filesystem::create_directory_symlink("/dev/shm", folder / "link");
  CHECK_THAT(volume_warning(folder / "link/run").value_or(""), Contains("memory (tmpfs)"));
}

}  // namespace trainyard::checkpoint
