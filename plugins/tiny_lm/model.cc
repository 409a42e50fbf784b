#include "model.h"

#include "dataset.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <random>
#include <span>

namespace tiny_lm {
namespace {

constexpr int64_t kWidth = 128;
constexpr int64_t kHeads = 4;
constexpr int64_t kFeedForward = 256;
constexpr int64_t kBlocks = 2;

/// Embeddings start in +-this. Tokens differ from the first update on, positions hardly.
constexpr float kTokenRange = 1.0F;
constexpr float kPositionRange = 0.1F;

/// In [-1, 1): 24 random bits, so that the conversion is exact.
float draw(std::mt19937_64& engine) {
  return static_cast<float>(static_cast<int64_t>(engine() >> 40) - (int64_t{1} << 23)) * 0x1p-23F;
}

float range_of(const tally::NamedTensor& parameter) {
  if (parameter.name == "token_embedding.weight") return kTokenRange;
  if (parameter.name == "position_embedding.weight") return kPositionRange;
  return 1.0F / std::sqrt(static_cast<float>(parameter.tensor.size(1)));
}

}  // namespace

at::Tensor Model::Affine::linear(const at::Tensor& x) const { return at::linear(x, weight, bias); }

at::Tensor Model::Affine::norm(const at::Tensor& x) const {
  return at::layer_norm(x, weight.sizes(), weight, bias);
}

at::Tensor Model::parameter(const std::string& name, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  tensor.set_requires_grad(true);
  parameters_.push_back({name, tensor});
  return tensor;
}

Model::Affine Model::linear(const std::string& name, int64_t inputs, int64_t outputs) {
  at::Tensor weight = parameter(name + ".weight", {outputs, inputs});
  return {weight, parameter(name + ".bias", {outputs})};
}

Model::Affine Model::norm(const std::string& name) {
  at::Tensor weight = parameter(name + ".weight", {kWidth});
  return {weight, parameter(name + ".bias", {kWidth})};
}

// Members of a braced list are made in order, and with them the parameters.
Model::Block Model::block(const std::string& name) {
  return {norm(name + ".attention_norm"),
          linear(name + ".attention.qkv", kWidth, 3 * kWidth),
          linear(name + ".attention.output", kWidth, kWidth),
          norm(name + ".feed_forward_norm"),
          linear(name + ".feed_forward.0", kWidth, kFeedForward),
          linear(name + ".feed_forward.2", kFeedForward, kWidth)};
}

Model::Model(double dropout)
    : dropout_(dropout),
      token_embedding_(parameter("token_embedding.weight", {kVocabulary, kWidth})),
      position_embedding_(parameter("position_embedding.weight", {kLongest, kWidth})) {
  for (int64_t i = 0; i < kBlocks; ++i) blocks_.push_back(block("blocks." + std::to_string(i)));
  final_norm_ = norm("final_norm");
  head_ = linear("head", kWidth, kVocabulary);
}

void Model::initialise(int64_t seed) {
  std::mt19937_64 engine(static_cast<uint64_t>(seed));
  for (const tally::NamedTensor& parameter : parameters_) {
    at::Tensor values = at::empty(parameter.tensor.sizes(), at::kFloat);
    const std::span flat(values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel()));
    if (values.dim() == 1) {
      const bool scale = parameter.name.ends_with("norm.weight");
      for (float& value : flat) value = scale ? 1.0F : 0.0F;
    } else {
      const float range = range_of(parameter);
      for (float& value : flat) value = range * draw(engine);
    }
    parameter.tensor.detach().copy_(values);
  }
}

void Model::to(at::Device device) {
  for (const tally::NamedTensor& parameter : parameters_) {
    at::Tensor tensor = parameter.tensor;
    tensor.set_data(tensor.detach().to(device));
  }
}

at::Tensor Model::drop(const at::Tensor& x) const {
  return training_ && dropout_ > 0 ? at::dropout(x, dropout_, true) : x;
}

at::Tensor Model::attend(const Block& block, const at::Tensor& x) const {
  const int64_t rows = x.size(0);
  const int64_t length = x.size(1);
  // [B, L, 3 * width] -> 3 x [B, heads, L, width of a head]
  const at::Tensor qkv =
      block.qkv.linear(x).view({rows, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
  // Rows are padded at the right, so causality alone keeps real positions from seeing padding.
  const at::Tensor mixed = at::scaled_dot_product_attention(
      qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2), {}, 0.0, /*is_causal=*/true);
  return block.attention_output.linear(mixed.transpose(1, 2).reshape({rows, length, kWidth}));
}

at::Tensor Model::logits(const at::Tensor& ids) const {
  const at::Tensor positions = position_embedding_.narrow(0, 0, ids.size(1));
  at::Tensor x = drop(at::embedding(token_embedding_, ids) + positions);
  for (const Block& block : blocks_) {
    x = x + drop(attend(block, block.attention_norm.norm(x)));
    const at::Tensor hidden = block.feed_forward_in.linear(block.feed_forward_norm.norm(x));
    x = x + drop(block.feed_forward_out.linear(at::gelu(hidden)));
  }
  return head_.linear(final_norm_.norm(x));
}

}  // namespace tiny_lm
