#include "config/precision.h"

#include <catch2/catch.hpp>

#include "config/schema.h"
#include "unit/config/error_of.h"

namespace trainyard::config {
namespace {

std::string refusal(const std::string& text) {
  return error_of([&] { static_cast<void>(precision_rules(text)); });
}

}  // namespace

TEST_CASE("precision rules: a type alone is the param_dtype, and what a rule does not say stays", "[config]") {
  Config config;
  config.parallel.param_dtype = Precision::BFloat16, config.parallel.reduce_dtype = Precision::BFloat16;
  const auto rules = precision_rules(
      " model.layers.[01] = fp32 ,root=reduce_dtype:float32  output_dtype:FP32 cast_forward_inputs:false");
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].pattern == "model.layers.[01]");
  const Parallel first = with(config, rules[0]).parallel, second = with(config, rules[1]).parallel;
  CHECK(first.param_dtype == Precision::Float32);
  CHECK(first.reduce_dtype == Precision::BFloat16);
  CHECK(first.output_dtype == OutputPrecision::AsComputed);
  CHECK(first.cast_forward_inputs);
  CHECK(rules[1].pattern == "root");
  CHECK(second.param_dtype == Precision::BFloat16);
  CHECK(second.reduce_dtype == Precision::Float32);
  CHECK(second.output_dtype == OutputPrecision::Float32);
  CHECK_FALSE(second.cast_forward_inputs);
  CHECK(precision_rules("  ").empty());
}

TEST_CASE("precision rules: what is no rule, unknown or there twice is refused", "[config]") {
  for (const char* const text : {"fp32", "model=", "=fp32", "a=fp32,", ","}) {
    CAPTURE(text);
    CHECK_THAT(refusal(text), Catch::EndsWith("is no rule; write pattern=type, such as model.layers.0=fp32"));
  }
  CHECK(refusal("root=fp8") == "param_dtype of root is 'fp8'; use fp32, bf16 or fp16");
  CHECK(refusal("root=output_dtype:fp64") == "output_dtype of root is 'fp64'; use fp32, bf16, fp16 or none");
  CHECK(refusal("root=cast_forward_inputs:maybe") == "cast_forward_inputs of root is 'maybe'; use true or false");
  CHECK(refusal("root=dtype:fp32") ==
        "'dtype' of root is unknown; use param_dtype, reduce_dtype, output_dtype, cast_forward_inputs");
  CHECK(refusal("root=fp32 param_dtype:bf16") == "param_dtype of root is given twice; keep one");
  CHECK(refusal("root=fp32, root=bf16") == "the pattern root is given twice; keep one");
}

TEST_CASE("loss_scale: auto, none or a number above 0", "[config]") {
  const auto scale = [](const std::string& text) {
    Training training;
    training.loss_scale = text;
    return constant_loss_scale(training);
  };
  CHECK_FALSE(scale("auto"));
  CHECK_FALSE(scale("none"));
  CHECK(scale("1024") == 1024);
  for (const char* const text : {"0", "-1", "dynamic", "1e99", "nan"})
    CHECK(error_of([&] { static_cast<void>(scale(text)); }) ==
          "'" + std::string(text) + "' is none of auto, none and a number above 0");
}

}  // namespace trainyard::config
