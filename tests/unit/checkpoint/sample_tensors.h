#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <tally/types.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tally::checkpoint {

inline constexpr at::ScalarType kAllDtypes[] = {at::kDouble, at::kFloat, at::kHalf,  at::kBFloat16,
                                                at::kLong,   at::kInt,   at::kShort, at::kChar,
                                                at::kByte,   at::kBool};

/// Random bytes: NaNs with payloads, infinities and denormals among them.
inline at::Tensor random_tensor(std::mt19937_64& random, at::ScalarType dtype,
                                const std::vector<int64_t>& shape) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(dtype));
  auto* bytes = static_cast<uint8_t*>(tensor.data_ptr());
  for (size_t i = 0; i < tensor.nbytes(); ++i)
    bytes[i] = static_cast<uint8_t>(dtype == at::kBool ? random() % 2 : random() % 256);
  return tensor;
}

inline std::vector<int64_t> random_shape(std::mt19937_64& random) {
  std::vector<int64_t> shape(random() % 5);
  for (int64_t& size : shape) size = static_cast<int64_t>(random() % 5);
  return shape;
}

inline std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()};
}

inline void expect_same(const at::Tensor& found, const at::Tensor& expected,
                        const std::string& what) {
  EXPECT_EQ(found.scalar_type(), expected.scalar_type()) << what;
  EXPECT_EQ(found.sizes(), expected.sizes()) << what;
  EXPECT_TRUE(bytes_of(found) == bytes_of(expected)) << what << " differs in its bytes";
}

inline const at::Tensor& tensor_of(const std::vector<NamedTensor>& tensors,
                                   const std::string& name) {
  for (const NamedTensor& named : tensors) {
    if (named.name == name) return named.tensor;
  }
  throw std::out_of_range("no tensor " + name);
}

}  // namespace tally::checkpoint
