#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "chat/rendered.h"

namespace trainyard::chat {

struct Program;

/// A chat template: the part of Jinja2 that such templates use, as transformers compiles it (blanks of tags trimmed,
/// lists and dicts that cannot be changed, the tags break, continue and generation, its tojson). Pure: no file and no
/// clock is asked. Immutable, so that any number of threads may render it at once.
class Template {
 public:
  /// `name` is what messages call it. Throws InputError, beginning with `name` and a line, where `source` is no
  /// template or has what is not offered.
  Template(std::string_view source, std::string name);

  /// `variables` is an object. Throws InputError, beginning with the name and a line, for what the template raises, for
  /// what is not offered, and where a limit is passed.
  [[nodiscard]] Rendered render(const nlohmann::ordered_json& variables, const Settings& settings) const;

  /// Whether the tag `generation` stands in it, which says what the model is to generate.
  [[nodiscard]] bool marks_answers() const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  std::string name_, source_;
  std::shared_ptr<const Program> program_;
};

}  // namespace trainyard::chat
