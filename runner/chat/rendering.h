#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::chat {

/// What one rendering may take: a template is other people's code, and may not run for ever.
struct Limits {
  size_t depth = 700;                    ///< expressions, statements and calls of macros within one another
  size_t steps = 20'000'000;             ///< nodes that are evaluated and elements that are walked over
  size_t bytes = size_t{1} << 30;        ///< of all texts and lists that are made, kept or not
  size_t text_bytes = size_t{64} << 20;  ///< of one text, the output among them
};

/// Throws InputError: "name:line: message".
[[noreturn]] void fail_at(const std::string& name, int line, std::string_view message);

/// What counts against the limits, and where the template is, for messages.
class Rendering {
 public:
  Rendering(const std::string& name, const Limits& limits) : name_(name), limits_(limits) {}

  void go_to(int line) { line_ = line; }
  [[nodiscard]] int line() const { return line_; }

  /// Throws InputError with the line that is rendered.
  [[noreturn]] void fail(std::string_view message) const { fail_at(name_, line_, message); }
  /// The same for `what`, which Jinja2 or Python has and this program has not.
  [[noreturn]] void refuse(std::string_view what) const;

  // Each throws InputError where a limit is passed.
  void step(size_t count = 1);
  void make(size_t bytes);
  /// Steps for a text that is looked through.
  void look_through(size_t bytes) { step(1 + bytes / 64); }
  void make_text(size_t bytes);
  void require_size_of_text(size_t bytes) const;

  /// One level deeper for as long as it lives.
  class Level {
   public:
    explicit Level(Rendering& rendering) : rendering_(rendering) { rendering.enter(); }
    ~Level() { --rendering_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Rendering& rendering_;
  };

 private:
  void enter();

  const std::string& name_;
  Limits limits_;
  int line_ = 1;
  size_t depth_ = 0, steps_ = 0, bytes_ = 0;
};

}  // namespace trainyard::chat
