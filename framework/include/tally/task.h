#pragma once

#include <tally/hook.h>
#include <tally/types.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace tally {

/// The model and its data. One a recipe (`[task]`).
///
/// Call order: constructor, prepare, terms, examples; then initialise, to, parameters and buffers;
/// then load, forward and evaluate. `tally recipe show` stops after the constructor, `tally
/// prepare` after examples. Untagged calls come before the loader starts.
///
/// A task knows no rank and no world, and draws nothing from them: the same examples give the same
/// losses wherever they are processed, which is what makes the result that of one device.
class Task : public Hook {
 public:
  /// Makes the data in `folder`, which the host has made, or checks what is there. Idempotent: a
  /// second call on good data changes no byte. The task writes its data files there; the host keeps
  /// their digests in `data.lock.json` and compares them before this call. Errors: DataError with
  /// file and line for a malformed record. [one rank at a time per folder]
  virtual void prepare(const std::filesystem::path& folder) = 0;

  /// The data files in `folder` that the lock covers, relative to it, in any order. Called after
  /// prepare.
  virtual std::vector<std::filesystem::path> data_files() const = 0;

  /// How many examples "train", "validation" or "test" has, and how long each is. Throws DataError
  /// for a split that it does not have.
  virtual ExampleTable examples(std::string_view split) const = 0;

  /// The terms of the loss, at least one. Constant.
  virtual std::vector<TermInfo> terms() const = 0;

  /// Draws the parameters from `seed`, on the CPU: equal seeds give equal bits on every machine of
  /// the same LibTorch. [every rank]
  virtual void initialise(int64_t seed) = 0;

  /// Parameters that are trained, named as PyTorch's state_dict would, in a fixed order, each
  /// tensor once, all of one floating-point dtype. The host replaces their storage by views of one
  /// flat tensor and owns their gradients. [trainer]
  virtual std::vector<NamedTensor> parameters() = 0;

  /// Tensors that are saved but not trained. [trainer]
  virtual std::vector<NamedTensor> buffers() { return {}; }

  /// Moves parameters and buffers. Called once, after initialise and before parameters. [trainer]
  virtual void to(at::Device device) = 0;

  /// true before the passes of a window, false before evaluation. [trainer]
  virtual void set_training(bool training) = 0;

  /// The batch of these examples of a split, at least one, on the CPU, padded to its own longest
  /// example or to `shape`. Reads only what the constructor and prepare set up; draws no random
  /// numbers of the default generators. [loader, and any other thread]
  virtual Batch load(std::string_view split, const Microbatch& examples,
                     const std::optional<BatchShape>& shape) const = 0;

  /// Losses of each term, in the order of terms(), each shaped like the term's weights, on the
  /// batch's device, nothing summed or averaged. Values at unsupervised positions are ignored, and
  /// may be NaN. Never asked about a batch of zero rows: for a microbatch without examples the host
  /// itself gives every parameter a gradient of zero. [trainer]
  virtual std::vector<at::Tensor> forward(const Batch& batch) = 0;

  /// Further figures of a batch besides its losses, such as token accuracy: (sum, count) each.
  /// Without gradients. [trainer]
  virtual Measures evaluate(const Batch& batch) = 0;
};

}  // namespace tally
