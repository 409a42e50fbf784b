#pragma once

#include <tally/error.h>
#include <tally/sync_policy.h>

#include <string>
#include <utility>
#include <vector>

namespace tally::testing {

/// A policy's services on a single rank: collectives do at once what they do among one rank, and
/// are recorded. Nothing is reduced by arm().
class FakeSync final : public Sync {
 public:
  /// Flat tensors of one length; may be left out for a policy that does not touch them.
  explicit FakeSync(at::Tensor gradients = {}, at::Tensor parameters = {})
      : gradients_(std::move(gradients)), parameters_(std::move(parameters)) {}

  int64_t rank() const override { return 0; }
  int64_t world() const override { return 1; }
  void arm() override { calls_.emplace_back("arm"); }

  at::Tensor gradients() override { return defined(gradients_, "gradients"); }
  at::Tensor parameters() override { return defined(parameters_, "parameters"); }

  std::unique_ptr<Work> all_reduce(at::Tensor /*tensor*/, ReduceOp /*op*/) override {
    return record("all_reduce");
  }
  std::unique_ptr<Work> all_gather(at::Tensor output, at::Tensor input) override {
    return copy("all_gather", output, input);
  }
  std::unique_ptr<Work> reduce_scatter(at::Tensor output, at::Tensor input) override {
    return copy("reduce_scatter", output, input);
  }
  std::unique_ptr<Work> all_to_all(at::Tensor output, at::Tensor input) override {
    return copy("all_to_all", output, input);
  }
  std::unique_ptr<Work> broadcast(at::Tensor /*tensor*/, int64_t root) override {
    if (root != 0) throw PluginError("test: a broadcast from a rank that does not exist");
    return record("broadcast");
  }

  /// Names of arm and of the collectives, in call order.
  const std::vector<std::string>& calls() const { return calls_; }
  void forget_calls() { calls_.clear(); }
  /// Works that were handed out and never waited for; 0 after a policy has done its part.
  int64_t unfinished() const { return *unfinished_; }

 private:
  class FakeWork final : public Work {
   public:
    explicit FakeWork(std::shared_ptr<int64_t> unfinished) : unfinished_(std::move(unfinished)) {
      ++*unfinished_;
    }
    void wait() override {
      if (!waited_) --*unfinished_;
      waited_ = true;
    }

   private:
    std::shared_ptr<int64_t> unfinished_;
    bool waited_ = false;
  };

  static at::Tensor defined(const at::Tensor& tensor, const char* what) {
    if (!tensor.defined()) {
      throw PluginError(std::string("test: the FakeSync was made without ") + what);
    }
    return tensor;
  }

  std::unique_ptr<Work> record(const char* name) {
    calls_.emplace_back(name);
    return std::make_unique<FakeWork>(unfinished_);
  }

  std::unique_ptr<Work> copy(const char* name, const at::Tensor& output, const at::Tensor& input) {
    if (output.numel() != input.numel() || output.dtype() != input.dtype()) {
      throw PluginError(std::string("test: on one rank, output and input of ") + name +
                        " have as many elements, of one dtype");
    }
    output.copy_(input.reshape(output.sizes()));
    return record(name);
  }

  at::Tensor gradients_;
  at::Tensor parameters_;
  std::vector<std::string> calls_;
  std::shared_ptr<int64_t> unfinished_ = std::make_shared<int64_t>(0);
};

}  // namespace tally::testing
