#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trainyard::kube {

struct ListPage {
  uint64_t version = 0;
  std::string continue_token;
};

/// Reads a list and gives its items one after the other, so that only one is in memory at a time. None where the body
/// is no list with a version; items may have been given before that shows.
[[nodiscard]] std::optional<ListPage> parse_list_page(std::string_view body,
                                                      const std::function<void(const Json&)>& on_item);

}  // namespace trainyard::kube
