#include "checkpoint/state_file.h"

#include "sample_tensors.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <tally/error.h>

#include <limits>

namespace tally::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StateBundle reloaded(const StateBundle& bundle, const std::filesystem::path& path,
                     const Metadata& extra = {}) {
  files::FileWriter out(path);
  bundle.write(out, extra);
  out.finish();
  files::FileReader in(path, files::Links::kRefuse);
  return StateBundle::read(in);
}

TEST(StateBundle, BringsBackWhatSeveralProvidersWrote) {
  TemporaryFolder folder;
  StateBundle bundle;
  const at::Tensor generator = at::arange(16, at::kByte);
  auto rng = bundle.writer("rng_state/1");
  auto sampler = bundle.writer("sampler_state/2");
  bundle.writer("empty/1");
  rng->tensor("cpu", generator);
  sampler->integer("windows", std::numeric_limits<int64_t>::min());
  sampler->text("chain", "Σ \"quoted\"\n");
  sampler->text("pool/0/ids", "");
  sampler->integer("cpu", 7);

  const StateBundle found = reloaded(bundle, folder / "rank-0.safetensors", {{"rank", "0"}});
  EXPECT_THAT(found.state_ids(), ElementsAre("empty/1", "rng_state/1", "sampler_state/2"));
  EXPECT_EQ(found.extra(), (Metadata{{"rank", "0"}}));
  expect_same(found.reader("rng_state/1")->tensor("cpu"), generator, "cpu");
  const auto reader = found.reader("sampler_state/2");
  EXPECT_EQ(reader->integer("windows"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(reader->integer("cpu"), 7);
  EXPECT_EQ(reader->text("chain"), "Σ \"quoted\"\n");
  EXPECT_EQ(reader->text("pool/0/ids"), "");
  EXPECT_TRUE(reader->has("pool/0/ids"));
  EXPECT_FALSE(reader->has("pool/0"));
  EXPECT_FALSE(found.reader("empty/1")->has("cpu"));
}

TEST(StateBundle, KeepsIntegersAsScalars) {
  TemporaryFolder folder;
  StateBundle bundle;
  bundle.writer("a/1")->integer("n", 5);
  reloaded(bundle, folder / "a");
  const TensorFile file = load_safetensors(folder / "a");
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].name, "a/1/n");
  expect_same(file.tensors[0].tensor, at::scalar_tensor(5, at::kLong), "n");
  EXPECT_EQ(file.metadata, (Metadata{{"states", "a/1\n"}}));
}

TEST(StateBundle, CopiesATensorBeforeTheCallReturns) {
  StateBundle bundle;
  at::Tensor value = at::zeros({2});
  bundle.writer("a/1")->tensor("x", value);
  value.fill_(9);
  expect_same(bundle.reader("a/1")->tensor("x"), at::zeros({2}), "x");
}

TEST(StateBundle, NamesFileAndValueThatIsAbsentOrOfAnotherType) {
  TemporaryFolder folder;
  StateBundle bundle;
  auto writer = bundle.writer("a/1");
  writer->tensor("vector", at::zeros({2}, at::kLong));
  writer->text("text", "x");
  const StateBundle found = reloaded(bundle, folder / "rank-3.safetensors");
  const auto reader = found.reader("a/1");
  const std::string at = (folder / "rank-3.safetensors").string();
  const std::string remedy = "; resume with the plugins that saved it";
  EXPECT_EQ(error_of<DataError>([&] { reader->tensor("none"); }),
            "cannot load the value 'none' of the state 'a/1' from " + at +
                ": a tensor was expected, but it is absent" + remedy);
  EXPECT_EQ(error_of<DataError>([&] { reader->integer("vector"); }),
            "cannot load the value 'vector' of the state 'a/1' from " + at +
                ": an integer was expected, but it is a tensor Long [2]" + remedy);
  EXPECT_THAT(error_of<DataError>([&] { reader->text("vector"); }),
              HasSubstr("a text was expected, but it is a tensor Long [2]"));
  EXPECT_THAT(error_of<DataError>([&] { reader->tensor("text"); }),
              HasSubstr("a tensor was expected, but it is a text"));
  EXPECT_EQ(error_of<DataError>([&] { found.reader("a/2"); }),
            "cannot load the state 'a/2' from " + at +
                ": it holds a/1; resume with the providers that the run had");
}

TEST(StateBundle, RefusesASecondValueOfOneName) {
  StateBundle bundle;
  auto writer = bundle.writer("a/1");
  writer->integer("n", 5);
  writer->text("t", "x");
  const std::string end = "a value of that name is there already; names are unique";
  EXPECT_EQ(error_of<PluginError>([&] { writer->integer("n", 5); }),
            "cannot save the value 'n' of the state 'a/1': " + end);
  EXPECT_THAT(error_of<PluginError>([&] { writer->text("n", ""); }), HasSubstr(end));
  EXPECT_THAT(error_of<PluginError>([&] { writer->tensor("t", at::ones({1})); }), HasSubstr(end));
  EXPECT_EQ(bundle.reader("a/1")->integer("n"), 5);
}

TEST(StateBundle, RefusesWhatAFileCannotHold) {
  StateBundle bundle;
  auto writer = bundle.writer("a/1");
  EXPECT_EQ(error_of<PluginError>([&] { writer->tensor("x", at::zeros({1}, at::kComplexFloat)); }),
            "cannot save the value 'x' of the state 'a/1': it is ComplexFloat and a file holds "
            "dense tensors of plain numbers; convert it first");
  EXPECT_THAT(error_of<PluginError>([&] { writer->tensor("x", at::Tensor()); }),
              HasSubstr("it is undefined"));
  EXPECT_THAT(error_of<PluginError>([&] { writer->text("x", "\xff"); }),
              HasSubstr("the text is not UTF-8; save bytes as a uint8 tensor"));
  EXPECT_THAT(error_of<PluginError>([&] { writer->integer("", 1); }),
              HasSubstr("its name is empty or not UTF-8"));
}

TEST(StateBundle, RefusesAnIdThatIsNoneOrThatIsTaken) {
  StateBundle bundle;
  for (const char* id : {"", "a", "a/", "/1", "a/1/2", "a b/1", "a\n/1"}) {
    EXPECT_EQ(error_of<PluginError>([&] { bundle.writer(id); }),
              std::string("the state id '") + id +
                  "' is not of the form NAME/REVISION, such as 'rng_state/1'");
  }
  bundle.writer("a/1");
  EXPECT_EQ(error_of<PluginError>([&] { bundle.writer("a/1"); }),
            "the state 'a/1' is saved twice; name its provider once in the recipe");
}

TEST(StateBundle, RefusesAFileWithValuesOfNoState) {
  TemporaryFolder folder;
  save_safetensors(folder / "a", {{"weight", at::ones({1})}});
  files::FileReader file(folder / "a", files::Links::kRefuse);
  EXPECT_EQ(error_of<DataError>([&] { StateBundle::read(file); }),
            "cannot use " + (folder / "a").string() +
                ": 'weight' belongs to no state of the file; it is damaged, so take another copy");
}

}  // namespace
}  // namespace tally::checkpoint
