#pragma once

#include <arrow_generated.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>


namespace trainyard::data {

/// A message of Arrow's IPC format. The body is a view into the file.
struct ArrowMessage {
  std::vector<uint8_t> metadata;  ///< checked: whatever message() leads to lies inside
  std::string_view body;

  [[nodiscard]] const fbs::Message& message() const { return *fbs::GetMessage(metadata.data()); }
};

/// The messages of an Arrow file in order: of a stream, as Hugging Face `datasets` writes it, or of the file format,
/// which is a stream between two marks and a footer that repeats where its batches are. One thread.
class ArrowMessages {
 public:
  /// `bytes`, the whole file, must outlive it. Throws NotOffered where that is empty.
  explicit ArrowMessages(std::string_view bytes);

  /// None at the end. Throws Damage for a file that is damaged, NotOffered for one that is cut off or of another kind.
  std::optional<ArrowMessage> next();

 private:
  std::string_view take(size_t length);
  int32_t take_length();

  std::string_view rest_;
  bool has_footer_ = false;
};

}  // namespace trainyard::data
