#include "ops/cpu/sgemm.h"

#include <dnnl.h>
#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "ops/cpu/parallel.h"

namespace trainyard::ops::cpu {
namespace {

char letter(Transpose transpose) {
  return transpose == Transpose::Yes ? 'T' : 'N';
}

}  // namespace

void sgemm(const ProductSize& size, const Factor& a, const Factor& b, const Product& c) {
  if (dry_run()) return;
  std::optional<SerialScope> serial;
  if (!kTeams) serial.emplace();
  const dnnl_status_t status = dnnl_sgemm(letter(a.transpose), letter(b.transpose), size.m, size.n, size.k, size.alpha,
                                          a.data, a.stride, b.data, b.stride, size.beta, c.data, c.stride);
  if (status != dnnl_success)
    throw std::runtime_error(fmt::format("matmul: oneDNN refused a product of {} x {} x {} (status {})", size.m, size.k,
                                         size.n, static_cast<int>(status)));
}

}  // namespace trainyard::ops::cpu
