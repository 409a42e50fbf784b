#include "run/stop_request.h"
#include "process/exit_code.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>

namespace tally::run {
namespace {

constexpr int64_t kOneStop = 1'000'000'000;  ///< Nanoseconds.

/// All that the handlers touch.
struct Received {
  std::atomic<int> signal{0};
  std::atomic<int64_t> window{-1};
  std::atomic<pid_t> sender{0};
  std::atomic<int64_t> time{0};
  std::atomic<bool> repeated{false};
  const distributed::BoardRecord* record = nullptr;
  timer_t timer{};
  itimerspec grace{};
};
Received received;
static_assert(std::atomic<int64_t>::is_always_lock_free, "signal handlers store it");

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// The signal that is known already, once more, by a second way; time 0: the handler of the first
/// is not through yet.
bool is_same_stop(int signal, pid_t sender) {
  const int64_t time = received.time;
  return signal == received.signal && sender != received.sender &&
         (time == 0 || now() - time < kOneStop) && !received.repeated.exchange(true);
}

// The handlers make async-signal-safe calls only.
extern "C" void request_stop(int signal, siginfo_t* info, void* /*context*/) {
  const pid_t sender = info->si_code <= 0 ? info->si_pid : 0;
  int none = 0;
  if (received.signal.compare_exchange_strong(none, signal)) {
    received.sender = sender;
    received.time = now();
    received.window = __atomic_load_n(&received.record->window, __ATOMIC_RELAXED);
    ::timer_settime(received.timer, 0, &received.grace, nullptr);
    return;
  }
  if (is_same_stop(signal, sender)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

extern "C" void end_late_stop(int /*signal*/) {
  constexpr char kText[] =
      "tally: this rank did not stop and save within checkpoint.grace_seconds after a signal and "
      "ends; the checkpoints from before stand\n";
  const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  static_cast<void>(written);
  ::_exit(process::kRanks);
}

void arm_timer(std::chrono::milliseconds grace) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  if (::timer_create(CLOCK_MONOTONIC, &event, &received.timer) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make the timer that bounds a stop");
  }
  received.grace.it_value.tv_sec = grace.count() / 1000;
  received.grace.it_value.tv_nsec = grace.count() % 1000 * 1'000'000;
  struct sigaction action {};
  action.sa_handler = end_late_stop;
  ::sigaction(SIGALRM, &action, nullptr);
}

}  // namespace

void install_stop_signals(std::chrono::milliseconds grace, distributed::BoardWriter board) {
  // Handlers may run until the process ends: the board stays for them.
  static const distributed::BoardWriter kept = std::move(board);
  received.record = kept.board()->record(kept.rank());
  arm_timer(grace);
  sigset_t stops;
  sigemptyset(&stops);
  struct sigaction action {};
  action.sa_sigaction = request_stop;
  action.sa_flags = SA_RESTART | SA_NODEFER | SA_SIGINFO;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    ::sigaction(signal, &action, nullptr);
    sigaddset(&stops, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
}

StopRequest stop_request() { return {received.signal.load(), received.window.load()}; }

int64_t stop_signal() { return received.signal.load(); }

}  // namespace tally::run
