#include "chat/template.h"

#include <algorithm>

#include "chat/evaluator.h"
#include "chat/parser.h"

namespace trainyard::chat {

struct Program {
  Body body;
};

namespace {

bool marks_answers_in(const Body& body) {
  return std::ranges::any_of(body, [](const Statement& statement) {
    const bool in_branch =
        std::ranges::any_of(statement.branches, [](const Branch& branch) { return marks_answers_in(branch.body); });
    const auto& loop = statement.loop;
    return statement.kind == StatementKind::Generation || in_branch || marks_answers_in(statement.body) ||
           (loop && (marks_answers_in(loop->body) || marks_answers_in(loop->otherwise))) ||
           (statement.macro && marks_answers_in(statement.macro->body));
  });
}

}  // namespace

Template::Template(std::string_view source, std::string name)
    : name_(std::move(name)),
      source_(source),
      program_(std::make_shared<const Program>(Program{parse_template(source, name_)})) {}

bool Template::marks_answers() const {
  return marks_answers_in(program_->body);
}

Rendered Template::render(const nlohmann::ordered_json& variables, const Settings& settings) const {
  return evaluate(program_->body, name_, variables, settings);
}

}  // namespace trainyard::chat
