#include "tensor/tensor.h"

#include <catch2/catch.hpp>

#include "tensor/dry_run.h"

namespace trainyard {

TEST_CASE("Tensor: rows and reshape are views of the same elements", "[tensor]") {
  const std::vector<float> values{0, 1, 2, 3, 4, 5};
  Tensor tensor = Tensor::from<float>(values, {3, 2});
  Tensor row = tensor.rows(1, 1);
  CHECK(row.values<float>()[0] == 2);
  row.values<float>()[1] = 9;
  CHECK(tensor.reshape({6}).values<float>()[3] == 9);
  CHECK(tensor.rows(3, 0).count() == 0);
  CHECK_THROWS_WITH(tensor.rows(2, 2), Catch::Contains("rows 2 to 4 of shape [3, 2]"));
  CHECK_THROWS_WITH(tensor.reshape({4}), Catch::Contains("[3, 2] to [4]"));
  CHECK_THROWS_WITH(tensor.data<int32_t>(), Catch::Contains("float32 elements read as int32"));
}

TEST_CASE("Storage: released memory leaves the ledger and comes back at the same tensors", "[tensor]") {
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  Tensor tensor = Tensor::zeros({1000}, DType::Float32);
  CHECK(ledger->held_bytes() == 4000);
  tensor.storage()->release();
  CHECK(ledger->held_bytes() == 0);
  tensor.storage()->materialize();
  tensor.values<float>()[999] = 1;
  CHECK(ledger->held_bytes() == 4000);
  CHECK(ledger->peak_bytes() == 4000);
  tensor = Tensor();
  CHECK(ledger->held_bytes() == 0);
}

TEST_CASE("MemoryLedger: bytes are counted by what they are for, and may become something else", "[tensor]") {
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  const Tensor other = Tensor::empty({100}, DType::Float32);
  Tensor kept;
  {
    const MemoryKindScope kind(MemoryKind::Activations);
    kept = Tensor::empty({25}, DType::Float32);
    static_cast<void>(Tensor::empty({50}, DType::Float32));  // gone at once, but the peak
  }
  CHECK(ledger->held()[MemoryKind::Activations] == 100);
  CHECK(ledger->at_peak()[MemoryKind::Activations] == 300);
  CHECK(ledger->at_peak()[MemoryKind::Other] == 400);
  CHECK(ledger->peak_bytes() == 700);
  kept.storage()->set_kind(MemoryKind::Offloaded);
  CHECK(ledger->held()[MemoryKind::Activations] == 0);
  CHECK(ledger->held()[MemoryKind::Offloaded] == 100);
  kept.storage()->release();
  CHECK(ledger->held()[MemoryKind::Offloaded] == 0);
  ledger->restart_peak();
  kept.storage()->materialize();
  CHECK(ledger->most()[MemoryKind::Offloaded] == 100);
  CHECK(ledger->most()[MemoryKind::Activations] == 0);
}

TEST_CASE("MemoryLedger: the peak is of what is not apart", "[tensor]") {
  const auto ledger = std::make_shared<MemoryLedger>(std::vector{MemoryKind::Offloaded});
  const MemoryScope scope(ledger);
  Tensor activation;
  {
    const MemoryKindScope kind(MemoryKind::Activations);
    activation = Tensor::empty({25}, DType::Float32);
  }
  activation.storage()->set_kind(MemoryKind::Offloaded);
  CHECK(ledger->held_bytes() == 0);
  {
    const MemoryKindScope kind(MemoryKind::Offloaded);
    static_cast<void>(Tensor::empty({50}, DType::Float32));
  }
  CHECK(ledger->peak_bytes() == 100);
  CHECK(ledger->at_peak()[MemoryKind::Activations] == 100);
  CHECK(ledger->most()[MemoryKind::Offloaded] == 300);
}

TEST_CASE("dry run: a storage is counted, reads zeros and takes no memory until it is touched", "[tensor]") {
  struct Nobody final : DryRun {
    void operation(const OperationCost&) override {}
    [[nodiscard]] bool on_cpu() const override { return true; }
    [[nodiscard]] size_t device_memory() const override { return 0; }
  } nobody;
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope memory(ledger);
  const size_t before = resident_bytes();
  constexpr int64_t kHuge = int64_t{1} << 32;
  Tensor huge;
  {
    const DryRunScope scope(nobody);
    huge = Tensor::zeros({kHuge}, DType::Float32);
    Tensor copied = Tensor::empty({kHuge}, DType::Float32);
    copy(huge, copied);
    CHECK(ledger->held_bytes() == 2 * 4 * size_t{kHuge});
  }
  CHECK(dry_run() == nullptr);
  huge.data<float>()[12345] += 1;
  CHECK(huge.data<float>()[12345] == 1);
  CHECK(huge.data<float>()[kHuge - 1] == 0);
  CHECK(resident_bytes() < before + (size_t{16} << 20));
  huge = Tensor();
  CHECK(ledger->held_bytes() == 0);
}

TEST_CASE("allocate_host: a freed block serves the next request of its size", "[tensor]") {
  void* const first = allocate_host(1 << 20);
  free_host(first, 1 << 20);
  void* const second = allocate_host((1 << 20) - 100);
  CHECK(second == first);
  free_host(second, (1 << 20) - 100);
  trim_host_cache();
}

TEST_CASE("allocate_host: sizes that never come again do not pile up", "[tensor]") {
  trim_host_cache();
  constexpr size_t kMost = size_t{32} << 20;
  for (size_t bytes = kMost; bytes > kMost / 32; bytes = bytes / 6 * 5) {  // none fits the next
    free_host(allocate_host(bytes), bytes);
    CHECK(kept_host_bytes() <= kMost + kMost / 4);
  }
  CHECK(kept_host_bytes() > 0);
  trim_host_cache();
  CHECK(kept_host_bytes() == 0);
}

}  // namespace trainyard
