#include "log/log.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace tally::log {
namespace {

spdlog::logger& logger() {
  // Leaked, so that threads may log until the process ends.
  static auto* instance =
      new spdlog::logger("tally", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>());
  static const bool formatted = [] {
    instance->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    instance->flush_on(spdlog::level::info);
    return true;
  }();
  static_cast<void>(formatted);
  return *instance;
}

}  // namespace

void set_origin(const std::string& origin) {
  logger().set_pattern("%Y-%m-%d %H:%M:%S.%e " + origin + (origin.empty() ? "" : " ") + "%l: %v");
}

void info(std::string_view message) { logger().info("{}", message); }

void warning(std::string_view message) { logger().warn("{}", message); }

void error(std::string_view message) { logger().error("{}", message); }

}  // namespace tally::log
