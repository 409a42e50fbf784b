#include "cli/program.h"

#include "cli/rank_process.h"
#include "generated/version.h"
#include "process/ending.h"
#include "process/exit_code.h"
#include "recipe/nearest.h"
#include "report/text.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <set>
#include <string>

namespace tally::cli {
namespace {

/// Throws ConfigError for a first word that is no verb: the parser would only miss one.
void require_verb(const std::string& word, const std::vector<Verb>& verbs) {
  std::set<std::string, std::less<>> names;
  for (const Verb& verb : verbs) {
    if (verb.name == word) return;
    if (!verb.hidden) names.insert(verb.name);
  }
  const auto near = recipe::nearest(word, names);
  throw ConfigError(
      fmt::format("there is no verb '{}'; {}", report::shown(word),
                  near ? fmt::format("did you mean `tally {}`?", *near) : "see `tally --help`"));
}

/// The parser would take the next argument for the value, or blame another option.
void require_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      throw ConfigError(
          fmt::format("nothing stands after {}; give a value, or leave the option out",
                      report::shown(argument)));
    }
  }
}

int parse_and_run(CLI::App& app, int argc, char** argv, const std::vector<Verb>& verbs) {
  bool json = false;
  std::map<CLI::App*, RunVerb> runs;
  for (const Verb& verb : verbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    if (verb.hidden) sub->group("");
    sub->add_flag("--json", json, "One JSON document on standard output");
    runs[sub] = verb.declare(Arguments(*sub));
    for (CLI::App* nested : sub->get_subcommands([](CLI::App*) { return true; }))
      nested->add_flag("--json", json, "One JSON document on standard output");
  }
  app.require_subcommand(1);
  if (argc > 1 && argv[1][0] != '-') require_verb(argv[1], verbs);
  require_values(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "tally: {}; see `tally --help` or `tally VERB --help`\n",
               report::one_line(error.what()));
    return process::kUsage;
  }
  return runs.at(app.get_subcommands().front())(Terminal(json));
}

}  // namespace

int run_program(int argc, char** argv, const std::vector<Verb>& verbs) {
  process::keep_libtorch_quiet();
  CLI::App app(
      "tally trains one model on several ranks and gives the gradient that a single device would "
      "have given",
      "tally");
  app.set_version_flag("--version", kVersion);
  try {
    return parse_and_run(app, argc, argv, verbs);
  } catch (const RanksFailed& failed) {
    return failed.exit_code();
  } catch (const std::exception& error) {
    const int code = process::exit_code_of(std::current_exception());
    fmt::print(stderr, "tally: {}\n", process::first_line(error));
    return code;
  }
}

}  // namespace tally::cli
