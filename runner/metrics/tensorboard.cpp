#include "metrics/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <system_error>

#include "metrics/event_record.h"

namespace trainyard::metrics {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSetting = "metrics.tensorboard";
constexpr std::string_view kOurs = ".trainyard";

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// events.out.tfevents.<seconds>.<host>.trainyard: tools take time and host out of the name. Ours where there is one.
fs::path file_in(const fs::path& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("events.out.tfevents.") && name.ends_with(kOurs)) return entry.path();
  }
  std::array<char, 256> host{};
  const bool has_name = ::gethostname(host.data(), host.size() - 1) == 0;
  return folder / fmt::format("events.out.tfevents.{:010.0f}.{}{}", seconds_since_1970(),
                              has_name ? host.data() : "localhost", kOurs);
}

/// Where the first record begins that is after `resumed_step`, torn or damaged.
int64_t event_bytes_to_keep(const fs::path& path, int64_t resumed_step) {
  const MappedFile file(path);
  std::string_view rest = file.text();
  while (const auto record = first_record(rest)) {
    if (record->step > resumed_step) break;
    rest.remove_prefix(record->bytes);
  }
  return static_cast<int64_t>(file.text().size() - rest.size());
}

}  // namespace

TensorBoard::TensorBoard(const fs::path& folder, int64_t resumed_step) : file_(file_in(folder), kSetting) {
  const int64_t kept = resumed_step == 0 ? 0 : event_bytes_to_keep(file_.path(), resumed_step);
  file_.cut(kept);
  if (kept == 0) file_.append(framed(version_event(seconds_since_1970())), resumed_step);
}

void TensorBoard::append(const StepRecord& record) {
  const auto named = scalars_of(record);  // holds the names while they are written
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : named) scalars.push_back({name, static_cast<float>(value)});
  file_.append(framed(scalars_event(record.time, record.step, scalars)), record.step);
}

}  // namespace trainyard::metrics
