#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/step_record.h"

namespace trainyard::metrics {

/// The pattern of the line that is printed every metrics.interval steps:
/// step: 10  loss: 8.12345  grad_norm: 1.2345  lr: 3.0e-04  tokens/s: 1,234  mfu: 12.3%  memory: 0.52GiB
extern const std::string_view kStandardLine;
/// The same where the data is images: images/s in the place of tokens/s.
extern const std::string_view kImagesLine;
/// The line after a validation: Batch 100 Validation loss: 5.12345
extern const std::string_view kValidationLine;
/// The same of a classifier: …, accuracy: 98.31%
extern const std::string_view kAccuracyLine;

/// The lines of other programs, by name: "hyperpod" prints `Batch 90 Loss: 7.24291, Speed: 9.41 samples/sec, lr:
/// 0.000010`, "torchtitan", "t5" and "mnist" theirs. `text` itself where it is no such name.
std::string_view line_of(std::string_view text);

/// A pattern of the printed line, understood once and used every interval. `{loss}` is written as in the standard line,
/// `{loss:.3f}` by the format specification of fmt; `{{` and `}}` are braces. Names: the keys of metrics.jsonl, and
/// `memory`, which is memory_bytes in GiB. `{mfu:.2f}` is the fraction, `{mfu}` a percentage; both n/a without a peak,
/// as `{validation_loss}` and `{validation_accuracy}` are in a step without a validation, `{grad_norm}` in one that is
/// skipped.
class LineFormat {
 public:
  /// An empty pattern stands for the standard one, a name for line_of(); {strategy} is replaced here. Throws InputError
  /// for an unknown name (and names the nearest), a specification that does not fit, a brace without its partner, or a
  /// control character.
  explicit LineFormat(std::string_view pattern, std::string_view strategy = "");

  [[nodiscard]] std::string format(const StepRecord& record) const;
  /// Whether this step's line is printed: every `interval` steps and the last; of "mnist" and "t5" every `interval`
  /// batches of an epoch, whose first is number 0, and no other, as those programs count.
  [[nodiscard]] bool is_due(const StepRecord& record, int64_t interval, bool is_last) const {
    return counts_batches_ ? record.step_of_epoch % interval == 0 : is_last || record.step % interval == 0;
  }

 private:
  struct Part {
    std::string text;  ///< literal, or the name of a field
    std::string spec;  ///< "{:.3f}"; empty: as in the standard line
    bool is_field = false;
  };
  [[nodiscard]] Part field(std::string_view inside) const;

  std::string strategy_;
  bool counts_batches_;
  std::vector<Part> parts_;
};

}  // namespace trainyard::metrics
