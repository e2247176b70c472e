#include "checkpoint/pickle.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/error.h"

namespace trainyard::checkpoint {
namespace {

// What a memo can hand out again and again is copied only where it is short, so that work stays linear in the text.
constexpr size_t kMaxDimensions = 64, kMaxName = 4096;

}  // namespace

// The opcodes are those of Python's pickletools.py; torch.save writes protocol 2.
class Pickle::Machine {
 public:
  Machine(std::string_view text, const std::string& where, OtherCalls others, std::deque<PickleValue>& values)
      : text_(text), where_(where), records_(others == OtherCalls::Recorded), values_(values) {}

  const PickleValue* run() {
    for (;;) {
      const char opcode = bytes(1)[0];
      if (opcode == '.') return pop();
      step(opcode);
    }
  }

 private:
  using Kind = PickleValue::Kind;

  void step(char opcode);
  bool step_constant(char opcode);
  bool step_container(char opcode);
  bool step_memo(char opcode);

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: byte {} of the pickle: {}", where_, at_, what));
  }
  std::string_view bytes(uint64_t count) {
    if (count > text_.size() - at_) fail("the text ends in the middle");
    const std::string_view taken = text_.substr(at_, count);
    at_ += count;
    return taken;
  }
  uint64_t little_endian(size_t count) {
    uint64_t value = 0;
    const std::string_view taken = bytes(count);
    for (size_t i = 0; i < count; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(taken[i])) << (8 * i);
    return value;
  }
  std::string line() {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) fail("the text ends in the middle");
    const std::string taken(bytes(end - at_));
    ++at_;
    return taken;
  }

  PickleValue& push(Kind kind) {
    PickleValue& made = values_.emplace_back();
    made.kind = kind;
    stack_.push_back(&made);
    return made;
  }
  void push_number(int64_t value) { push(Kind::Number).number = value; }
  PickleValue* pop() {
    if (stack_.empty() || stack_.back()->kind == Kind::Mark) fail("a value is missing");
    PickleValue* const top = stack_.back();
    stack_.pop_back();
    return top;
  }
  PickleValue& top(Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind) fail("a container is missing");
    return *stack_.back();
  }
  std::vector<PickleValue*> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1]->kind != Kind::Mark) --begin;
    if (begin == 0) fail("a mark is missing");
    std::vector<PickleValue*> taken(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return taken;
  }
  void push_sequence(size_t count) {
    std::vector<const PickleValue*> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = pop();
    push(Kind::Sequence).items = std::move(items);
  }
  void set_items(const std::vector<PickleValue*>& pairs) {
    if (pairs.size() % 2 != 0) fail("a key without its value");
    PickleValue& mapping = top(Kind::Mapping);
    for (size_t i = 0; i < pairs.size(); i += 2) mapping.entries.emplace_back(pairs[i], pairs[i + 1]);
  }
  void append(const std::vector<PickleValue*>& items) {
    PickleValue& sequence = top(Kind::Sequence);
    sequence.items.insert(sequence.items.end(), items.begin(), items.end());
  }
  void remember(uint64_t index) {
    if (stack_.empty()) fail("nothing to remember");
    memo_[index] = stack_.back();
  }
  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail(fmt::format("nothing is remembered as {}", index));
    stack_.push_back(found->second);
  }

  const PickleValue& argument(const PickleValue& arguments, size_t index, Kind kind) {
    if (arguments.kind != Kind::Sequence || arguments.items.size() <= index || arguments.items[index]->kind != kind)
      fail(fmt::format("argument {} of a call is not what it must be", index));
    return *arguments.items[index];
  }
  const std::string& name_in(const PickleValue& value) {
    if (value.kind != Kind::Text && value.kind != Kind::Global) fail("a name is no text");
    if (value.text.size() > kMaxName) fail(fmt::format("a name of {} bytes", value.text.size()));
    return value.text;
  }
  const PickleValue& sizes_in(const PickleValue& arguments, size_t index) {
    const PickleValue& sizes = argument(arguments, index, Kind::Sequence);
    if (sizes.items.size() > kMaxDimensions) fail(fmt::format("a tensor of {} dimensions", sizes.items.size()));
    return sizes;
  }
  Shape sizes_of(const PickleValue& sequence) {
    Shape sizes;
    for (const PickleValue* item : sequence.items) {
      if (item->kind != Kind::Number) fail("a size is no number");
      sizes.push_back(item->number);
    }
    return sizes;
  }
  void rebuild_tensor(const PickleValue& arguments) {
    const PickleValue& storage = argument(arguments, 0, Kind::Storage);
    PickledTensor tensor = storage.tensor;
    tensor.offset = argument(arguments, 1, Kind::Number).number;
    tensor.shape = sizes_of(sizes_in(arguments, 2));
    tensor.strides = sizes_of(sizes_in(arguments, 3));
    push(Kind::Tensor).tensor = std::move(tensor);
  }
  /// The class that the opcode makes an object of, for messages.
  std::string class_for(char opcode) {
    if (opcode == 'i') {
      const std::string module = line();
      return fmt::format("{}.{}", module, line());
    }
    for (auto value = stack_.rbegin(); value != stack_.rend(); ++value)
      if ((*value)->kind == Kind::Global) return (*value)->text;
    return "some class";
  }
  void call(const PickleValue& callee, const PickleValue& arguments);
  void record(const PickleValue& callee, const PickleValue& arguments);
  void build();
  void persistent(const PickleValue& id);

  std::string_view text_;
  size_t at_ = 0;
  const std::string& where_;
  bool records_;
  std::deque<PickleValue>& values_;
  std::vector<PickleValue*> stack_;
  std::unordered_map<uint64_t, PickleValue*> memo_;
};

void Pickle::Machine::step(char opcode) {
  if (step_constant(opcode) || step_container(opcode) || step_memo(opcode)) return;
  switch (opcode) {
    case '\x80':  // PROTO
      bytes(1);
      return;
    case '\x95':  // FRAME
      bytes(8);
      return;
    case 'c': {  // GLOBAL: a name, not what it stands for
      const std::string module = line();
      push(Kind::Global).text = fmt::format("{}.{}", module, line());
      return;
    }
    case '\x93': {  // STACK_GLOBAL
      const PickleValue* const name = pop();
      const PickleValue* const module = pop();
      push(Kind::Global).text = fmt::format("{}.{}", name_in(*module), name_in(*name));
      return;
    }
    case 'Q':  // BINPERSID
      return persistent(*pop());
    case 'R': {  // REDUCE
      const PickleValue* const arguments = pop();
      return call(*pop(), *arguments);
    }
    case 'b':  // BUILD
      return build();
    case '\x81':  // NEWOBJ
      if (records_) {
        const PickleValue* const arguments = pop();
        return record(*pop(), *arguments);
      }
      [[fallthrough]];
    case '\x92':  // NEWOBJ_EX
    case 'o':     // OBJ
    case 'i':     // INST
      fail(fmt::format("it makes an object of {}, which is refused: a file of tensors needs no code",
                       class_for(opcode)));
    default:
      fail(fmt::format("opcode 0x{:02x} has no place in a file of tensors", static_cast<unsigned char>(opcode)));
  }
}

bool Pickle::Machine::step_constant(char opcode) {
  switch (opcode) {
    case 'N':
      push(Kind::None);
      return true;
    case '\x88':  // NEWTRUE
    case '\x89':  // NEWFALSE
      push_number(opcode == '\x88' ? 1 : 0);
      return true;
    case 'K':
      push_number(static_cast<int64_t>(little_endian(1)));
      return true;
    case 'M':
      push_number(static_cast<int64_t>(little_endian(2)));
      return true;
    case 'J':
      push_number(static_cast<int32_t>(little_endian(4)));
      return true;
    case '\x8a': {  // LONG1, two's complement
      const uint64_t count = little_endian(1);
      if (count > 8) fail("a whole number of more than 64 bits");
      const uint64_t value = little_endian(count);
      const bool is_negative = count > 0 && (value >> (8 * count - 1) & 1U) != 0;
      push_number(static_cast<int64_t>(is_negative && count < 8 ? value | ~uint64_t{0} << (8 * count) : value));
      return true;
    }
    case 'G':  // BINFLOAT: nothing here needs its value
      bytes(8);
      push(Kind::Other);
      return true;
    case 'X':
    case '\x8c':  // SHORT_BINUNICODE
      push(Kind::Text).text = bytes(little_endian(opcode == 'X' ? 4 : 1));
      return true;
    case 'U':
    case 'C':  // SHORT_BINSTRING, SHORT_BINBYTES
      push(Kind::Text).text = bytes(little_endian(1));
      return true;
    case 'T':
    case 'B':
      push(Kind::Text).text = bytes(little_endian(4));
      return true;
    default:
      return false;
  }
}

bool Pickle::Machine::step_container(char opcode) {
  switch (opcode) {
    case '(':
      push(Kind::Mark);
      return true;
    case '}':
      push(Kind::Mapping);
      return true;
    case ']':
    case ')':
      push(Kind::Sequence);
      return true;
    case '\x8f':  // EMPTY_SET
      push(Kind::Sequence);
      return true;
    case '\x85':
    case '\x86':
    case '\x87':  // TUPLE1, TUPLE2, TUPLE3
      push_sequence(static_cast<size_t>(static_cast<unsigned char>(opcode) - 0x84));
      return true;
    case 't': {
      const auto items = pop_to_mark();
      push(Kind::Sequence).items.assign(items.begin(), items.end());
      return true;
    }
    case 'a':
      append({pop()});
      return true;
    case 'e':
    case '\x90':  // ADDITEMS
      append(pop_to_mark());
      return true;
    case 's': {
      PickleValue* const value = pop();
      PickleValue* const key = pop();
      set_items({key, value});
      return true;
    }
    case 'u':
      set_items(pop_to_mark());
      return true;
    case '0':
      pop();
      return true;
    default:
      return false;
  }
}

bool Pickle::Machine::step_memo(char opcode) {
  switch (opcode) {
    case 'q':
      remember(little_endian(1));
      return true;
    case 'r':
      remember(little_endian(4));
      return true;
    case '\x94':  // MEMOIZE
      remember(memo_.size());
      return true;
    case 'h':
      recall(little_endian(1));
      return true;
    case 'j':
      recall(little_endian(4));
      return true;
    default:
      return false;
  }
}

void Pickle::Machine::call(const PickleValue& callee, const PickleValue& arguments) {
  if (callee.kind != Kind::Global) fail("it calls what has no name");
  if (callee.text == "collections.OrderedDict") {
    push(Kind::Mapping);
  } else if (callee.text == "torch.Size") {
    push(Kind::Sequence).items = sizes_in(arguments, 0).items;
  } else if (callee.text == "torch._utils._rebuild_tensor_v2" || callee.text == "torch._utils._rebuild_tensor") {
    rebuild_tensor(arguments);
  } else if (callee.text == "torch._utils._rebuild_parameter") {
    push(Kind::Tensor).tensor = argument(arguments, 0, Kind::Tensor).tensor;
  } else if (callee.text == "torch.device") {
    push(Kind::Other);
  } else if (records_) {
    record(callee, arguments);
  } else {
    fail(
        fmt::format("it calls {}, which is refused: a file of tensors needs no code; save the state_dict alone, or "
                    "as safetensors",
                    callee.text));
  }
}

void Pickle::Machine::record(const PickleValue& callee, const PickleValue& arguments) {
  const std::string& name = name_in(callee);
  if (arguments.kind != Kind::Sequence || arguments.items.size() > kMaxDimensions)
    fail("the arguments of a call are none");
  PickleValue& object = push(Kind::Object);
  object.text = name;
  object.items = arguments.items;
}

/// Attributes of an OrderedDict, such as _metadata, say nothing about tensors. A dataclass with slots has them in a
/// sequence.
void Pickle::Machine::build() {
  const PickleValue* const state = pop();
  if (!records_ || stack_.empty() || stack_.back()->kind != Kind::Object) return static_cast<void>(top(Kind::Mapping));
  PickleValue& object = *stack_.back();
  if (object.state) fail("an object gets its attributes twice");
  object.state = state;
}

/// ("storage", torch.FloatStorage, key, location, elements)
void Pickle::Machine::persistent(const PickleValue& id) {
  if (argument(id, 0, Kind::Text).text != "storage") fail("a reference to what is no storage");
  PickledTensor storage;
  const std::string& type = name_in(argument(id, 1, Kind::Global));
  storage.storage_type = type.substr(type.rfind('.') + 1);
  storage.storage_key = name_in(argument(id, 2, Kind::Text));
  storage.storage_elements = argument(id, 4, Kind::Number).number;
  push(Kind::Storage).tensor = std::move(storage);
}

Pickle::Pickle(std::string_view text, std::string where, OtherCalls others) {
  root_ = Machine(text, where, others, values_).run();
}

}  // namespace trainyard::checkpoint
