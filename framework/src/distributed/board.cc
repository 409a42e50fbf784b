#include "distributed/board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <tally/error.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <type_traits>

namespace tally::distributed {
namespace {

static_assert(std::is_trivially_copyable_v<BoardRecord>, "records lie in mapped files");

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

size_t bytes_of(int64_t world) { return sizeof(BoardRecord) * static_cast<size_t>(world); }

// Another process may read at any time: single fields change whole.
template <class T>
void store(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_relaxed);
}

BoardRecord* map(int descriptor, int64_t world, int flags) {
  void* memory = ::mmap(nullptr, bytes_of(world), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED) {
    throw RankError(
        fmt::format("cannot map the board of {} ranks: {}", world, std::strerror(errno)));
  }
  return static_cast<BoardRecord*>(memory);
}

/// Closes a descriptor at the end of the scope.
class Closing {
 public:
  explicit Closing(int descriptor) : descriptor_(descriptor) {}
  ~Closing() { ::close(descriptor_); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  int descriptor_;
};

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kRendezvous:
      return "waiting for the other ranks to join";
    case Phase::kPreparing:
      return "preparing model and data";
    case Phase::kWaitingForPlan:
      return "waiting for the plan of the window";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kReducing:
      return "reducing gradients";
    case Phase::kUpdating:
      return "updating parameters";
    case Phase::kSaving:
      return "saving a checkpoint";
    case Phase::kEvaluating:
      return "evaluating";
    case Phase::kFinished:
      return "finished";
  }
  return "unknown";
}

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kNone:
      return "none";
    case CollectiveKind::kControlRecord:
      return "control record";
    case CollectiveKind::kGradientBucket:
      return "all-reduce of gradient bucket";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kSavedFiles:
      return "gather of saved files";
    case CollectiveKind::kComparison:
      return "comparison of the ranks";
    case CollectiveKind::kEvaluation:
      return "gather of an evaluation";
    case CollectiveKind::kPolicy:
      return "collective of the sync policy";
  }
  return "unknown";
}

std::string text_of(const CollectiveState& state) {
  if (state.kind == CollectiveKind::kNone) return "none";
  return fmt::format("{} {} ({})", name_of(state.kind), state.index,
                     state.done != 0 ? "done" : "waiting");
}

std::shared_ptr<Board> Board::create_inherited(int64_t world) {
  // Without MFD_CLOEXEC on purpose: the children inherit it.
  const int descriptor = ::memfd_create("tally-board", 0);
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(bytes_of(world))) != 0) {
    throw RankError(
        fmt::format("cannot make the board of {} ranks: {}", world, std::strerror(errno)));
  }
  auto board =
      std::shared_ptr<Board>(new Board(map(descriptor, world, MAP_SHARED), world, descriptor));
  board->clear();
  return board;
}

std::shared_ptr<Board> Board::open(const std::filesystem::path& file, int64_t world) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    throw RankError(
        fmt::format("cannot open the board {}: {}", file.string(), std::strerror(errno)));
  }
  const Closing closing(descriptor);
  if (::lseek(descriptor, 0, SEEK_END) != static_cast<off_t>(bytes_of(world))) {
    throw RankError(
        fmt::format("{} is no board of {} ranks; it belongs to another run", file.string(), world));
  }
  return std::shared_ptr<Board>(new Board(map(descriptor, world, MAP_SHARED), world, -1));
}

std::shared_ptr<Board> Board::in_memory(int64_t world) {
  auto board =
      std::shared_ptr<Board>(new Board(map(-1, world, MAP_PRIVATE | MAP_ANONYMOUS), world, -1));
  board->clear();
  return board;
}

Board::~Board() {
  ::munmap(records_, bytes_of(world_));
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Board::clear() {
  for (int64_t rank = 0; rank < world_; ++rank) write(rank, BoardRecord{});
}

std::string Board::inherited_path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

BoardRecord Board::read(int64_t rank) const {
  BoardRecord copy;
  std::memcpy(&copy, records_ + rank, sizeof copy);
  copy.message.back() = '\0';
  return copy;
}

void Board::write(int64_t rank, const BoardRecord& record) {
  std::memcpy(records_ + rank, &record, sizeof record);
}

BoardWriter::BoardWriter(std::shared_ptr<Board> board, int64_t rank)
    : board_(std::move(board)), record_(board_->record(rank)), rank_(rank) {
  store(record_->pid, static_cast<int32_t>(::getpid()));
  touch();
}

void BoardWriter::touch() { store(record_->changed, now()); }

void BoardWriter::phase(Phase phase) {
  store(record_->phase, phase);
  touch();
}

void BoardWriter::window(int64_t window) {
  store(record_->window, window);
  touch();
}

void BoardWriter::finished(int64_t windows) { store(record_->finished, windows); }

void BoardWriter::last_window(int64_t window) { store(record_->last_window, window); }

void BoardWriter::progress(double loss, int64_t tokens) {
  store(record_->loss, loss);
  store(record_->tokens, tokens);
}

void BoardWriter::collective(CollectiveKind kind, int64_t index, bool done) {
  CollectiveState& slot = kind == CollectiveKind::kControlRecord ? record_->control
                          : kind == CollectiveKind::kSavedFiles  ? record_->saving
                                                                 : record_->trainer;
  store(slot.kind, kind);
  store(slot.index, index);
  store(slot.done, static_cast<int32_t>(done));
}

void BoardWriter::fail(std::string_view sentence) {
  const size_t size = std::min(sentence.size(), record_->message.size() - 1);
  std::memcpy(record_->message.data(), sentence.data(), size);
  record_->message[size] = '\0';
}

std::string describe(const Board& board) {
  std::string text;
  for (int64_t rank = 0; rank < board.world(); ++rank) {
    const BoardRecord record = board.read(rank);
    const std::string window =
        record.window < 0 ? "before window 0" : fmt::format("window {}", record.window);
    const double seconds =
        record.changed == 0 ? 0.0 : static_cast<double>(now() - record.changed) * 1e-9;
    text += fmt::format("  rank {}: {}, {} for {:.1f} s; last collective: {}; control: {}", rank,
                        window, name_of(record.phase), seconds, text_of(record.trainer),
                        text_of(record.control));
    if (record.saving.kind != CollectiveKind::kNone)
      text += fmt::format("; saving: {}", text_of(record.saving));
    text += '\n';
    if (record.message[0] != '\0') text += fmt::format("    it said: {}\n", record.message.data());
  }
  return text;
}

}  // namespace tally::distributed
