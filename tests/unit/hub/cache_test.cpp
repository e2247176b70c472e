#include "hub/cache.h"

#include <catch2/catch.hpp>

#include "base/files.h"
#include "support/support.h"

using namespace trainyard;
using namespace trainyard::hub;
namespace fs = std::filesystem;

TEST_CASE("hub: paths of the cache are huggingface_hub's", "[hub]") {
  const RepoCache model("/c", {.repo = "org/name"}), data("/c", {.repo = "org/name", .kind = RepoKind::Dataset});
  CHECK(model.blob("e") == "/c/models--org--name/blobs/e");
  CHECK(model.snapshot("s") == "/c/models--org--name/snapshots/s");
  CHECK(model.ref("refs/pr/1") == "/c/models--org--name/refs/refs/pr/1");
  CHECK(model.lock("e") == "/c/.locks/models--org--name/e.lock");
  CHECK(data.folder() == "/c/datasets--org--name");
  CHECK(link_text("f", "e") == "../../blobs/e");
  CHECK(link_text("a/b/f", "e") == "../../../../blobs/e");
}

TEST_CASE("hub: a snapshot has the files whose bytes are there", "[hub]") {
  const test::TemporaryFolder folder;
  const RepoCache cache(folder.path(), {.repo = "org/name"});
  const std::string commit(40, 'a'), later(40, 'b');
  CHECK_FALSE(cache.commit_of("main"));
  CHECK(cache.commit_of(commit) == commit);
  CHECK(cache.files_of(commit).empty());
  fs::create_directories(cache.blob("e").parent_path());
  write_file_atomically(cache.blob("e"), "bytes");
  cache.link(commit, "f", "e");
  cache.link(commit, "f", "e");
  cache.link(commit, "sub/g", "e");
  cache.link(commit, "gone", "no-such-blob");
  CHECK(cache.files_of(commit) == FileNames{"f", "sub/g"});
  CHECK(read_file(cache.snapshot(commit) / "sub" / "g") == "bytes");
  cache.link(commit, "gone", "e");
  CHECK(read_file(cache.snapshot(commit) / "gone") == "bytes");

  CHECK_FALSE(cache.listing_of(commit));
  cache.remember_listing(commit, {"f", "sub/g", "h"});
  CHECK(cache.listing_of(commit) == FileNames{"f", "sub/g", "h"});

  cache.remember("main", commit);
  CHECK(cache.commit_of("main") == commit);
  cache.remember("main", later);
  CHECK(read_file(cache.ref("main")) == later);
  cache.remember(commit, commit);
  CHECK_FALSE(fs::exists(cache.ref(commit)));
  write_file_atomically(cache.ref("odd"), "../../elsewhere");
  CHECK_FALSE(cache.commit_of("odd"));
}
