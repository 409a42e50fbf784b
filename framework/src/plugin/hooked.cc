#include "plugin/hooked.h"

#include <c10/util/Exception.h>

#include <exception>

namespace tally::plugin {
namespace {

std::string& place_of_this_thread() {
  thread_local std::string place;
  return place;
}

}  // namespace

std::string HookIdentity::text() const {
  return kind + " \"" + hook + "\" (plugin " + plugin + " " + version + ")";
}

void rethrow_from_hook(const HookIdentity& identity, const std::string& place) {
  const std::string failed = identity.text() + " failed" + (place.empty() ? "" : " " + place);
  try {
    throw;
  } catch (const ConfigError& error) {
    throw ConfigError(failed + ": " + error.what());
  } catch (const DataError& error) {
    throw DataError(failed + ": " + error.what());
  } catch (const RankError& error) {
    throw RankError(failed + ": " + error.what());
  } catch (const PluginError& error) {
    throw PluginError(failed + ": " + error.what());
  } catch (const Error& error) {
    throw Error(failed + ": " + error.what(), error.exit_code());
  } catch (const c10::Error& error) {
    throw PluginError(failed + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw PluginError(failed + ": " + error.what());
  } catch (...) {
    throw PluginError(failed + ": it threw something that is no std::exception");
  }
}

void set_place(std::string place) { place_of_this_thread() = std::move(place); }

const std::string& place() { return place_of_this_thread(); }

}  // namespace tally::plugin
