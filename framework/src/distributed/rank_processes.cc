#include "distributed/rank_processes.h"
#include "process/exit_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tally/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace tally::distributed {
namespace {

constexpr int kCannotExec = 126;
constexpr const char* kProgram = "/proc/self/exe";

/// A list of strings in the form that exec wants. Owns the strings.
class ExecList {
 public:
  explicit ExecList(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  ExecList(const ExecList&) = delete;
  ExecList& operator=(const ExecList&) = delete;
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_of(const LaunchPlan& plan, int64_t rank, const Board& board,
                                        uint16_t port) {
  const std::vector<std::pair<std::string, std::string>> ours{
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(plan.ranks)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(plan.ranks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {"TALLY_BOARD", board.inherited_path()},
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(ours.begin(), ours.end(), [&](const auto& item) { return item.first == name; });
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : ours) result.push_back(name + "=" + value);
  return result;
}

int open_log(const std::filesystem::path& file) {
  const int descriptor =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    throw DataError(fmt::format(
        "cannot write the log {}: {}; check the folder's permissions and the free space",
        file.string(), std::strerror(errno)));
  }
  return descriptor;
}

/// The child between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_rank(pid_t launcher, int log, const sigset_t& mask, char* const* arguments,
                              char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(kCannotExec);  // it ended before the line above
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execve(kProgram, arguments, environment);
  ::_exit(kCannotExec);
}

}  // namespace

RankProcesses::RankProcesses(const LaunchPlan& plan, const Board& board, uint16_t port,
                             const sigset_t& mask) {
  for (int64_t rank = 0; rank < plan.ranks; ++rank) {
    ends_.push_back({.rank = rank});
    try {
      pids_.push_back(start(plan, rank, board, port, mask));
    } catch (...) {
      kill_running();
      throw;
    }
    ++running_;
  }
}

RankProcesses::~RankProcesses() {
  kill_running();
  for (const pid_t pid : pids_) {
    if (pid != 0) ::waitpid(pid, nullptr, 0);
  }
}

pid_t RankProcesses::start(const LaunchPlan& plan, int64_t rank, const Board& board, uint16_t port,
                           const sigset_t& mask) {
  std::vector<std::string> texts{"tally"};
  texts.insert(texts.end(), plan.arguments.begin(), plan.arguments.end());
  const ExecList arguments(std::move(texts));
  const ExecList environment(environment_of(plan, rank, board, port));
  const int log = open_log(plan.log_folder / fmt::format("rank-{}.log", rank));
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become_rank(launcher, log, mask, arguments.data(), environment.data());
  const int error = errno;
  ::close(log);
  if (pid < 0) throw RankError(fmt::format("cannot start rank {}: {}", rank, std::strerror(error)));
  return pid;
}

void RankProcesses::reap() {
  for (size_t rank = 0; rank < pids_.size(); ++rank) {
    int status = 0;
    if (pids_[rank] != 0 && ::waitpid(pids_[rank], &status, WNOHANG) == pids_[rank])
      note(rank, status);
  }
}

void RankProcesses::note(size_t rank, int status) {
  RankEnd& end = ends_[rank];
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  pids_[rank] = 0;
  --running_;
  const bool failed =
      end.signal != 0 || (end.exit_code != 0 && end.exit_code < process::kSignalBase);
  if (failed && !first_failure_) first_failure_ = static_cast<int64_t>(rank);
}

void RankProcesses::signal_running(int signal) {
  for (const pid_t pid : pids_) {
    if (pid != 0) ::kill(pid, signal);
  }
}

void RankProcesses::kill_running() {
  for (size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] == 0) continue;
    ends_[rank].killed_by_launcher = true;
    ::kill(pids_[rank], SIGKILL);
  }
}

int RankProcesses::common_exit_code() const {
  int code = 0;
  for (const RankEnd& end : ends_) code = std::max(code, end.exit_code);
  return code;
}

}  // namespace tally::distributed
