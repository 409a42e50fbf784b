#include "run/stop_request.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace tally::run {
namespace {

/// Takes stop signals as a rank at window 7 does.
void install_at_window_7(std::chrono::milliseconds grace) {
  distributed::BoardWriter board(distributed::Board::in_memory(1), 0);
  board.window(7);
  install_stop_signals(grace, board);
}

void send_from_another_process(int signal) {
  const pid_t target = ::getpid();
  const pid_t sender = ::fork();
  if (sender == 0) ::_exit(::kill(target, signal));
  ::waitpid(sender, nullptr, 0);
}

TEST(StopRequestDeathTest, TheFirstSignalAsksAndTheSecondEnds) {
  EXPECT_EXIT(
      {
        install_at_window_7(std::chrono::minutes(1));
        if (stop_signal() != 0) std::_Exit(1);
        std::raise(SIGTERM);
        if (stop_signal() != SIGTERM || stop_request().window != 7) std::_Exit(2);
        std::raise(SIGUSR1);
        std::_Exit(3);
      },
      ::testing::KilledBySignal(SIGUSR1), "");
}

TEST(StopRequestDeathTest, TheSameSignalByASecondWayIsOneStop) {
  EXPECT_EXIT(
      {
        install_at_window_7(std::chrono::minutes(1));
        send_from_another_process(SIGTERM);
        std::raise(SIGTERM);
        if (stop_signal() != SIGTERM) std::_Exit(2);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(StopRequestDeathTest, AThirdOneEnds) {
  EXPECT_EXIT(
      {
        install_at_window_7(std::chrono::minutes(1));
        for (int i = 0; i < 3; ++i) send_from_another_process(SIGTERM);
        std::_Exit(3);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopRequestDeathTest, ABlockedSignalIsTakenWhenItCanBe) {
  EXPECT_EXIT(
      {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
        ::kill(::getpid(), SIGINT);
        install_at_window_7(std::chrono::minutes(1));
        std::_Exit(stop_signal() == SIGINT ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(StopRequestDeathTest, AProcessThatGoesOnIsEndedAfterTheGraceTime) {
  EXPECT_EXIT(
      {
        install_at_window_7(std::chrono::milliseconds(50));
        std::raise(SIGTERM);
        for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::_Exit(3);
      },
      ::testing::ExitedWithCode(4), "did not stop and save within checkpoint.grace_seconds");
}

}  // namespace
}  // namespace tally::run
