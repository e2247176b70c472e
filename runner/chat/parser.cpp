#include "chat/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chat/lexer.h"
#include "chat/rendering.h"

namespace trainyard::chat {
namespace {

constexpr size_t kMaxNesting = 100;          // of brackets and blocks, on the stack of the parser
constexpr size_t kMaxExpressionDepth = 300;  // of a + b + c + …, which stand in one another
constexpr std::array kOtherTags{"block",      "extends", "include", "import", "from",
                                "autoescape", "call",    "print",   "do",     "trans"};

/// Follows jinja2.parser.Parser.
class Parser {
 public:
  Parser(std::string_view source, const std::string& name) : name_(name), tokens_(tokens_of(source, name)) {}

  Body run() { return body_until({}); }

 private:
  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  [[nodiscard]] bool is_operator(std::string_view text) const {
    return now().kind == TokenKind::Operator && now().text == text;
  }
  [[nodiscard]] bool is_name(std::string_view text) const {
    return now().kind == TokenKind::Name && now().text == text;
  }
  bool take_operator(std::string_view text) { return is_operator(text) && (take(), true); }
  bool take_name(std::string_view text) { return is_name(text) && (take(), true); }

  [[noreturn]] void fail(std::string_view message, int line) const { fail_at(name_, line, message); }
  [[noreturn]] void fail(std::string_view message) const { fail(message, now().line); }
  [[noreturn]] void refuse(std::string_view what, int line) const {
    fail(fmt::format("{} is not offered in chat templates here", what), line);
  }

  [[nodiscard]] static std::string description(const Token& token) {
    switch (token.kind) {
      case TokenKind::Text:
        return "text";
      case TokenKind::PrintBegin:
        return "'{{'";
      case TokenKind::PrintEnd:
        return "'}}'";
      case TokenKind::TagBegin:
        return "'{%'";
      case TokenKind::TagEnd:
        return "'%}'";
      case TokenKind::End:
        return "the end of the template";
      default:
        return "'" + token.text + "'";
    }
  }

  void expect(TokenKind kind, std::string_view wanted) {
    if (now().kind != kind) fail(fmt::format("expected {}, got {}", wanted, description(now())));
    take();
  }
  void expect_operator(std::string_view text) {
    if (!take_operator(text)) fail(fmt::format("expected '{}', got {}", text, description(now())));
  }
  void expect_name(std::string_view text) {
    if (!take_name(text)) fail(fmt::format("expected '{}', got {}", text, description(now())));
  }
  std::string any_name() {
    if (now().kind != TokenKind::Name) fail(fmt::format("expected a name, got {}", description(now())));
    return take().text;
  }

  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser.nesting_ > kMaxNesting)
        parser.fail(fmt::format("brackets and blocks stand more than {} deep within one another", kMaxNesting));
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  // Expressions. Each function takes what binds tighter than the one above it.

  ExpressionPtr made(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts, std::string text = "") const {
    auto node = std::make_unique<Expression>(Expression{.kind = kind, .line = line, .text = std::move(text)});
    node->parts = std::move(parts);
    deepen(*node);
    return node;
  }

  void deepen(Expression& node) const {
    for (const ExpressionPtr& part : node.parts)
      if (part) node.depth = std::max(node.depth, part->depth + 1);
    for (const ExpressionPtr& part : node.arguments.positional) node.depth = std::max(node.depth, part->depth + 1);
    for (const auto& part : node.arguments.named) node.depth = std::max(node.depth, part.second->depth + 1);
    if (node.depth > kMaxExpressionDepth)
      fail(fmt::format("an expression has more than {} parts within one another", kMaxExpressionDepth), node.line);
  }

  template <typename... Parts>
  static std::vector<ExpressionPtr> list_of(Parts... parts) {
    std::vector<ExpressionPtr> list;
    (list.push_back(std::move(parts)), ...);
    return list;
  }

  ExpressionPtr constant(Value value, int line) const {
    auto node = made(ExpressionKind::Constant, line, {});
    node->value = std::move(value);
    return node;
  }

  ExpressionPtr expression() {
    const Nesting nesting(*this);
    const int line = now().line;
    ExpressionPtr node = disjunction();
    while (take_name("if")) {
      ExpressionPtr condition = disjunction(), otherwise;
      if (take_name("else")) otherwise = expression();
      node = made(ExpressionKind::If, line, list_of(std::move(node), std::move(condition), std::move(otherwise)));
    }
    return node;
  }

  ExpressionPtr disjunction() {
    const int line = now().line;
    ExpressionPtr left = conjunction();
    while (take_name("or")) left = made(ExpressionKind::Or, line, list_of(std::move(left), conjunction()));
    return left;
  }

  ExpressionPtr conjunction() {
    const int line = now().line;
    ExpressionPtr left = negation();
    while (take_name("and")) left = made(ExpressionKind::And, line, list_of(std::move(left), negation()));
    return left;
  }

  ExpressionPtr negation() {
    const int line = now().line;
    if (!take_name("not")) return comparison();
    const Nesting nesting(*this);
    return made(ExpressionKind::Not, line, list_of(negation()));
  }

  /// "" where none stands here.
  std::string comparison_operator() {
    constexpr std::array kWords{"==", "!=", "<", "<=", ">", ">="};
    if (now().kind == TokenKind::Operator && std::ranges::find(kWords, now().text) != kWords.end()) return take().text;
    if (take_name("in")) return "in";
    if (!is_name("not") || ahead().kind != TokenKind::Name || ahead().text != "in") return "";
    take(), take();
    return "not in";
  }

  ExpressionPtr comparison() {
    const int line = now().line;
    std::vector<ExpressionPtr> parts = list_of(sum());
    std::vector<std::string> operators;
    for (std::string op = comparison_operator(); !op.empty(); op = comparison_operator()) {
      operators.push_back(op);
      parts.push_back(sum());
    }
    if (operators.empty()) return std::move(parts.front());
    ExpressionPtr node = made(ExpressionKind::Compare, line, std::move(parts));
    node->operators = std::move(operators);
    return node;
  }

  template <typename Next>
  ExpressionPtr binary(std::initializer_list<std::string_view> operators, const Next& next) {
    const int line = now().line;
    ExpressionPtr left = next();
    while (now().kind == TokenKind::Operator && std::ranges::find(operators, now().text) != operators.end()) {
      const std::string op = take().text;
      left = made(ExpressionKind::Binary, line, list_of(std::move(left), next()), op);
    }
    return left;
  }

  ExpressionPtr sum() {
    return binary({"+", "-"}, [&] { return concatenation(); });
  }

  ExpressionPtr concatenation() {
    const int line = now().line;
    std::vector<ExpressionPtr> parts = list_of(product());
    while (take_operator("~")) parts.push_back(product());
    return parts.size() == 1 ? std::move(parts.front()) : made(ExpressionKind::Concat, line, std::move(parts));
  }

  ExpressionPtr product() {
    return binary({"*", "/", "//", "%"}, [&] { return binary({"**"}, [&] { return unary(true); }); });
  }

  ExpressionPtr unary(bool with_filters) {
    const int line = now().line;
    ExpressionPtr node;
    if (is_operator("-") || is_operator("+")) {
      const Nesting nesting(*this);
      const auto kind = take().text == "-" ? ExpressionKind::Negative : ExpressionKind::Positive;
      node = made(kind, line, list_of(unary(false)));
    } else {
      node = primary();
    }
    node = with_postfixes(std::move(node));
    return with_filters ? with_filters_and_tests(std::move(node)) : std::move(node);
  }

  ExpressionPtr named(const Token& token) {
    const std::string& text = token.text;
    if (text == "true" || text == "True") return constant(Value::of(true), token.line);
    if (text == "false" || text == "False") return constant(Value::of(false), token.line);
    if (text == "none" || text == "None") return constant(Value::none(), token.line);
    if (is_in_macro_ && (text == "varargs" || text == "kwargs" || text == "caller"))
      refuse("'" + text + "' in a macro", token.line);
    if (text == "loop") ++names_of_loop_;
    return made(ExpressionKind::Name, token.line, {}, text);
  }

  ExpressionPtr primary() {
    const Token& token = now();
    switch (token.kind) {
      case TokenKind::Name:
        return named(take());
      case TokenKind::String: {
        std::string text;
        while (now().kind == TokenKind::String) text += take().text;
        return constant(Value::of(std::move(text)), token.line);
      }
      case TokenKind::Int:
        return constant(Value::of(take().whole), token.line);
      case TokenKind::Float:
        return constant(Value::of(take().real), token.line);
      case TokenKind::Operator:
        return bracketed();
      default:
        fail(fmt::format("unexpected {}", description(token)));
    }
  }

  ExpressionPtr bracketed() {
    const int line = now().line;
    if (take_operator("(")) {
      ExpressionPtr node = tuple(true);
      expect_operator(")");
      return node;
    }
    if (take_operator("[")) {
      std::vector<ExpressionPtr> items;
      while (!take_operator("]")) {
        if (!items.empty()) expect_operator(",");
        if (take_operator("]")) break;
        items.push_back(expression());
      }
      return made(ExpressionKind::List, line, std::move(items));
    }
    if (take_operator("{")) return dict(line);
    fail(fmt::format("unexpected {}", description(now())));
  }

  ExpressionPtr dict(int line) {
    std::vector<ExpressionPtr> items;
    while (!take_operator("}")) {
      if (!items.empty()) expect_operator(",");
      if (take_operator("}")) break;
      items.push_back(expression());
      expect_operator(":");
      items.push_back(expression());
    }
    return made(ExpressionKind::Dict, line, std::move(items));
  }

  [[nodiscard]] bool is_at_end() const {
    return now().kind == TokenKind::PrintEnd || now().kind == TokenKind::TagEnd || is_operator(")");
  }

  /// One expression, or several with commas between them, which make a tuple.
  ExpressionPtr tuple(bool may_be_empty) {
    const int line = now().line;
    std::vector<ExpressionPtr> items;
    bool has_comma = false;
    while (!is_at_end()) {
      items.push_back(expression());
      if (!take_operator(",")) break;
      has_comma = true;
    }
    if (!has_comma && !items.empty()) return std::move(items.front());
    if (items.empty() && !may_be_empty) fail(fmt::format("expected an expression, got {}", description(now())));
    return made(ExpressionKind::Tuple, line, std::move(items));
  }

  ExpressionPtr with_postfixes(ExpressionPtr node) {
    while (true) {
      const int line = now().line;
      if (take_operator("."))
        node = member(std::move(node), line);
      else if (take_operator("["))
        node = subscript(std::move(node), line);
      else if (is_operator("("))
        node = call(std::move(node));
      else
        return node;
    }
  }

  ExpressionPtr member(ExpressionPtr node, int line) {
    if (now().kind == TokenKind::Int)
      return made(ExpressionKind::Subscript, line, list_of(std::move(node), constant(Value::of(take().whole), line)));
    return made(ExpressionKind::Attribute, line, list_of(std::move(node)), any_name());
  }

  ExpressionPtr subscript(ExpressionPtr node, int line) {
    ExpressionPtr begin, end, step;
    if (!is_operator(":")) {
      begin = expression();
      if (take_operator("]")) return made(ExpressionKind::Subscript, line, list_of(std::move(node), std::move(begin)));
      if (is_operator(",")) return several_subscripts(std::move(node), std::move(begin), line);
    }
    expect_operator(":");
    if (!is_operator(":") && !is_operator("]")) end = expression();
    if (take_operator(":") && !is_operator("]")) step = expression();
    expect_operator("]");
    return made(ExpressionKind::Slice, line,
                list_of(std::move(node), std::move(begin), std::move(end), std::move(step)));
  }

  /// The key is a tuple.
  ExpressionPtr several_subscripts(ExpressionPtr node, ExpressionPtr first, int line) {
    std::vector<ExpressionPtr> keys = list_of(std::move(first));
    while (take_operator(",")) keys.push_back(expression());
    if (is_operator(":")) refuse("a slice among several subscripts", line);
    expect_operator("]");
    return made(ExpressionKind::Subscript, line,
                list_of(std::move(node), made(ExpressionKind::Tuple, line, std::move(keys))));
  }

  ExpressionPtr call(ExpressionPtr node) {
    const int line = now().line;
    ExpressionPtr made_call = made(ExpressionKind::Call, line, list_of(std::move(node)));
    made_call->arguments = arguments();
    deepen(*made_call);
    return made_call;
  }

  ArgumentNodes arguments() {
    ArgumentNodes nodes;
    expect_operator("(");
    for (bool is_first = true; !take_operator(")"); is_first = false) {
      if (!is_first) expect_operator(",");
      if (!is_first && take_operator(")")) break;
      if (is_operator("*") || is_operator("**")) refuse("'" + now().text + "' before an argument", now().line);
      if (now().kind == TokenKind::Name && ahead().kind == TokenKind::Operator && ahead().text == "=") {
        std::string name = take().text;
        take();
        nodes.named.emplace_back(std::move(name), expression());
      } else {
        if (!nodes.named.empty()) fail("an argument without a name stands behind one with a name");
        nodes.positional.push_back(expression());
      }
    }
    return nodes;
  }

  ExpressionPtr with_filters_and_tests(ExpressionPtr node) {
    while (true) {
      if (take_operator("|"))
        node = filter(std::move(node));
      else if (take_name("is"))
        node = test(std::move(node));
      else if (is_operator("("))
        node = call(std::move(node));
      else
        return node;
    }
  }

  std::string dotted_name() {
    std::string name = any_name();
    while (take_operator(".")) name += "." + any_name();
    return name;
  }

  ExpressionPtr filter(ExpressionPtr node) {
    const int line = now().line;
    ExpressionPtr filtered = made(ExpressionKind::Filter, line, list_of(std::move(node)), dotted_name());
    if (is_operator("(")) filtered->arguments = arguments();
    deepen(*filtered);
    return filtered;
  }

  [[nodiscard]] bool begins_argument_of_test() const {
    switch (now().kind) {
      case TokenKind::Name:
        return !is_name("else") && !is_name("or") && !is_name("and");
      case TokenKind::String:
      case TokenKind::Int:
      case TokenKind::Float:
        return true;
      default:
        return is_operator("[") || is_operator("{");
    }
  }

  ExpressionPtr test(ExpressionPtr node) {
    const int line = now().line;
    const bool is_negated = take_name("not");
    ExpressionPtr asked = made(ExpressionKind::Test, line, list_of(std::move(node)), dotted_name());
    if (is_operator("(")) {
      asked->arguments = arguments();
    } else if (begins_argument_of_test()) {
      if (is_name("is")) fail("two tests stand behind one another");
      asked->arguments.positional.push_back(with_postfixes(primary()));
    }
    deepen(*asked);
    return is_negated ? made(ExpressionKind::Not, line, list_of(std::move(asked))) : std::move(asked);
  }

  // Statements

  /// Up to a tag that begins with one of `ends`, whose name is taken and stands in ended_by_.
  Body body_until(const std::vector<std::string_view>& ends) {
    const Nesting nesting(*this);
    Body body;
    while (now().kind != TokenKind::End) {
      const Token& token = take();
      if (token.kind == TokenKind::Text) {
        body.push_back({.kind = StatementKind::Text, .line = token.line, .text = token.text});
      } else if (token.kind == TokenKind::PrintBegin) {
        body.push_back({.kind = StatementKind::Print, .line = token.line, .expression = tuple(false)});
        expect(TokenKind::PrintEnd, "'}}'");
      } else {
        if (now().kind == TokenKind::Name && std::ranges::find(ends, now().text) != ends.end()) {
          ended_by_ = take().text;
          return body;
        }
        body.push_back(statement(ends));
        expect(TokenKind::TagEnd, "'%}'");
      }
    }
    if (!ends.empty()) fail(fmt::format("the template ends where the tag {} was expected", ends.back()));
    return body;
  }

  Body block(std::string_view end) {
    expect(TokenKind::TagEnd, "'%}'");
    return body_until({end});
  }

  Statement statement(const std::vector<std::string_view>& ends) {
    const int line = now().line;
    const std::string tag = any_name();
    if (tag == "if") return conditional(line);
    if (tag == "for") return loop(line);
    if (tag == "set") return assignment(line);
    if (tag == "macro") return macro(line);
    if (tag == "with") return with(line);
    if (tag == "generation") {
      Statement made_block{.kind = StatementKind::Generation, .line = line};
      made_block.body = outside_loops("endgeneration");
      return made_block;
    }
    if (tag == "filter") {
      Statement made_block{.kind = StatementKind::FilterBlock, .line = line, .expression = filters(nullptr)};
      made_block.body = outside_loops("endfilter");
      return made_block;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) fail(fmt::format("'{}' stands outside of a loop", tag), line);
      return {.kind = tag == "break" ? StatementKind::Break : StatementKind::Continue, .line = line};
    }
    if (std::ranges::find(kOtherTags, tag) != kOtherTags.end()) refuse("the tag '" + tag + "'", line);
    fail(fmt::format("unknown tag '{}'{}", tag, ends.empty() ? "" : fmt::format("; '{}' was expected", ends.back())),
         line);
  }

  /// The filters that stand behind one another in a tag, of `node`.
  ExpressionPtr filters(ExpressionPtr node) {
    node = filter(std::move(node));
    while (take_operator("|")) node = filter(std::move(node));
    return node;
  }

  Body outside_loops(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = block(end);
    loops_ = loops;
    return body;
  }

  Statement conditional(int line) {
    Statement made_if{.kind = StatementKind::If, .line = line};
    do {
      ExpressionPtr condition = tuple(false);
      expect(TokenKind::TagEnd, "'%}'");
      Body body = body_until({"elif", "else", "endif"});
      made_if.branches.push_back({std::move(condition), std::move(body)});
    } while (ended_by_ == "elif");
    if (ended_by_ == "else") made_if.branches.push_back({nullptr, block("endif")});
    return made_if;
  }

  Statement loop(int line) {
    auto node = std::make_unique<ForNode>();
    node->target = target(false);
    expect_name("in");
    node->over = iterated();
    if (take_name("if")) node->condition = expression();
    if (is_name("recursive")) refuse("'recursive' in a loop", line);
    expect(TokenKind::TagEnd, "'%}'");
    ++loops_;
    const int names_before = names_of_loop_;
    node->body = body_until({"else", "endfor"});
    --loops_;
    node->names_loop = names_of_loop_ > names_before;
    if (ended_by_ == "else") node->otherwise = block("endfor");
    Statement made_loop{.kind = StatementKind::For, .line = line};
    made_loop.loop = std::move(node);
    return made_loop;
  }

  /// What a loop goes over: an `if` behind it is the loop's.
  ExpressionPtr iterated() {
    const int line = now().line;
    std::vector<ExpressionPtr> items = list_of(disjunction());
    if (!is_operator(",")) return std::move(items.front());
    while (take_operator(",")) {
      if (is_at_end() || is_name("if") || is_name("recursive")) break;
      items.push_back(disjunction());
    }
    return made(ExpressionKind::Tuple, line, std::move(items));
  }

  Target one_target(bool with_namespace) {
    Target made_target;
    const Nesting nesting(*this);
    if (take_operator("(")) {
      made_target = target(with_namespace);
      expect_operator(")");
      return made_target;
    }
    const int line = now().line;
    made_target.name = any_name();
    for (const std::string_view word : {"true", "True", "false", "False", "none", "None", "loop"})
      if (made_target.name == word) fail(fmt::format("nothing can be given to '{}'", word), line);
    if (with_namespace && take_operator(".")) made_target.attribute = any_name();
    return made_target;
  }

  Target target(bool with_namespace) {
    Target first = one_target(with_namespace);
    if (!is_operator(",")) return first;
    Target several;
    several.is_several = true;
    several.several.push_back(std::move(first));
    while (take_operator(",")) {
      if (is_name("in") || is_operator("=") || is_operator(")")) break;
      several.several.push_back(one_target(with_namespace));
    }
    return several;
  }

  Statement assignment(int line) {
    Statement made_set{.kind = StatementKind::Set, .line = line};
    made_set.target = target(true);
    if (take_operator("=")) {
      made_set.expression = tuple(false);
      return made_set;
    }
    made_set.kind = StatementKind::SetBlock;
    if (take_operator("|")) made_set.expression = filters(nullptr);
    made_set.body = outside_loops("endset");
    return made_set;
  }

  Statement with(int line) {
    Statement made_with{.kind = StatementKind::With, .line = line};
    while (now().kind != TokenKind::TagEnd) {
      if (!made_with.assignments.empty()) expect_operator(",");
      Target name = one_target(false);
      expect_operator("=");
      made_with.assignments.emplace_back(std::move(name), expression());
    }
    made_with.body = block("endwith");
    return made_with;
  }

  Statement macro(int line) {
    auto node = std::make_unique<MacroNode>();
    node->name = any_name();
    expect_operator("(");
    while (!take_operator(")")) {
      if (!node->parameters.empty()) expect_operator(",");
      node->parameters.push_back(any_name());
      if (take_operator("="))
        node->defaults.push_back(expression());
      else if (!node->defaults.empty())
        fail("a parameter without a default stands behind one with a default");
    }
    const bool was_in_macro = std::exchange(is_in_macro_, true);
    node->body = outside_loops("endmacro");
    is_in_macro_ = was_in_macro;
    Statement made_macro{.kind = StatementKind::Macro, .line = line};
    made_macro.macro = std::move(node);
    return made_macro;
  }

  const std::string& name_;
  const std::vector<Token> tokens_;
  size_t at_ = 0, nesting_ = 0;
  int loops_ = 0, names_of_loop_ = 0;
  bool is_in_macro_ = false;
  std::string ended_by_;
};

}  // namespace

Body parse_template(std::string_view source, const std::string& name) {
  return Parser(source, name).run();
}

}  // namespace trainyard::chat
