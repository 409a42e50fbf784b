#pragma once

#include <tally/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tiny_lm {

/// A causal transformer: token and position embeddings, two pre-norm blocks (width 128, 4 heads,
/// feed-forward 256, GELU), a final LayerNorm and a head with bias. 282,628 fp32 parameters in 30
/// tensors.
class Model {
 public:
  /// `dropout` in [0, 1): after the embedding, the attention and the feed-forward part of a block.
  explicit Model(double dropout);

  /// Linear weights uniform in +-1/sqrt(inputs), embeddings uniform, norms one, biases zero. The
  /// same bits on every machine: drawn by std::mt19937_64 and scaled by exact IEEE operations.
  void initialise(int64_t seed);
  void to(at::Device device);
  void set_training(bool training) { training_ = training; }

  /// Named as the state_dict of the same module in PyTorch. The tensors are the model's own.
  const std::vector<tally::NamedTensor>& parameters() const { return parameters_; }

  /// ids: int64 [B, L], 1 <= L <= 128, B >= 0. Returns fp32 [B, L, 4]; position t depends on ids up
  /// to t alone. Draws from the default generator of the device only in training with dropout.
  at::Tensor logits(const at::Tensor& ids) const;

 private:
  struct Affine {
    at::Tensor weight;
    at::Tensor bias;
    at::Tensor linear(const at::Tensor& x) const;
    at::Tensor norm(const at::Tensor& x) const;
  };
  struct Block {
    Affine attention_norm;
    Affine qkv;  ///< Queries, keys and values in one product.
    Affine attention_output;
    Affine feed_forward_norm;
    Affine feed_forward_in;
    Affine feed_forward_out;
  };

  at::Tensor parameter(const std::string& name, at::IntArrayRef shape);
  Affine linear(const std::string& name, int64_t inputs, int64_t outputs);
  Affine norm(const std::string& name);
  Block block(const std::string& name);
  at::Tensor attend(const Block& block, const at::Tensor& x) const;
  at::Tensor drop(const at::Tensor& x) const;

  double dropout_;
  bool training_ = false;
  std::vector<tally::NamedTensor> parameters_;
  at::Tensor token_embedding_;
  at::Tensor position_embedding_;
  std::vector<Block> blocks_;
  Affine final_norm_;
  Affine head_;
};

}  // namespace tiny_lm
