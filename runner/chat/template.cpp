#include "chat/template.h"

#include "chat/evaluator.h"
#include "chat/parser.h"

namespace trainyard::chat {

struct Program {
  Body body;
};

Template::Template(std::string_view source, std::string name)
    : name_(std::move(name)), program_(std::make_shared<const Program>(Program{parse_template(source, name_)})) {}

Rendered Template::render(const nlohmann::ordered_json& variables, const Settings& settings) const {
  return evaluate(program_->body, name_, variables, settings);
}

}  // namespace trainyard::chat
