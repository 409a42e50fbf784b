#include "checkpoint/checkpoint.h"

#include "files/atomic_folder.h"

#include <tally/error.h>
#include <torch/version.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace tally::checkpoint {
namespace {

constexpr std::string_view kStepPrefix = "step-";

/// Far more than any recipe, lock or manifest; a damaged size must not ask for all memory.
constexpr int64_t kLongestText = 1 << 28;

std::string numbered(int64_t window) {
  const std::string digits = std::to_string(window);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

/// The name of the folder itself, also for "artifacts/step-0050/".
std::string name_of(const std::filesystem::path& folder) {
  return folder.has_filename() ? folder.filename().string()
                               : folder.parent_path().filename().string();
}

void check_rank_files(const std::filesystem::path& target, int64_t world,
                      const std::vector<files::FileEntry>& rank_files) {
  for (int64_t rank = 0; rank < world; ++rank) {
    const auto is_ours = [name = rank_file(rank)](const files::FileEntry& entry) {
      return entry.name == name;
    };
    if (std::count_if(rank_files.begin(), rank_files.end(), is_ours) != 1)
      throw DataError("cannot publish " + target.string() + ": rank " + std::to_string(rank) +
                      " of " + std::to_string(world) + " did not hand in its " + rank_file(rank));
  }
}

/// Throws DataError for a file that the manifest does not name, and for one that is not there.
void check_names(files::FileSystem& system, const std::filesystem::path& step,
                 const Manifest& manifest) {
  std::vector<std::string> expected = {kManifestFile, kManifestDigestFile};
  for (const files::FileEntry& entry : manifest.files) expected.push_back(entry.name);
  std::sort(expected.begin(), expected.end());
  const std::vector<std::string> found = list_folder(system, step);
  for (const std::string& name : found) {
    if (!std::binary_search(expected.begin(), expected.end(), name))
      throw DataError((step / name).string() +
                      " does not belong to the checkpoint: its manifest does not name it; move it "
                      "out of the folder");
  }
  for (const std::string& name : expected) {
    if (!std::binary_search(found.begin(), found.end(), name))
      throw DataError((step / name).string() +
                      " is missing; restore it from a copy, or use an older checkpoint");
  }
}

Manifest read_manifest(files::FileSystem& system, const std::filesystem::path& step) {
  const std::filesystem::path path = step / kManifestFile;
  const std::string text = read_text(path, files::Links::kRefuse, kLongestText, system);
  const std::string line =
      read_text(step / kManifestDigestFile, files::Links::kRefuse, kLongestText, system);
  // The whole line, byte by byte: nothing in it may change unseen.
  if (line != manifest_digest_line(text))
    throw DataError(path.string() + " has the SHA-256 " + sha256(text).hex() + ", but " +
                    kManifestDigestFile +
                    " does not say so; one of the two is damaged: restore both from a copy, or "
                    "use an older checkpoint");
  Manifest manifest = Manifest::from_json(text, path.string());
  const std::optional<int64_t> window = window_of_step(name_of(step));
  if (window && *window != manifest.window)
    throw DataError(path.string() + " is of window " + std::to_string(manifest.window) +
                    ", but its folder is named " + name_of(step) +
                    "; give the folder its old name, " + step_name(manifest.window));
  return manifest;
}

}  // namespace

std::string step_name(int64_t window) { return std::string(kStepPrefix) + numbered(window); }

std::optional<int64_t> window_of_step(const std::string& name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  int64_t window = -1;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kStepPrefix.size(), end, window);
  // One name a window: "step-50" would stand beside "step-0050".
  if (error != std::errc() || stop != end || window < 0 || step_name(window) != name)
    return std::nullopt;
  return window;
}

CheckpointWriter::CheckpointWriter(const std::filesystem::path& folder, int64_t window,
                                   int64_t world, files::FileSystem& system)
    : system_(system), target_(folder / step_name(window)), window_(window), world_(world) {}

std::filesystem::path CheckpointWriter::staging() const { return files::staging_of(target_); }

files::FileEntry CheckpointWriter::write_rank_file(int64_t rank, const StateBundle& states) const {
  make_folders(system_, staging());
  files::FileWriter file(staging() / rank_file(rank), system_);
  states.write(file, {{"rank", std::to_string(rank)},
                      {"world", std::to_string(world_)},
                      {"window", std::to_string(window_)}});
  return file.finish();
}

void CheckpointWriter::publish(const CheckpointContent& content,
                               const std::vector<files::FileEntry>& rank_files) const {
  files::AtomicFolder folder(target_, files::AtomicFolder::Start::kShared, system_);
  check_rank_files(target_, world_, rank_files);
  Manifest manifest{window_,       world_,          content.tally_version,
                    TORCH_VERSION, content.plugins, content.lineage,
                    rank_files};
  for (const files::FileEntry& entry : rank_files) folder.adopt(entry);
  // "pt" tells readers of the Python package that the names are those of a state_dict.
  manifest.files.push_back(folder.add(kModelFile, [&](files::FileWriter& file) {
    write_safetensors(file, content.model, {{"format", "pt"}});
  }));
  manifest.files.push_back(folder.add(kOptimizerFile, [&](files::FileWriter& file) {
    write_safetensors(file, content.optimizer);
  }));
  manifest.files.push_back(folder.add(kRecipeFile, content.recipe));
  manifest.files.push_back(folder.add(kDataLockFile, content.data_lock));
  const std::string text = manifest.to_json();
  folder.add(kManifestFile, text);
  folder.add(kManifestDigestFile, manifest_digest_line(text));
  folder.publish();
}

void CheckpointWriter::discard() const { remove_tree(system_, staging()); }

CheckpointReader::CheckpointReader(std::filesystem::path path, Manifest manifest,
                                   files::FileSystem& system)
    : path_(std::move(path)), manifest_(std::move(manifest)), system_(&system) {}

CheckpointReader CheckpointReader::open(const std::filesystem::path& step,
                                        files::FileSystem& system) {
  Manifest manifest = read_manifest(system, step);
  check_names(system, step, manifest);
  for (const files::FileEntry& entry : manifest.files) files::verify_file(step, entry, system);
  return CheckpointReader(step, std::move(manifest), system);
}

std::vector<NamedTensor> CheckpointReader::model() const { return tensors(kModelFile).tensors; }

std::vector<NamedTensor> CheckpointReader::optimizer() const {
  return tensors(kOptimizerFile).tensors;
}

StateBundle CheckpointReader::rank_state(int64_t rank) const {
  const files::FileEntry& entry = manifest_.file(rank_file(rank));
  files::FileReader file(path_ / entry.name, files::Links::kRefuse, *system_);
  StateBundle states = StateBundle::read(file);
  files::check_digest(file, entry);
  const Metadata expected = {{"rank", std::to_string(rank)},
                             {"world", std::to_string(world())},
                             {"window", std::to_string(window())}};
  if (states.extra() != expected)
    throw DataError(file.path().string() + " was not saved by rank " + std::to_string(rank) +
                    " of " + std::to_string(world()) + " after window " + std::to_string(window()) +
                    "; take another copy of the checkpoint");
  return states;
}

std::string CheckpointReader::recipe() const { return text(kRecipeFile); }

std::string CheckpointReader::data_lock() const { return text(kDataLockFile); }

TensorFile CheckpointReader::tensors(const char* name) const {
  const files::FileEntry& entry = manifest_.file(name);
  files::FileReader file(path_ / entry.name, files::Links::kRefuse, *system_);
  TensorFile content = read_safetensors(file);
  files::check_digest(file, entry);
  return content;
}

std::string CheckpointReader::text(const char* name) const {
  const files::FileEntry& entry = manifest_.file(name);
  files::FileReader file(path_ / entry.name, files::Links::kRefuse, *system_);
  std::string content(static_cast<size_t>(entry.size), '\0');
  file.read(content.data(), content.size());
  files::check_digest(file, entry);
  return content;
}

std::vector<std::filesystem::path> list_steps(const std::filesystem::path& folder,
                                              files::FileSystem& system) {
  files::FileSystem::Status status;
  if (system.status(folder / ".", &status) != 0)
    files::throw_system_error("look at", folder, errno);
  if (status.kind == files::FileSystem::Kind::kAbsent) return {};
  std::vector<int64_t> windows;
  for (const std::string& name : list_folder(system, folder)) {
    if (const std::optional<int64_t> window = window_of_step(name)) windows.push_back(*window);
  }
  std::sort(windows.rbegin(), windows.rend());
  std::vector<std::filesystem::path> steps;
  for (const int64_t window : windows) steps.push_back(folder / step_name(window));
  return steps;
}

std::vector<Step> known_steps(const std::filesystem::path& folder,
                              std::vector<DamagedCheckpoint>* damaged, files::FileSystem& system) {
  std::vector<Step> steps;
  for (const std::filesystem::path& path : list_steps(folder, system)) {
    try {
      Manifest manifest = read_manifest(system, path);
      steps.push_back({path, manifest.window, std::move(manifest.lineage)});
    } catch (const DataError& error) {
      damaged->push_back({path, error.what()});
    }
  }
  return steps;
}

std::optional<CheckpointReader> first_whole(const std::vector<Step>& steps,
                                            std::vector<DamagedCheckpoint>* damaged,
                                            files::FileSystem& system) {
  for (const Step& step : steps) {
    try {
      return CheckpointReader::open(step.path, system);
    } catch (const DataError& error) {
      damaged->push_back({step.path, error.what()});
    }
  }
  return std::nullopt;
}

void remove_step(const std::filesystem::path& step, files::FileSystem& system) {
  const std::filesystem::path hidden = files::staging_of(step);
  remove_tree(system, hidden);
  if (system.rename(step, hidden) != 0) files::throw_system_error("delete", step, errno);
  sync_folder(system, files::folder_of(step));
  remove_tree(system, hidden);
}

void remove_unfinished(const std::filesystem::path& folder, files::FileSystem& system) {
  files::FileSystem::Status status;
  if (system.status(folder / ".", &status) != 0)
    files::throw_system_error("look at", folder, errno);
  if (status.kind == files::FileSystem::Kind::kAbsent) return;
  constexpr std::string_view kSuffix = ".partial";
  for (const std::string& name : list_folder(system, folder)) {
    if (!name.starts_with('.') || !name.ends_with(kSuffix)) continue;
    if (window_of_step(name.substr(1, name.size() - 1 - kSuffix.size())))
      remove_tree(system, folder / name);
  }
}

}  // namespace tally::checkpoint
