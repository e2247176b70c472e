#include "nn/module.h"

#include <catch2/catch.hpp>

#include <string>

#include "autograd/functions.h"

namespace trainyard::nn {
namespace {

/// Writes what is called to a story: `f` and `F` around a forward (`f+` where a backward follows), `b` and `B` around a
/// backward, with the module's name.
class Witness : public ModuleHooks {
 public:
  Witness(std::string name, std::string& story) : name_(std::move(name)), story_(story) {}
  void before_forward(bool will_go_back) override { tell(will_go_back ? "f+" : "f"); }
  void after_forward(bool will_go_back) override { tell(will_go_back ? "F+" : "F"); }
  void before_backward() override { tell("b"); }
  void after_backward() override { tell("B"); }

 private:
  void tell(const std::string& what) { story_ += (story_.empty() ? "" : " ") + name_ + what; }
  std::string name_;
  std::string& story_;
};

class Doubler : public Module {
 public:
  Doubler(std::string name, std::string& story) : Module(name) { set_hooks(std::make_unique<Witness>(name, story)); }
  Variable operator()(const Variable& x) {
    return run(x, [](const Variable& y) { return autograd::add(y, y); });
  }
};

/// Two parts, one after the other.
class Pair : public Module {
 public:
  explicit Pair(std::string& story) : Module("pair "), first_("1", story), second_("2", story) {
    add_child(first_);
    add_child(second_);
    set_hooks(std::make_unique<Witness>("P", story));
  }
  Variable operator()(const Variable& x) {
    return run(x, [this](const Variable& y) { return second_(first_(y)); });
  }

 private:
  Doubler first_, second_;
};

class Family : public Module {
 public:
  explicit Family(std::string name) : Module(std::move(name)), child_(name_of("child")) {
    add_parameter("weight", {2, 3});
    child_.add_parameter("bias", {4});
    add_child(child_);
    add_parameter("scale", {1});
  }

 private:
  struct Child : Module {
    using Module::add_parameter;
    using Module::Module;
  } child_;
};

std::string story_of(bool with_tape, bool recompute) {
  std::string story;
  Pair pair(story);
  pair.set_recompute(recompute);
  Tape tape;
  const Variable x(Tensor::from<float>(std::vector<float>{1, -2}, {2}), with_tape ? &tape : nullptr);
  const Variable y = pair(x);
  CHECK(y.value().values<float>()[1] == -8);
  if (with_tape) {
    y.gradient()->add(Tensor::from<float>(std::vector<float>{3, 5}, {2}));
    story += " |";
    tape.backward();
    const Tensor gradient = x.gradient()->take();
    CHECK(gradient.values<float>()[0] == 12);
    CHECK(gradient.values<float>()[1] == 20);
  }
  return story;
}

}  // namespace

TEST_CASE("Module: hooks stand around each part, forward and in reverse on the way back") {
  CHECK(story_of(true, false) == "Pf+ 1f+ 1F+ 2f+ 2F+ PF+ | Pb 2b 2B 1b 1B PB");
}

TEST_CASE("Module: without a tape nothing goes back, and hooks are told") {
  CHECK(story_of(false, false) == "Pf 1f 1F 2f 2F PF");
}

TEST_CASE("Module: a recomputed module runs its parts unrecorded first, and recorded between its own backward hooks") {
  CHECK(story_of(true, true) == "Pf+ 1f 1F 2f 2F PF+ | Pb 1f+ 1F+ 2f+ 2F+ 2b 2B 1b 1B PB");
}

TEST_CASE("Module: parameters are named by their place, and a module's own come before its children's") {
  const Family family("model"), root("");
  std::string names;
  for (const Parameter* const parameter : family.parameters()) names += parameter->name() + " ";
  for (const Parameter* const parameter : root.parameters()) names += parameter->name() + " ";
  CHECK(names == "model.weight model.scale model.child.bias weight scale child.bias ");
}

TEST_CASE("place_whole: every parameter has memory of its own in the given type, zeroed") {
  Family family("model");
  place_whole(family, DType::BFloat16);
  for (Parameter* const parameter : family.parameters()) {
    CHECK(parameter->value().shape() == parameter->shape());
    CHECK(parameter->value().dtype() == DType::BFloat16);
    for (Tensor tensor : {parameter->value(), parameter->gradient()})
      for (const BFloat16 element : tensor.values<BFloat16>()) CHECK(static_cast<float>(element) == 0);
    CHECK(parameter->value().storage() != parameter->gradient().storage());
  }
}

}  // namespace trainyard::nn
