#pragma once

/// What every hook shares.
///
/// A hook is an object that a plugin makes and the host calls. The host never names a plugin and a
/// plugin never includes host sources: this folder is all that they share.
///
/// Threads. [loader]: the thread that works one window ahead. [before the loader starts]: on the
/// trainer's thread, while there is no other. [trainer]: the thread that runs the passes. A hook's
/// [loader] calls run beside its [trainer] calls, so what both touch is set up in the constructor
/// or in `prepare` and only read afterwards.
///
/// Ranks. [every rank]: called the same number of times, in the same order, on every rank.
///
/// Errors. Throw a type of error.h, or any std::exception: the host adds hook, plugin, window and
/// rank.
namespace tally {

class Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  virtual ~Hook() = default;
};

}  // namespace tally
