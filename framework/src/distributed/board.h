#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Who is where: each rank keeps a small record that others can read without asking it, also when
/// it is stopped or dead.
namespace tally::distributed {

enum class Phase : int32_t {
  kStarting,
  kRendezvous,
  kPreparing,
  kWaitingForPlan,
  kForward,
  kBackward,
  kReducing,
  kUpdating,
  kSaving,
  kEvaluating,
  kFinished,
};
std::string_view name_of(Phase phase);

enum class CollectiveKind : int32_t {
  kNone,
  kControlRecord,
  kGradientBucket,
  kBroadcast,
  kSavedFiles,
  kComparison,
  kPolicy,
  kEvaluation,
};
std::string_view name_of(CollectiveKind kind);

/// The last collective that a thread started, and whether it came back.
struct CollectiveState {
  CollectiveKind kind = CollectiveKind::kNone;
  int32_t done = 0;
  int64_t index = 0;  ///< Window of a control record or a saved state, number of a bucket, count of
                      ///< the others.
};
std::string text_of(const CollectiveState& state);

/// One rank's record. Plain data of fixed size: it lies in a mapped file or travels through a
/// store.
struct BoardRecord {
  int64_t window = -1;       ///< Window under way; -1 before the first.
  int64_t finished = 0;      ///< Finished windows.
  int64_t last_window = -1;  ///< The window before which the run stops; -1 when unknown.
  int64_t changed = 0;       ///< When phase or window last changed, nanoseconds since the epoch.
  int64_t tokens = 0;        ///< Counted positions (first term) of the finished windows, all ranks.
  double loss = 0.0;         ///< Objective of the last window whose metrics are known.
  Phase phase = Phase::kStarting;
  int32_t pid = 0;
  CollectiveState control;  ///< Of the loader thread.
  CollectiveState trainer;
  CollectiveState saving;            ///< Of the thread that writes checkpoints.
  std::array<char, 2048> message{};  ///< Why the rank failed; empty while it has not.
};

/// The records of all ranks. Writers own their record; readers get copies, which may be a few
/// stores old.
class Board {
 public:
  /// Memory without a name, for the ranks that this process starts: they inherit its descriptor and
  /// open inherited_path().
  static std::shared_ptr<Board> create_inherited(int64_t world);
  /// Throws RankError when the file is no board of `world` records.
  static std::shared_ptr<Board> open(const std::filesystem::path& file, int64_t world);
  /// Memory of this process, for a rank without our launcher.
  static std::shared_ptr<Board> in_memory(int64_t world);
  ~Board();

  int64_t world() const { return world_; }
  /// What a child process opens.
  std::string inherited_path() const;
  BoardRecord read(int64_t rank) const;
  void write(int64_t rank, const BoardRecord& record);
  BoardRecord* record(int64_t rank) { return records_ + rank; }

 private:
  Board(BoardRecord* records, int64_t world, int descriptor)
      : records_(records), world_(world), descriptor_(descriptor) {}
  void clear();
  BoardRecord* records_;
  int64_t world_;
  int descriptor_;
};

/// One rank's hand on its record. Each setter is a few stores. [any thread]
class BoardWriter {
 public:
  BoardWriter(std::shared_ptr<Board> board, int64_t rank);

  void phase(Phase phase);
  void window(int64_t window);
  void finished(int64_t windows);
  void last_window(int64_t window);
  void progress(double loss, int64_t tokens);
  void collective(CollectiveKind kind, int64_t index, bool done);
  void fail(std::string_view sentence);

  const std::shared_ptr<Board>& board() const { return board_; }
  int64_t rank() const { return rank_; }

 private:
  void touch();
  std::shared_ptr<Board> board_;
  BoardRecord* record_;
  int64_t rank_;
};

/// A line a rank: rank, window, phase, time in it, last collectives, and what it said.
std::string describe(const Board& board);

}  // namespace tally::distributed
