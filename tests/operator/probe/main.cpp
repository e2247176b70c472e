#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/meta.h"
#include "kube/client.h"
#include "kube/elector.h"
#include "kube/event_recorder.h"
#include "kube/informer.h"
#include "kube/reply.h"

// kube/ from the outside: kube_test.py gives it a server and watches what it prints, one JSON object a line. It ends
// with its standard input.
//   probe get PATH             one request; {"ok": …} or {"error": …}
//   probe poll PATH            the same every 200 ms
//   probe inform NAMESPACE     config maps as an informer tells of them
//   probe create NAMESPACE N   config maps, all at once, then {"created": N, "seconds": …}
//   probe delete NAMESPACE N   the same ones
//   probe elect NAMESPACE ID   takes part in an election, and while it leads writes to config map "log" every 20 ms
//   probe events NAMESPACE     one event ten times, one that is said once, one in a namespace that is not there
namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

void say(const Json& line) {
  std::fputs((dump(line) + "\n").c_str(), stdout);
  std::fflush(stdout);
}

Json shown(const ApiError& error) {
  static const std::map<ErrorKind, const char*> names{
      {ErrorKind::NotFound, "NotFound"}, {ErrorKind::AlreadyExists, "AlreadyExists"},
      {ErrorKind::Conflict, "Conflict"}, {ErrorKind::Gone, "Gone"},
      {ErrorKind::Invalid, "Invalid"},   {ErrorKind::Forbidden, "Forbidden"},
      {ErrorKind::TooMany, "TooMany"},   {ErrorKind::Unauthorized, "Unauthorized"},
      {ErrorKind::Server, "Server"},     {ErrorKind::Unknown, "Unknown"},
      {ErrorKind::NotSent, "NotSent"}};
  return {{"error", names.at(error.kind)}, {"status", error.http_status}, {"message", error.message}};
}

struct Probe {
  EventLoop loop;
  Client client;
  std::vector<std::string> arguments;
  std::vector<std::shared_ptr<void>> parts;  ///< end before the client

  explicit Probe(std::vector<std::string> words)
      : client(loop, load_config({}, process_surroundings()),
               {.watch_stall = std::chrono::milliseconds(std::stoi(setting("PROBE_WATCH_STALL_MS", "150000")))}),
        arguments(std::move(words)) {}
  ~Probe() { parts.clear(); }

  static std::string setting(const std::string& name, const std::string& otherwise) {
    return process_surroundings().variable(name).value_or(otherwise);
  }
  template <typename Part, typename... Arguments>
  Part& own(Arguments&&... them) {
    const auto part = std::make_shared<Part>(std::forward<Arguments>(them)...);
    parts.push_back(part);
    return *part;
  }
  void end_with_input() {
    loop.watch(STDIN_FILENO, EventLoop::Readable, [this](unsigned) {
      char buffer[256];
      if (::read(STDIN_FILENO, buffer, sizeof buffer) <= 0) loop.stop();
    });
  }

  void get_once();
  void poll();
  void inform();
  void create_many();
  void delete_many();
  void elect();
  void write_for_ever();
  void send_events();
};

void Probe::get_once() {
  client.call(kube::get(arguments.at(0)), [this](const Result<Json>& reply) {
    say(reply ? Json{{"ok", reply.value()}} : shown(reply.error()));
    loop.stop();
  });
}

void Probe::poll() {
  client.call(kube::get(arguments.at(0)), [this](const Result<Json>& reply) {
    say(reply ? Json{{"ok", true}} : shown(reply.error()));
    loop.after(200ms, [this] { poll(); });
  });
}

void Probe::inform() {
  const auto tell = [](const char* change, const api::Meta& meta) {
    say({{"change", change}, {"name", meta.name}, {"uid", meta.uid}, {"version", meta.resource_version}});
  };
  auto& informer = own<Informer<api::Meta>>(
      client, Selection{.resource = kConfigMaps, .ns = arguments.at(0), .label_selector = "probe=yes"}, api::parse_meta,
      [tell](const auto& old_meta, const auto& new_meta) {
        tell(!old_meta ? "add" : new_meta ? "update" : "delete", new_meta ? *new_meta : *old_meta);
      });
  informer.set_on_trouble([](const ApiError& error) { say({{"trouble", shown(error)}}); });
  informer.set_on_listed([&informer] { say({{"listed", informer.size()}}); });
  informer.start();
}

void Probe::create_many() {
  const int count = std::stoi(arguments.at(1));
  const auto left = std::make_shared<int>(count);
  const auto began = EventLoop::now();
  for (int number = 0; number < count; ++number) {
    const Json object{{"metadata", {{"name", fmt::format("c{:05}", number)}, {"labels", {{"probe", "yes"}}}}}};
    client.call(create(collection_path(kConfigMaps, arguments.at(0)), object), [=, this](const Result<Json>& reply) {
      if (!reply) say(shown(reply.error()));
      if (--*left > 0) return;
      const std::chrono::duration<double> seconds = EventLoop::now() - began;
      say({{"created", count},
           {"seconds", seconds.count()},
           {"limit", client.limit()},
           {"requests", client.counts().requests}});
      loop.stop();
    });
  }
}

void Probe::delete_many() {
  const int count = std::stoi(arguments.at(1));
  const auto left = std::make_shared<int>(count);
  for (int number = 0; number < count; ++number)
    client.call(remove(object_path(kConfigMaps, arguments.at(0), fmt::format("c{:05}", number))),
                [=, this](const Result<Json>& reply) {
                  say(reply ? Json{{"gone", is_gone(reply.value())}} : shown(reply.error()));
                  if (--*left == 0) loop.stop();
                });
}

void Probe::elect() {
  const auto milliseconds = [](const char* name, const char* otherwise) {
    return std::chrono::milliseconds(std::stoi(setting(name, otherwise)));
  };
  auto& elector = own<Elector>(
      client,
      ElectionSettings{.ns = arguments.at(0),
                       .name = "probe",
                       .identity = arguments.at(1),
                       .lease_duration = milliseconds("PROBE_LEASE_MS", "15000"),
                       .renew_deadline = milliseconds("PROBE_DEADLINE_MS", "10000"),
                       .retry_period = milliseconds("PROBE_RETRY_MS", "2000")},
      [](bool leads) {
        say({{"leads", leads}});
      },
      [](const ApiError& error) {
        say({{"trouble", shown(error)}});
      });
  client.set_write_guard([&elector] { return elector.is_leader(); });
  elector.start();
  write_for_ever();
  loop.watch(STDIN_FILENO, EventLoop::Readable, [this, &elector](unsigned) {
    loop.unwatch(STDIN_FILENO);
    elector.release([this] { loop.stop(); });
  });
}

/// The guard of the client decides, not this loop: it goes on blindly, as code does that was stopped in its middle.
void Probe::write_for_ever() {
  loop.after(20ms, [this] {
    client.call(
        merge_patch(object_path(kConfigMaps, arguments.at(0), "log"), {{"data", {{"writer", arguments.at(1)}}}}),
        [this](const Result<Json>& reply) {
          if (reply) say({{"wrote", text_at(reply.value(), "/metadata/resourceVersion")}});
          if (!reply && reply.error().kind != ErrorKind::NotSent) say(shown(reply.error()));
          write_for_ever();
        });
  });
}

void Probe::send_events() {
  auto& recorder = own<EventRecorder>(client, "pytorchjob-controller", "probe");
  const InvolvedObject about{"kubeflow.org/v1", "PyTorchJob", arguments.at(0), "llama", "uid-1", "7"};
  InvolvedObject elsewhere = about;
  elsewhere.ns = "not-there";
  for (int number = 0; number < 10; ++number) recorder.record(about, {.reason = "Again", .message = "the same"});
  recorder.record(about, {.is_warning = true, .reason = "Once", .message = "said once", .once = "first"});
  recorder.record(elsewhere, {.reason = "Lost", .message = "nobody reads it"});
}

void run(const std::string& command, std::vector<std::string> arguments) {
  Probe probe(std::move(arguments));
  const std::map<std::string, void (Probe::*)()> commands{
      {"get", &Probe::get_once},       {"poll", &Probe::poll},          {"inform", &Probe::inform},
      {"create", &Probe::create_many}, {"delete", &Probe::delete_many}, {"elect", &Probe::elect},
      {"events", &Probe::send_events}};
  probe.end_with_input();
  (probe.*commands.at(command))();
  probe.loop.run();
}

}  // namespace
}  // namespace trainyard::kube

int main(int count, char** words) {
  try {
    trainyard::kube::run(words[1], {words + 2, words + count});
    return 0;
  } catch (const trainyard::kube::ConfigError& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
