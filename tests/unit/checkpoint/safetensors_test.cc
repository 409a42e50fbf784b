#include "checkpoint/safetensors.h"

#include "sample_tensors.h"
#include "support/faulty_file_system.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <tally/error.h>

namespace tally::checkpoint {
namespace {

using testing::HasSubstr;

std::vector<NamedTensor> random_tensors(std::mt19937_64& random) {
  std::vector<NamedTensor> tensors;
  const size_t count = random() % 12;
  for (size_t i = 0; i < count; ++i) {
    const at::ScalarType dtype = kAllDtypes[random() % std::size(kAllDtypes)];
    // Names with a dot, a quote and a sign of three bytes.
    const std::string name = "layer." + std::to_string(random() % 10) + "\"Σ." + std::to_string(i);
    tensors.push_back({name, random_tensor(random, dtype, random_shape(random))});
  }
  return tensors;
}

TEST(Safetensors, BringsBackEveryByteOfRandomTensors) {
  TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const std::vector<NamedTensor> tensors = random_tensors(random);
    const Metadata metadata = {{"trial", std::to_string(trial)}, {"über", "\n\"\\"}};
    save_safetensors(folder / "a.safetensors", tensors, metadata);
    const TensorFile file = load_safetensors(folder / "a.safetensors");
    EXPECT_EQ(file.metadata, metadata);
    ASSERT_EQ(file.tensors.size(), tensors.size());
    for (const auto& [name, tensor] : tensors)
      expect_same(tensor_of(file.tensors, name), tensor, name);
  }
}

TEST(Safetensors, LaysOutTheFileAsThePageSays) {
  TemporaryFolder folder;
  save_safetensors(folder / "a", {{"b", at::ones({2}, at::kFloat)},
                                  {"byte", at::full({3}, 7, at::kByte)},
                                  {"a", at::full({}, 2, at::kFloat)},
                                  {"z", at::full({}, 258, at::kLong)}});
  using namespace std::string_literals;
  const std::string header = R"({"z":{"data_offsets":[0,8],"dtype":"I64","shape":[]},)"
                             R"("a":{"data_offsets":[8,12],"dtype":"F32","shape":[]},)"
                             R"("b":{"data_offsets":[12,20],"dtype":"F32","shape":[2]},)"
                             R"("byte":{"data_offsets":[20,23],"dtype":"U8","shape":[3]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string length = {static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(content_of(folder / "a"), length + padded + "\x02\x01\0\0\0\0\0\0"s + "\0\0\0\x40"s +
                                          "\0\0\x80\x3f\0\0\x80\x3f"s + "\x07\x07\x07"s);
}

TEST(Safetensors, GivesTheSameBytesInWhateverOrderTheTensorsCome) {
  TemporaryFolder folder;
  std::mt19937_64 random(2);
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 20; ++i)
    tensors.push_back({"t" + std::to_string(i),
                       random_tensor(random, kAllDtypes[random() % std::size(kAllDtypes)], {3})});
  const files::FileEntry first = save_safetensors(folder / "a", tensors);
  std::shuffle(tensors.begin(), tensors.end(), random);
  EXPECT_EQ(save_safetensors(folder / "a", tensors), first);
  EXPECT_EQ(first.digest, sha256(content_of(folder / "a")));
}

TEST(Safetensors, WritesTheValuesOfViewsAndOfNegatives) {
  TemporaryFolder folder;
  const at::Tensor base = at::arange(6, at::kFloat).view({2, 3});
  const at::Tensor negative = at::_neg_view(at::ones({2}));
  ASSERT_TRUE(negative.is_neg());
  save_safetensors(folder / "a", {{"transposed", base.t()},
                                  {"column", base.select(1, 1)},
                                  {"expanded", at::ones({1}).expand({4})},
                                  {"negative", negative},
                                  {"parameter", at::ones({2}).requires_grad_()}});
  const std::vector<NamedTensor> found = load_safetensors(folder / "a").tensors;
  expect_same(tensor_of(found, "transposed"), base.t().contiguous(), "transposed");
  expect_same(tensor_of(found, "column"), at::tensor({1.f, 4.f}), "column");
  expect_same(tensor_of(found, "expanded"), at::ones({4}), "expanded");
  expect_same(tensor_of(found, "negative"), at::full({2}, -1.f), "negative");
  expect_same(tensor_of(found, "parameter"), at::ones({2}), "parameter");
  EXPECT_FALSE(tensor_of(found, "parameter").requires_grad());
}

TEST(Safetensors, RefusesToWriteWhatCannotBeReadBack) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.safetensors";
  const auto error = [&](const std::vector<NamedTensor>& tensors, const Metadata& metadata = {}) {
    const std::string text =
        error_of<DataError>([&] { save_safetensors(path, tensors, metadata); });
    EXPECT_TRUE(names_in(folder.path()).empty());
    EXPECT_THAT(text, HasSubstr("a.safetensors"));
    return text;
  };
  const at::Tensor one = at::ones({1});
  EXPECT_THAT(error({{"x", at::zeros({1}, at::kComplexFloat)}}),
              HasSubstr("tensor 'x' is ComplexFloat, dense; convert it to a dense tensor"));
  EXPECT_THAT(error({{"x", at::ones({2, 2}).to_sparse()}}),
              HasSubstr("tensor 'x' is Float, sparse"));
  EXPECT_THAT(error({{"x", at::Tensor()}}), HasSubstr("tensor 'x' is undefined"));
  EXPECT_THAT(error({{"x", one}, {"y", one}, {"x", one}}),
              HasSubstr("the tensor name 'x' is used twice"));
  EXPECT_THAT(error({{"", one}}), HasSubstr("the tensor name '' is empty, reserved or not UTF-8"));
  EXPECT_THAT(error({{"__metadata__", one}}), HasSubstr("'__metadata__' is empty, reserved"));
  EXPECT_THAT(error({{"\xff", one}}), HasSubstr("reserved or not UTF-8"));
  EXPECT_THAT(error({}, {{"key", "\xff"}}), HasSubstr("the metadata 'key' is not UTF-8"));
}

TEST(Safetensors, ReadsThroughInterruptionsAndShortReads) {
  TemporaryFolder folder;
  FaultyFileSystem system;
  system.interrupt = true;
  system.longest = 5;
  save_safetensors(folder / "a", {{"x", at::arange(100)}}, {}, system);
  const TensorFile file = load_safetensors(folder / "a", files::Links::kFollow, system);
  expect_same(tensor_of(file.tensors, "x"), at::arange(100), "x");
}

TEST(Safetensors, TakesAnEmptyFileOfTensors) {
  TemporaryFolder folder;
  save_safetensors(folder / "a", {});
  EXPECT_EQ(content_of(folder / "a").substr(8), "{}      ");
  EXPECT_TRUE(load_safetensors(folder / "a").tensors.empty());
}

}  // namespace
}  // namespace tally::checkpoint
