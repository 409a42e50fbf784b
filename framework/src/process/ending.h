#pragma once

#include <chrono>
#include <exception>
#include <string>

namespace tally::process {

/// The sentence of an exception without LibTorch's stack trace, with nothing in it that a terminal
/// would obey.
std::string first_line(const std::exception& error);

/// The same of an exception of any type.
std::string sentence_of(const std::exception_ptr& failure);

/// Exit code of a process that ends by this exception: an Error's own, or 70.
int exit_code_of(const std::exception_ptr& failure);

/// Ends the process without destructors: a group with a lost peer would wait in its own for that
/// peer.
[[noreturn]] void end_process(int exit_code);

/// Ends the process with `exit_code` after `grace` unless it has ended by then: for the case that a
/// thread sits in a wait that nothing local can wake, such as a kernel of a lost NCCL peer. The
/// first call counts. [any thread]
void end_process_within(std::chrono::milliseconds grace, int exit_code);

/// Keeps LibTorch's own log, which shows a lost connection as a stack trace, from standing beside
/// the sentences of this program. TORCH_CPP_LOG_LEVEL (INFO, WARNING, ERROR) brings it back. Called
/// before any thread exists: it changes the environment, for the ranks too.
void keep_libtorch_quiet();

}  // namespace tally::process
