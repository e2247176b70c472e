#include <fcntl.h>
#include <sys/stat.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/cpus.h"
#include "base/error.h"
#include "base/files.h"
#include "base/open_file.h"
#include "base/byte_io.h"
#include "base/flags.h"
#include "base/json_depth.h"
#include "base/large_numbers.h"
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
  CHECK(exit_code_of(DefectElsewhere("rank 0: x", false)) == ExitCode::Defect);
}

TEST_CASE("exit_code_of: what is short is the user's to mend, and the message says what it is", "[base]") {
  const auto code = [](std::errc value) { return std::make_error_code(value); };
  const std::system_error no_thread(code(std::errc::resource_unavailable_try_again));
  CHECK(exit_code_of(no_thread) == ExitCode::Input);
  CHECK_THAT(message_of(no_thread), Catch::StartsWith("Resource temporarily unavailable: no further thread or process") &&
                                        Catch::Contains("ulimit -u") && Catch::Contains("pids"));
  const std::system_error no_descriptor(code(std::errc::too_many_files_open), "pipe2");
  CHECK(exit_code_of(no_descriptor) == ExitCode::Input);
  CHECK_THAT(message_of(no_descriptor),
             Catch::StartsWith("pipe2: Too many open files: no descriptor is left") && Catch::Contains("ulimit -n, "));
  for (const std::errc value : {std::errc::too_many_files_open_in_system, std::errc::not_enough_memory,
                                std::errc::file_too_large, std::errc::no_space_on_device})
    CHECK(exit_code_of(std::system_error(code(value))) == ExitCode::Input);
  CHECK_THAT(message_of(std::filesystem::filesystem_error("x", "f", code(std::errc::too_many_files_open))),
             Catch::StartsWith("f: cannot be used: Too many open files: no descriptor is left"));
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
  const auto refused = [&](std::vector<std::string> words) { return spelt_flags(app, words); };
  CHECK_THROWS_WITH(refused({"--nam", "x"}), "yard: unknown flag --nam, did you mean --name?; yard --help lists them");
  CHECK_THROWS_WITH(refused({"go", "--valu=1", "--what"}), Catch::Contains("--valu, did you mean --value?"));
  CHECK_THROWS_WITH(refused({"--value", "1"}), Catch::Contains("unknown flag --value; "));
  CHECK_THROWS_WITH(refused({"go", "--quiet", "--what"}), Catch::Contains("--what"));
  CHECK_NOTHROW(refused({"--name", "--what", "go", "--value=--x", "--quiet", "word", "--", "--what"}));
}

TEST_CASE("flags: a name of several letters after one hyphen is told as two", "[base]") {
  CLI::App app("", "yard");
  std::string nodes, value;
  app.add_option("-n,--nnodes", nodes);
  app.add_option("--max-new-tokens", value);
  const auto spelt = [&](std::vector<std::string> words) { return spelt_flags(app, words); };
  CHECK_THROWS_WITH(spelt({"-nnodes=1"}), "yard: unknown flag -nnodes, did you mean --nnodes?");
  CHECK_THROWS_WITH(spelt({"-nnodes", "1"}), "yard: unknown flag -nnodes, did you mean --nnodes?");
  CHECK_THROWS_WITH(spelt({"-max_new_tokens", "1"}), Catch::Contains("did you mean --max-new-tokens?"));
  CHECK_NOTHROW(spelt({"-n", "1", "-n1", "--nnodes", "-nnodes", "--max-new-tokens=-nnodes", "-12"}));
}

TEST_CASE("flags: _ stands for - in all of them, and values are left as they are", "[base]") {
  using Words = std::vector<std::string>;
  CLI::App app("", "yard");
  std::string name, value;
  CLI::App* const sub = app.add_subcommand("go", "");
  sub->add_option("--max-new-tokens", value);
  sub->add_option("--top_p", name);
  CHECK(spelt_flags(app, {"go", "--max_new_tokens", "--a_b", "--top_p=x_y"}) ==
        Words{"go", "--max-new-tokens", "--a_b", "--top_p=x_y"});
  CHECK(spelt_flags(app, {"go", "--max_new-tokens=a_b", "--", "--max_new_tokens"}) ==
        Words{"go", "--max-new-tokens=a_b", "--", "--max_new_tokens"});
  sub->allow_extras();
  CHECK(spelt_flags(app, {"go", "--other_flag", "--max_new_tokens=1"}) ==
        Words{"go", "--other_flag", "--max-new-tokens=1"});
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

TEST_CASE("JSON that is changed: whole numbers beyond 64 bits go through as they are written", "[base]") {
  const auto through = [](const std::string& text) {
    return with_large_numbers_released(nlohmann::ordered_json::parse(with_large_numbers_held(text)).dump());
  };
  for (const std::string text :
       {R"({"a":18446744073709551616,"b":[-9223372036854775809,123456789012345678901234567890]})",
        R"({"a":18446744073709551615,"b":-9223372036854775808,"c":[0,-1,1.5,true,null,1e+300]})",
        R"({"18446744073709551616":"18446744073709551616 \" 18446744073709551616"})", "18446744073709551616", "[]"}) {
    CHECK(through(text) == text);
  }
  CHECK(with_large_numbers_held(R"("a string without an end\)") == R"("a string without an end\)");
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

TEST_CASE("files: a pipe or a device in a file's place is refused by all that open files, and nobody waits for it",
          "[base]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "corpus.txt";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto is_pipe = Catch::Equals(pipe.string() + ": not a regular file but a pipe");
  CHECK_THROWS_WITH(MappedFile(pipe), is_pipe);
  CHECK_THROWS_WITH(read_file(pipe), is_pipe);
  CHECK_THROWS_WITH(FileSource(pipe), is_pipe);
  CHECK_THROWS_WITH(FileSink(pipe), is_pipe);
  CHECK_THROWS_WITH(open_to_write(pipe, O_WRONLY | O_CREAT), is_pipe);
  CHECK_THROWS_WITH(MappedFile("/dev/zero"), "/dev/zero: not a regular file but a device");
}

}  // namespace trainyard
