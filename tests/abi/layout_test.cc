// A released number of the hook API freezes every vtable and every type that a hook can reach. The
// golden file is that contract: once the number is released, a change to the file needs the next
// TALLY_HOOK_API.
#include <gtest/gtest.h>
#include <tally/tally.h>

#include <cstring>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace tally {
namespace {

using Numbers = std::initializer_list<std::pair<const char*, size_t>>;

std::string line(const std::string& head, const Numbers& numbers) {
  std::string text = head + ":";
  for (const auto& [name, number] : numbers)
    text += std::string(" ") + name + " " + std::to_string(number);
  return text + "\n";
}

template <class T>
std::string layout(const char* name, const Numbers& offsets) {
  return line("struct " + std::string(name) + " of " + std::to_string(sizeof(T)) + " bytes",
              offsets);
}

/// Bytes from the start of the object to the member. offsetof is for standard-layout types only.
template <class T, class M>
size_t offset(M T::*member) {
  static const T object{};
  return static_cast<size_t>(reinterpret_cast<const char*>(&(object.*member)) -
                             reinterpret_cast<const char*>(&object));
}

/// Position in the vtable, after the Itanium C++ ABI: a pointer to a virtual member function starts
/// with its offset in the vtable, plus 1 on x86-64.
template <class M>
size_t slot(M function) {
  static_assert(std::is_member_function_pointer_v<M>);
  uintptr_t first = 0;
  std::memcpy(&first, &function, sizeof first);
  return (first & ~uintptr_t{1}) / sizeof(void*);
}

std::string data_types() {
  return layout<WindowPlan>("WindowPlan", {{"window", offset(&WindowPlan::window)},
                                           {"shards", offset(&WindowPlan::shards)}}) +
         layout<ExampleTable>("ExampleTable", {{"lengths", offset(&ExampleTable::lengths)}}) +
         layout<BatchShape>("BatchShape", {{"examples", offset(&BatchShape::examples)},
                                           {"length", offset(&BatchShape::length)}}) +
         layout<NamedTensor>("NamedTensor", {{"name", offset(&NamedTensor::name)},
                                             {"tensor", offset(&NamedTensor::tensor)}}) +
         layout<TermInfo>("TermInfo", {{"name", offset(&TermInfo::name)},
                                       {"unit", offset(&TermInfo::unit)},
                                       {"coefficient", offset(&TermInfo::coefficient)},
                                       {"additive", offset(&TermInfo::additive)}}) +
         layout<Term>("Term", {{"name", offset(&Term::name)},
                               {"weights", offset(&Term::weights)},
                               {"documents", offset(&Term::documents)}}) +
         layout<Batch>("Batch", {{"examples", offset(&Batch::examples)},
                                 {"inputs", offset(&Batch::inputs)},
                                 {"terms", offset(&Batch::terms)}}) +
         layout<TermCounts>("TermCounts", {{"global", offset(&TermCounts::global)},
                                           {"local", offset(&TermCounts::local)}}) +
         layout<Aggregation>("Aggregation", {{"world", offset(&Aggregation::world)},
                                             {"divisor", offset(&Aggregation::divisor)}}) +
         layout<Measure>("Measure",
                         {{"sum", offset(&Measure::sum)}, {"count", offset(&Measure::count)}}) +
         layout<Pass>("Pass", {{"window", offset(&Pass::window)},
                               {"index", offset(&Pass::index)},
                               {"count", offset(&Pass::count)},
                               {"shard", offset(&Pass::shard)},
                               {"last_of_shard", offset(&Pass::last_of_shard)}}) +
         layout<Error>("Error", {}) +
         layout<HookEntry>("HookEntry", {{"interface", offset(&HookEntry::interface)},
                                         {"name", offset(&HookEntry::name)},
                                         {"create", offset(&HookEntry::create)}}) +
         layout<PluginDescriptor>("PluginDescriptor",
                                  {{"size", offset(&PluginDescriptor::size)},
                                   {"hook_count", offset(&PluginDescriptor::hook_count)},
                                   {"stamp", offset(&PluginDescriptor::stamp)},
                                   {"name", offset(&PluginDescriptor::name)},
                                   {"version", offset(&PluginDescriptor::version)},
                                   {"hooks", offset(&PluginDescriptor::hooks)}});
}

std::string hooks() {
  return line("class Task", {{"prepare", slot(&Task::prepare)},
                             {"data_files", slot(&Task::data_files)},
                             {"examples", slot(&Task::examples)},
                             {"terms", slot(&Task::terms)},
                             {"initialise", slot(&Task::initialise)},
                             {"parameters", slot(&Task::parameters)},
                             {"buffers", slot(&Task::buffers)},
                             {"to", slot(&Task::to)},
                             {"set_training", slot(&Task::set_training)},
                             {"load", slot(&Task::load)},
                             {"forward", slot(&Task::forward)},
                             {"evaluate", slot(&Task::evaluate)}}) +
         line("class Sampler", {{"prepare", slot(&Sampler::prepare)},
                                {"plan", slot(&Sampler::plan)},
                                {"save_state", slot(&Sampler::save_state)},
                                {"load_state", slot(&Sampler::load_state)}}) +
         line("class LossReducer", {{"count", slot(&LossReducer::count)},
                                    {"unit", slot(&LossReducer::unit)},
                                    {"takes_non_additive", slot(&LossReducer::takes_non_additive)},
                                    {"scale", slot(&LossReducer::scale)},
                                    {"reduce", slot(&LossReducer::reduce)}}) +
         line("class SyncPolicy", {{"divisor", slot(&SyncPolicy::divisor)},
                                   {"equal_passes", slot(&SyncPolicy::equal_passes)},
                                   {"before_forward", slot(&SyncPolicy::before_forward)},
                                   {"before_backward", slot(&SyncPolicy::before_backward)},
                                   {"after_backward", slot(&SyncPolicy::after_backward)},
                                   {"after_window", slot(&SyncPolicy::after_window)},
                                   {"after_step", slot(&SyncPolicy::after_step)}}) +
         line("class StateProvider", {{"state_id", slot(&StateProvider::state_id)},
                                      {"scope", slot(&StateProvider::scope)},
                                      {"save", slot(&StateProvider::save)},
                                      {"load", slot(&StateProvider::load)}});
}

std::string services() {
  return line("class Context", {{"config", slot(&Context::config)},
                                {"window", slot(&Context::window)},
                                {"seed", slot(&Context::seed)},
                                {"stream_seed", slot(&Context::stream_seed)},
                                {"log", slot(&Context::log)},
                                {"create_sampler", slot(&Context::create_sampler)},
                                {"create_loss_reducer", slot(&Context::create_loss_reducer)},
                                {"create_sync_policy", slot(&Context::create_sync_policy)}}) +
         line("class Config", {{"has", slot(&Config::has)},
                               {"integer", slot(&Config::integer)},
                               {"number", slot(&Config::number)},
                               {"boolean", slot(&Config::boolean)},
                               {"text", slot(&Config::text)},
                               {"path", slot(&Config::path)},
                               {"integers", slot(&Config::integers)},
                               {"reject", slot(&Config::reject)}}) +
         line("class Sync", {{"rank", slot(&Sync::rank)},
                             {"world", slot(&Sync::world)},
                             {"arm", slot(&Sync::arm)},
                             {"gradients", slot(&Sync::gradients)},
                             {"parameters", slot(&Sync::parameters)},
                             {"all_reduce", slot(&Sync::all_reduce)},
                             {"all_gather", slot(&Sync::all_gather)},
                             {"reduce_scatter", slot(&Sync::reduce_scatter)},
                             {"all_to_all", slot(&Sync::all_to_all)},
                             {"broadcast", slot(&Sync::broadcast)}}) +
         line("class Work", {{"wait", slot(&Work::wait)}}) +
         line("class StateWriter", {{"tensor", slot(&StateWriter::tensor)},
                                    {"integer", slot(&StateWriter::integer)},
                                    {"text", slot(&StateWriter::text)}}) +
         line("class StateReader", {{"has", slot(&StateReader::has)},
                                    {"tensor", slot(&StateReader::tensor)},
                                    {"integer", slot(&StateReader::integer)},
                                    {"text", slot(&StateReader::text)}}) +
         line("class Run", {{"rank", slot(&Run::rank)},
                            {"world", slot(&Run::world)},
                            {"windows", slot(&Run::windows)},
                            {"device", slot(&Run::device)},
                            {"save_sampler", slot(&Run::save_sampler)},
                            {"load_sampler", slot(&Run::load_sampler)},
                            {"keyed_rng", slot(&Run::keyed_rng)}});
}

TEST(LayoutTest, IsTheOneOfTheGoldenFile) {
  const std::string file =
      std::string(TALLY_GOLDEN_FOLDER) + "/hook_api_" + std::to_string(TALLY_HOOK_API) + ".golden";
  std::ifstream stream(file);
  ASSERT_TRUE(stream) << "cannot read " << file;
  std::ostringstream golden;
  golden << stream.rdbuf();
  EXPECT_EQ(data_types() + hooks() + services(), golden.str()) << "golden file: " << file;
}

}  // namespace
}  // namespace tally
