#include <fmt/format.h>

#include "local/addresses.h"
#include "local/caller.h"
#include "local/manifest/refusal.h"
#include "local/pod_run.h"

namespace trainyard::local {
namespace {

/// "trainyard" of "registry:5000/team/trainyard:1.2@sha256:…".
std::string last_part(std::string image) {
  image = image.substr(0, image.find('@'));
  if (const size_t slash = image.rfind('/'); slash != std::string::npos) image.erase(0, slash + 1);
  return image.substr(0, image.find(':'));
}

/// What an image would run by itself, as far as its name tells: our own, or a program of that name.
std::string program_of_image(const std::string& image) {
  const std::string name = last_part(image);
  if (name == "trainyard" || name.starts_with("trainyard-")) return "trainyard";
  return is_on_path(name) ? name : "";
}

}  // namespace

std::vector<std::string> command_of(const Json& container, const Variables& variables, const PodContext& context) {
  std::vector<std::string> command;
  const auto add_words = [&](const char* field) {
    for (const Json& word : container.value(field, Json::array()))
      command.push_back(expand(with_loopback(word.get<std::string>(), context.job), variables));
  };
  add_words("command");
  if (command.empty()) {
    const std::string image = text_at(container, "/image"), program = program_of_image(image);
    if (program.empty())
      throw Refusal(
          fmt::format("pod {}: container {} has no command, and what the image {} would run is not known without a "
                      "container runtime; "
                      "give its command in the manifest",
                      context.name(), text_at(container, "/name"), image));
    command.push_back(program);
  }
  add_words("args");
  return command;
}

}  // namespace trainyard::local
