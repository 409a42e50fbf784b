#include "checkpoint/state_file.h"

#include "checkpoint/json.h"
#include "checkpoint/safetensors_header.h"

#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <sstream>

namespace tally::checkpoint {
namespace {

/// One id a line. No key of a value collides with it, for those hold a '/'.
constexpr char kStatesKey[] = "states";

/// NAME/REVISION: with one '/' in every id, "a/1" + "b" and "a" + "1/b" cannot meet in one key.
bool is_state_id(const std::string& id) {
  const size_t slash = id.find('/');
  return slash != id.npos && slash > 0 && slash + 1 < id.size() && slash == id.rfind('/') &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 127; });
}

std::string describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

/// The id in "NAME/REVISION/VALUE"; empty when the key is not of that form.
std::string id_of_key(const std::string& key) {
  const size_t second = key.find('/', key.find('/') + 1);
  return second == key.npos || second + 1 == key.size() ? "" : key.substr(0, second);
}

}  // namespace

class StateBundle::Writer final : public StateWriter {
 public:
  Writer(StateBundle& bundle, std::string id) : bundle_(bundle), id_(std::move(id)) {}

  void tensor(std::string_view name, const at::Tensor& value) override {
    const std::string key = new_key(name);
    if (!value.defined() || value.layout() != at::kStrided || value.is_quantized() ||
        dtype_name(value.scalar_type()) == nullptr)
      throw PluginError(doing(name) + "it is " +
                        (value.defined() ? c10::toString(value.scalar_type()) : "undefined") +
                        " and a file holds dense tensors of plain numbers; convert it first");
    bundle_.tensors_[key] =
        value.detach().to(at::kCPU).resolve_neg().clone(at::MemoryFormat::Contiguous);
  }

  void integer(std::string_view name, int64_t value) override {
    bundle_.tensors_[new_key(name)] = at::scalar_tensor(value, at::kLong);
  }

  void text(std::string_view name, std::string_view value) override {
    const std::string key = new_key(name);
    if (!is_utf8(value))
      throw PluginError(doing(name) + "the text is not UTF-8; save bytes as a uint8 tensor");
    bundle_.texts_[key] = value;
  }

 private:
  std::string doing(std::string_view name) const {
    return "cannot save the value '" + std::string(name) + "' of the state '" + id_ + "': ";
  }

  std::string new_key(std::string_view name) const {
    if (name.empty() || !is_utf8(name))
      throw PluginError(doing(name) + "its name is empty or not UTF-8; give it another name");
    const std::string key = id_ + "/" + std::string(name);
    if (bundle_.tensors_.contains(key) || bundle_.texts_.contains(key))
      throw PluginError(doing(name) + "a value of that name is there already; names are unique");
    return key;
  }

  StateBundle& bundle_;
  std::string id_;
};

class StateBundle::Reader final : public StateReader {
 public:
  Reader(const StateBundle& bundle, std::string id) : bundle_(bundle), id_(std::move(id)) {}

  bool has(std::string_view name) const override {
    return bundle_.tensors_.contains(key(name)) || bundle_.texts_.contains(key(name));
  }

  at::Tensor tensor(std::string_view name) const override {
    const auto found = bundle_.tensors_.find(key(name));
    if (found == bundle_.tensors_.end()) refuse(name, "a tensor");
    return found->second;
  }

  int64_t integer(std::string_view name) const override {
    const auto found = bundle_.tensors_.find(key(name));
    if (found == bundle_.tensors_.end() || found->second.scalar_type() != at::kLong ||
        found->second.dim() != 0)
      refuse(name, "an integer");
    return found->second.item<int64_t>();
  }

  std::string text(std::string_view name) const override {
    const auto found = bundle_.texts_.find(key(name));
    if (found == bundle_.texts_.end()) refuse(name, "a text");
    return found->second;
  }

 private:
  std::string key(std::string_view name) const { return id_ + "/" + std::string(name); }

  [[noreturn]] void refuse(std::string_view name, const char* wanted) const {
    const auto tensor = bundle_.tensors_.find(key(name));
    const std::string found = tensor != bundle_.tensors_.end()
                                  ? "a tensor " + describe(tensor->second)
                              : bundle_.texts_.contains(key(name)) ? "a text"
                                                                   : "absent";
    throw DataError("cannot load the value '" + std::string(name) + "' of the state '" + id_ +
                    "' from " + bundle_.file_ + ": " + wanted + " was expected, but it is " +
                    found + "; resume with the plugins that saved it");
  }

  const StateBundle& bundle_;
  std::string id_;
};

std::unique_ptr<StateWriter> StateBundle::writer(const std::string& state_id) {
  if (!is_state_id(state_id))
    throw PluginError("the state id '" + state_id +
                      "' is not of the form NAME/REVISION, such as 'rng_state/1'");
  if (!state_ids_.insert(state_id).second)
    throw PluginError("the state '" + state_id +
                      "' is saved twice; name its provider once in the recipe");
  return std::make_unique<Writer>(*this, state_id);
}

std::unique_ptr<StateReader> StateBundle::reader(const std::string& state_id) const {
  if (!has(state_id)) {
    std::string present;
    for (const std::string& id : state_ids_) present += (present.empty() ? "" : ", ") + id;
    throw DataError("cannot load the state '" + state_id + "' from " + file_ + ": it holds " +
                    (present.empty() ? "none" : present) +
                    "; resume with the providers that the run had");
  }
  return std::make_unique<Reader>(*this, state_id);
}

void StateBundle::write(files::FileWriter& file, const Metadata& extra) const {
  Metadata metadata = extra;
  for (const std::string& id : state_ids_) metadata[kStatesKey] += id + "\n";
  metadata.insert(texts_.begin(), texts_.end());
  std::vector<NamedTensor> tensors;
  for (const auto& [key, tensor] : tensors_) tensors.push_back({key, tensor});
  write_safetensors(file, tensors, metadata);
}

StateBundle StateBundle::read(files::FileReader& file) {
  TensorFile content = read_safetensors(file);
  StateBundle bundle;
  bundle.file_ = file.path().string();
  std::istringstream ids(content.metadata[kStatesKey]);
  content.metadata.erase(kStatesKey);
  for (std::string id; std::getline(ids, id);) bundle.state_ids_.insert(id);
  const auto check = [&bundle](const std::string& key) {
    if (!bundle.state_ids_.contains(id_of_key(key)))
      throw DataError("cannot use " + bundle.file_ + ": '" + key +
                      "' belongs to no state of the file; it is damaged, so take another copy");
  };
  for (NamedTensor& named : content.tensors) {
    check(named.name);
    bundle.tensors_.emplace(named.name, std::move(named.tensor));
  }
  for (auto& [key, value] : content.metadata) {
    if (key.find('/') == key.npos) {
      bundle.extra_[key] = value;
      continue;
    }
    check(key);
    bundle.texts_[key] = value;
  }
  return bundle;
}

}  // namespace tally::checkpoint
