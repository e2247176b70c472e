#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/cpus.h"
#include "base/error.h"
#include "base/files.h"
#include "base/flags.h"
#include "base/json_depth.h"
#include "base/text.h"
#include "support/support.h"

namespace trainyard {

TEST_CASE("exit_code_of: the exception's type decides", "[base]") {
  CHECK(exit_code_of(InputError("x")) == ExitCode::Input);
  CHECK(exit_code_of(PeerError("x")) == ExitCode::PeerLost);
  CHECK(exit_code_of(DeviceError("x")) == ExitCode::DeviceFault);
  CHECK(exit_code_of(NotFiniteError("x")) == ExitCode::NotFinite);
  CHECK(exit_code_of(TerminatedError("x")) == ExitCode::Terminated);
  CHECK(exit_code_of(std::bad_alloc()) == ExitCode::Input);
  CHECK(exit_code_of(std::runtime_error("x")) == ExitCode::Defect);
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  CHECK(exit_code_of(std::system_error(full)) == ExitCode::Input);
  CHECK(exit_code_of(std::filesystem::filesystem_error("x", full)) == ExitCode::Input);
  CHECK(exit_code_of(std::system_error(std::make_error_code(std::errc::bad_file_descriptor))) == ExitCode::Defect);
}

TEST_CASE("cpus_here: the least of what the process, its container and its pod may have", "[base]") {
  CHECK(cpus_of_limit("150000 100000") == 2);
  CHECK(cpus_of_limit("200000 100000") == 2);
  CHECK(cpus_of_limit("5000 100000") == 1);
  CHECK_FALSE(cpus_of_limit("max 100000"));
  CHECK_FALSE(cpus_of_limit("-1 100000"));
  CHECK_FALSE(cpus_of_limit(""));
  const int all = cpus_here(std::nullopt);
  CHECK(all >= 1);
  CHECK(cpus_here("1") == 1);
  CHECK(cpus_here("100000") == all);
  CHECK(cpus_here("0") == all);
  for (const char* const wrong : {"", "two", "-1", "1.5"})
    CHECK_THROWS_WITH(cpus_here(wrong),
                      "TRAINYARD_CPUS is '" + std::string(wrong) + "'; it must be a whole number, or 0 for all");
}

TEST_CASE("replaced: every place, and not what it has put there itself", "[base]") {
  CHECK(replaced("a-b-c", "-", "--") == "a--b--c");
  CHECK(replaced("aaa", "aa", "b") == "ba");
  CHECK(replaced("abc", "x", "y") == "abc");
}

TEST_CASE("nearest: finds a near word and nothing where none is near", "[base]") {
  const std::vector<std::string> known{"steps", "epochs", "batch_size"};
  CHECK(nearest("step", known) == "steps");
  CHECK(nearest("batchsize", known) == "batch_size");
  CHECK(nearest("setps", known) == "steps");
  CHECK_FALSE(nearest("zzz", known).has_value());
}

TEST_CASE("flags: the first that neither the program nor its subcommand has is refused, with the nearest", "[base]") {
  CLI::App app("", "yard");
  std::string name, value;
  bool quiet = false;
  app.add_option("--name", name);
  CLI::App* const sub = app.add_subcommand("go", "");
  sub->add_option("--value", value)->required();
  sub->add_flag("--quiet", quiet);
  const auto refused = [&](std::vector<std::string> words) { refuse_unknown_flag(app, words); };
  CHECK_THROWS_WITH(refused({"--nam", "x"}), "yard: unknown flag --nam, did you mean --name?; yard --help lists them");
  CHECK_THROWS_WITH(refused({"go", "--valu=1", "--what"}), Catch::Contains("--valu, did you mean --value?"));
  CHECK_THROWS_WITH(refused({"--value", "1"}), Catch::Contains("unknown flag --value; "));
  CHECK_THROWS_WITH(refused({"go", "--quiet", "--what"}), Catch::Contains("--what"));
  CHECK_NOTHROW(refused({"--name", "--what", "go", "--value=--x", "--quiet", "word", "--", "--what"}));
}

TEST_CASE("text: numbers as people read them", "[base]") {
  CHECK(with_thousands(0) == "0");
  CHECK(with_thousands(999) == "999");
  CHECK(with_thousands(1234567) == "1,234,567");
  CHECK(with_thousands(-1000) == "-1,000");
  CHECK(human_bytes(512) == "512 B");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_duration(std::chrono::milliseconds(250)) == "250 ms");
  CHECK(human_duration(std::chrono::milliseconds(2500)) == "2.5 s");
  CHECK(human_duration(std::chrono::seconds(30)) == "30 s");
  CHECK(human_duration(std::chrono::minutes(30)) == "30 min");
  CHECK(parse_bytes("5GB") == 5'000'000'000);
  CHECK(parse_bytes("4 GiB") == uint64_t{4} << 30U);
  CHECK(parse_bytes("123") == 123);
  CHECK_FALSE(parse_bytes("-1MB").has_value());
  CHECK_FALSE(parse_bytes("GB").has_value());
  CHECK_FALSE(parse_bytes("99999999999TB").has_value());
  CHECK(parse_int("-12") == -12);
  CHECK_FALSE(parse_int("12x").has_value());
  CHECK_FALSE(parse_int("").has_value());
  CHECK_FALSE(parse_int("99999999999999999999").has_value());
}

TEST_CASE("write_file_atomically: the new content whole, or the old untouched", "[base]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "file", "first");
  write_file_atomically(folder / "file", "second");
  CHECK(read_file(folder / "file") == "second");
  CHECK_THROWS_AS(write_file_atomically(folder / "missing/file", "x"), std::filesystem::filesystem_error);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: read_file takes all of a file that says it is empty, as those of /proc do, up to the limit",
          "[base]") {
  CHECK_THAT(read_file("/proc/self/mountinfo"), Catch::Contains(" / "));
  CHECK(read_file("/proc/sys/kernel/random/boot_id").size() == 37);
  CHECK_THROWS_WITH(read_file("/proc/self/mountinfo", 8), Catch::Contains("more than the 8"));
  const test::TemporaryFolder folder;
  const std::string content(10'000, 'x');
  write_file_atomically(folder / "file", content);
  CHECK(read_file(folder / "file", content.size()) == content);
}

TEST_CASE("is_shallow_json: counts open brackets, and not those in strings", "[base]") {
  const auto nested = [](size_t depth, const std::string& inside) {
    return std::string(depth, '[') + inside + std::string(depth, ']');
  };
  CHECK(is_shallow_json(nested(500, "1")));
  CHECK_FALSE(is_shallow_json(nested(501, "1")));
  CHECK_FALSE(is_shallow_json(std::string(100'000, '{')));
  std::string many = "[[]";
  for (int i = 0; i < 1000; ++i) many += ",[]";
  CHECK(is_shallow_json(many + "]"));
  CHECK(is_shallow_json(nested(499, '"' + std::string(1000, '[') + "\\\"" + std::string(1000, '[') + '"')));
}

TEST_CASE("MappedFile: maps, and names what it cannot map", "[base]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "empty").close();
  CHECK(MappedFile(folder / "empty").bytes().empty());
  write_file_atomically(folder / "file", "abc");
  CHECK(MappedFile(folder / "file").text() == "abc");
  CHECK_THROWS_WITH(MappedFile(folder / "none"), Catch::Contains("none: No such file"));
  CHECK_THROWS_WITH(MappedFile(folder.path()), Catch::Contains("not a regular file"));
}

}  // namespace trainyard
