#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/value.h"

// What a template is made of, as jinja2.nodes has it.
namespace trainyard::chat {

enum class ExpressionKind {
  Constant,   ///< value
  Name,       ///< text
  List,       ///< parts
  Tuple,      ///< parts
  Dict,       ///< parts: a key, its value, the next key, …
  Attribute,  ///< parts[0], text
  Subscript,  ///< parts[0], parts[1]
  Slice,      ///< parts: of what, begin, end, step; none where it is not given
  Call,       ///< parts[0], arguments
  Filter,     ///< parts[0], text, arguments; parts[0] is none in a filter block
  Test,       ///< parts[0], text, arguments
  Negative,   ///< parts[0]
  Positive,   ///< parts[0]
  Not,        ///< parts[0]
  And,        ///< parts[0], parts[1]
  Or,         ///< parts[0], parts[1]
  If,         ///< parts: then, condition, else; the last is none where it is not given
  Binary,     ///< text, parts[0], parts[1]
  Concat,     ///< parts, as texts one behind another
  Compare     ///< parts[0], and operators with the parts behind it
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct ArgumentNodes {
  std::vector<ExpressionPtr> positional{};
  std::vector<std::pair<std::string, ExpressionPtr>> named{};
};

struct Expression {
  ExpressionKind kind;
  int line;
  std::string text{};
  Value value{};
  std::vector<ExpressionPtr> parts{};
  std::vector<std::string> operators{};
  ArgumentNodes arguments{};
  size_t depth = 1;  ///< expressions within one another, this one among them
};

enum class StatementKind { Text, Print, If, For, Set, SetBlock, Macro, Generation, FilterBlock, With, Break, Continue };

struct Statement;
using Body = std::vector<Statement>;

/// What a value is given to: a name, `ns.name`, or several that it is divided among.
struct Target {
  std::string name{};
  std::string attribute{};  ///< "": the name alone
  std::vector<Target> several{};
  bool is_several = false;
};

struct MacroNode {
  std::string name;
  std::vector<std::string> parameters{};
  std::vector<ExpressionPtr> defaults{};  ///< of the last parameters
  Body body;
};

/// A condition with what is done where it holds; none: otherwise.
struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct ForNode {
  Target target;
  ExpressionPtr over, condition;  ///< the condition is none where there is no `if`
  Body body, otherwise;
  bool names_loop = false;  ///< the body has the name `loop`
};

struct Statement {
  StatementKind kind;
  int line;
  std::string text{};          ///< of Text
  ExpressionPtr expression{};  ///< what is printed or set; of blocks the filters, or none
  std::vector<Branch> branches{};
  std::vector<std::pair<Target, ExpressionPtr>> assignments{};  ///< of With
  Target target{};
  std::unique_ptr<ForNode> loop{};
  std::unique_ptr<MacroNode> macro{};
  Body body{};
};

}  // namespace trainyard::chat
