#pragma once

#include "files/file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tally::checkpoint {

/// The real calls, recorded as changes of a disk, from which the states can be built that a crash
/// may leave.
///
/// The model is what POSIX promises and no more: bytes are safe once their file was synced after
/// they were written, names once their folder was. Every other change may be on the disk or not,
/// whatever came before or after it, and bytes also in part. A rename or an exchange is one change.
class CrashDisk : public files::FileSystem {
 public:
  /// How much of an unsynced change is on the disk: 0 to 1. Names are there from 0.5 on.
  using Share = std::function<double(size_t change)>;

  /// All that lies in `root` now is safe.
  explicit CrashDisk(std::filesystem::path root) : root_(std::move(root)) { load(root_); }

  size_t changes() const { return changes_.size(); }
  const std::string& text_of(size_t change) const { return changes_[change].text; }

  /// Of the first `count` changes those that are not safe yet.
  std::vector<size_t> unsafe(size_t count) const {
    std::vector<size_t> result;
    for (size_t i = 0; i < count; ++i) {
      const auto syncs = [&](const Change& later) {
        return later.kind == Kind::kSync && later.node == changes_[i].node;
      };
      const auto begin = changes_.begin();
      const auto end = begin + static_cast<std::ptrdiff_t>(count);
      if (changes_[i].kind != Kind::kSync &&
          std::none_of(begin + static_cast<std::ptrdiff_t>(i), end, syncs))
        result.push_back(i);
    }
    return result;
  }

  /// Lays out in the absent folder `target` what is there after a crash behind `count` changes.
  void build(size_t count, const Share& share, const std::filesystem::path& target) const {
    std::vector<Node> nodes = safe_;
    const std::vector<size_t> open = unsafe(count);
    for (size_t i = 0; i < count; ++i) {
      const bool sure = !std::binary_search(open.begin(), open.end(), i);
      apply(changes_[i], sure ? 1.0 : share(i), nodes);
    }
    write(nodes, 0, target);
  }

  int open(const std::filesystem::path& path, int flags, mode_t mode) override {
    const int file = files::FileSystem::open(path, flags, mode);
    if (file < 0) return file;
    std::optional<size_t> node = find(path);
    if (!node) {
      node = add_node(/*folder=*/false);
      name(path, *node, "make");
    }
    files_[file] = *node;
    return file;
  }
  ssize_t write(int file, const void* data, size_t size) override {
    const ssize_t written = files::FileSystem::write(file, data, size);
    if (written <= 0) return written;
    Change change{Kind::kData, files_.at(file), "write"};
    change.offset = now_[change.node].bytes.size();
    change.bytes.assign(static_cast<const char*>(data), static_cast<size_t>(written));
    record(std::move(change));
    return written;
  }
  int fsync(int file) override {
    const int result = files::FileSystem::fsync(file);
    if (result == 0) record({Kind::kSync, files_.at(file), "sync"});
    return result;
  }
  int make_folder(const std::filesystem::path& path, mode_t mode) override {
    const int result = files::FileSystem::make_folder(path, mode);
    if (result == 0) name(path, add_node(/*folder=*/true), "make folder");
    return result;
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    const std::optional<size_t> node = find(from);
    const int result = files::FileSystem::rename(from, to);
    if (result == 0) names(from, to, std::nullopt, node, "rename");
    return result;
  }
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override {
    const std::optional<size_t> first = find(one);
    const std::optional<size_t> second = find(other);
    const int result = files::FileSystem::exchange(one, other);
    if (result == 0) names(one, other, second, first, "exchange");
    return result;
  }
  int remove_file(const std::filesystem::path& path) override {
    const int result = files::FileSystem::remove_file(path);
    if (result == 0) name(path, std::nullopt, "remove");
    return result;
  }
  int remove_folder(const std::filesystem::path& path) override {
    const int result = files::FileSystem::remove_folder(path);
    if (result == 0) name(path, std::nullopt, "remove folder");
    return result;
  }

 private:
  struct Node {
    bool folder = false;
    std::string bytes;
    std::map<std::string, size_t> names;
  };
  enum class Kind { kData, kNames, kSync };
  struct Change {
    Kind kind;
    size_t node;  ///< The file of the bytes, or the folder of the names.
    std::string text;
    size_t offset = 0;
    std::string bytes = {};
    std::vector<std::pair<std::string, std::optional<size_t>>> names = {};
  };

  size_t load(const std::filesystem::path& path) {
    const size_t node = safe_.size();
    safe_.push_back({std::filesystem::is_directory(path), {}, {}});
    if (!safe_[node].folder) {
      std::ifstream stream(path, std::ios::binary);
      safe_[node].bytes.assign(std::istreambuf_iterator<char>(stream), {});
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(path)) {
        const size_t child = load(entry.path());
        safe_[node].names[entry.path().filename().string()] = child;
      }
    }
    now_ = safe_;
    return node;
  }

  size_t add_node(bool folder) {
    safe_.push_back({folder, {}, {}});
    now_.push_back({folder, {}, {}});
    return now_.size() - 1;
  }

  std::optional<size_t> find(const std::filesystem::path& path) const {
    size_t node = 0;
    for (const auto& part : path.lexically_relative(root_)) {
      if (part == ".") continue;
      const auto found = now_[node].names.find(part.string());
      if (found == now_[node].names.end()) return std::nullopt;
      node = found->second;
    }
    return node;
  }

  void name(const std::filesystem::path& path, std::optional<size_t> node,
            const std::string& doing) {
    Change change{Kind::kNames, find(path.parent_path()).value(),
                  doing + " " + path.filename().string()};
    change.names = {{path.filename().string(), node}};
    record(std::move(change));
  }

  void names(const std::filesystem::path& one, const std::filesystem::path& other,
             std::optional<size_t> of_one, std::optional<size_t> of_other,
             const std::string& doing) {
    ASSERT_EQ(one.parent_path(), other.parent_path()) << "across folders it would be two changes";
    Change change{Kind::kNames, find(one.parent_path()).value(),
                  doing + " " + one.filename().string() + " " + other.filename().string()};
    change.names = {{one.filename().string(), of_one}, {other.filename().string(), of_other}};
    record(std::move(change));
  }

  void record(Change change) {
    apply(change, 1.0, now_);
    changes_.push_back(std::move(change));
  }

  static void apply(const Change& change, double share, std::vector<Node>& nodes) {
    Node& node = nodes[change.node];
    if (change.kind == Kind::kNames && share >= 0.5) {
      for (const auto& [name, child] : change.names) {
        if (child) {
          node.names[name] = *child;
        } else {
          node.names.erase(name);
        }
      }
    }
    if (change.kind != Kind::kData) return;
    const auto size = static_cast<size_t>(share * static_cast<double>(change.bytes.size()));
    if (size == 0) return;
    // Bytes that are missing in front of others that are there read as zero.
    node.bytes.resize(std::max(node.bytes.size(), change.offset + size), '\0');
    node.bytes.replace(change.offset, size, change.bytes, 0, size);
  }

  static void write(const std::vector<Node>& nodes, size_t node,
                    const std::filesystem::path& target) {
    if (!nodes[node].folder) {
      std::ofstream(target, std::ios::binary) << nodes[node].bytes;
      return;
    }
    std::filesystem::create_directory(target);
    for (const auto& [name, child] : nodes[node].names) write(nodes, child, target / name);
  }

  std::filesystem::path root_;
  std::vector<Node> safe_;  ///< Before the first change, the nodes of later ones empty.
  std::vector<Node> now_;   ///< As a program sees it.
  std::vector<Change> changes_;
  std::map<int, size_t> files_;
};

/// Calls `check` with a folder for each state that a crash may leave behind each number of changes:
/// every unsafe change dropped, kept, alone there, alone missing, in halves, and by chance.
/// `saved`: the crash came after the whole save. Returns how many states there were.
inline size_t for_each_crash(
    const CrashDisk& disk, const std::filesystem::path& scratch,
    const std::function<void(const std::filesystem::path& state, bool saved,
                             const std::string& what)>& check) {
  std::mt19937_64 random(7);
  size_t states = 0;
  for (size_t count = 0; count <= disk.changes(); ++count) {
    const std::vector<size_t> open = disk.unsafe(count);
    std::vector<CrashDisk::Share> shares{[](size_t) { return 0.0; }, [](size_t) { return 1.0; }};
    for (const size_t one : open) {
      shares.push_back([one](size_t change) { return change == one ? 1.0 : 0.0; });
      shares.push_back([one](size_t change) { return change == one ? 0.0 : 1.0; });
      shares.push_back([one](size_t change) { return change == one ? 0.49 : 1.0; });
    }
    for (int i = 0; i < 8; ++i) {
      std::map<size_t, double> drawn;
      for (const size_t change : open) drawn[change] = static_cast<double>(random() % 5) / 4.0;
      shares.push_back([drawn](size_t change) { return drawn.at(change); });
    }
    for (const CrashDisk::Share& share : shares) {
      const std::filesystem::path state = scratch / "state";
      std::filesystem::remove_all(state);
      disk.build(count, share, state);
      std::string what = "behind " + std::to_string(count) +
                         " changes, the last: " + (count == 0 ? "none" : disk.text_of(count - 1)) +
                         "; unsafe:";
      for (const size_t change : open) {
        what += " " + std::to_string(static_cast<int>(share(change) * 100)) + "% of '" +
                disk.text_of(change) + "'";
      }
      check(state, count == disk.changes(), what);
      ++states;
      if (testing::Test::HasFailure()) return states;
    }
  }
  return states;
}

}  // namespace tally::checkpoint
