#include "checkpoint/safetensors.h"

#include "sample_tensors.h"
#include "support/temporary_folder.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

namespace tally::checkpoint {
namespace {

std::string python() {
  const char* chosen = std::getenv("TALLY_PYTHON");
  return chosen != nullptr ? chosen : TALLY_WHEEL_PYTHON;
}

struct Output {
  int status = -1;
  std::string text;
};

Output run(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char block[4096];
  for (size_t count; (count = fread(block, 1, sizeof block, pipe)) > 0;)
    output.text.append(block, count);
  output.status = WEXITSTATUS(pclose(pipe));
  return output;
}

const char* python_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return "float64";
    case at::kFloat:
      return "float32";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kShort:
      return "int16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    default:
      return "bool";
  }
}

std::string describe(const NamedTensor& named) {
  std::string shape;
  for (const int64_t size : named.tensor.sizes())
    shape += (shape.empty() ? "" : "x") + std::to_string(size);
  return named.name + " " + python_name(named.tensor.scalar_type()) + " [" + shape + "] " +
         sha256(bytes_of(named.tensor)).hex() + "\n";
}

/// In order of name.
std::vector<NamedTensor> samples() {
  std::mt19937_64 random(4);
  const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {3}, {2, 3}, {2, 0, 2}, {1, 5, 1, 2}};
  std::vector<NamedTensor> tensors;
  for (const at::ScalarType dtype : kAllDtypes) {
    for (const std::vector<int64_t>& shape : shapes)
      tensors.push_back({"blocks." + std::to_string(100 + tensors.size()) + ".weight",
                         random_tensor(random, dtype, shape)});
  }
  return tensors;
}

TEST(SafetensorsInPython, OpensWhatWeWriteAndWritesWhatWeOpen) {
  if (run("'" + python() + "' -c 'import torch, safetensors'").status != 0)
    GTEST_SKIP() << "'" << python()
                 << "' has no torch and safetensors; set TALLY_PYTHON to an interpreter that has";
  TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = samples();
  save_safetensors(folder / "ours", tensors, {{"format", "pt"}});

  std::string expected;
  for (const NamedTensor& named : tensors) expected += describe(named);
  const Output peer = run(
      "'" + python() + "' '" TALLY_SOURCE_FOLDER "/tests/unit/checkpoint/safetensors_peer.py' '" +
      (folder / "ours").string() + "' '" + (folder / "theirs").string() + "'");
  EXPECT_EQ(peer.text, expected + "metadata {'format': 'pt'}\n");
  ASSERT_EQ(peer.status, 0);

  const TensorFile theirs = load_safetensors(folder / "theirs");
  EXPECT_EQ(theirs.metadata, (Metadata{{"format", "pt"}}));
  EXPECT_EQ(theirs.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors)
    expect_same(tensor_of(theirs.tensors, name), tensor, name);
}

}  // namespace
}  // namespace tally::checkpoint
