#include "run/rank_session.h"

#include "log/log.h"
#include "run/data_folder.h"
#include "run/device.h"
#include "run/losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <cstring>

namespace tally::run {
namespace {

using distributed::BoardWriter;
using distributed::CollectiveKind;
using distributed::Membership;
using distributed::Phase;
using distributed::Transport;

at::Tensor bytes_of(const Digest& digest) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(Digest::kBytes)}, at::kByte);
  std::memcpy(bytes.data_ptr(), digest.bytes().data(), Digest::kBytes);
  return bytes;
}

}  // namespace

std::vector<int64_t> ranks_unlike_the_first(distributed::Group& group, const Digest& digest,
                                            CollectiveKind kind, c10::Device device) {
  const at::Tensor all = group.gather(bytes_of(digest), kind, 0, device);
  std::vector<int64_t> others;
  for (int64_t rank = 1; rank < group.world(); ++rank) {
    if (!all[rank].equal(all[0])) others.push_back(rank);
  }
  return others;
}

Digest digest_of(const std::vector<NamedTensor>& tensors) {
  Sha256 hash;
  for (const NamedTensor& named : tensors) {
    const at::Tensor host = named.tensor.detach().to(at::kCPU).contiguous();
    hash.update(named.name)
        .update(static_cast<int64_t>(host.nbytes()))
        .update(host.const_data_ptr(), host.nbytes());
  }
  return hash.finish();
}

RankSession::RankSession(Job& job, const Membership& self, BoardWriter board)
    : job_(job), self_(self), board_(std::move(board)), device_(c10::kCPU) {
  log::set_origin(fmt::format("rank {}", self.rank));
  plugin::set_place(fmt::format("before window 0, rank {}", self.rank));
  at::set_num_threads(static_cast<int>(job.settings.threads));
  device_ = choose_device(job.settings, self);
  if (job.settings.deterministic) make_deterministic();
  use_device(device_);
  prepare_data();
  join();
  make_model();
  share_initial_state();
}

RankSession::~RankSession() = default;

void RankSession::prepare_data() {
  board_.phase(Phase::kPreparing);
  data_lock_ = open_data(job_).to_json();
  terms_ = terms_of(job_.task, job_.reducer);
  const ExampleTable examples = job_.task.call([](Task& task) { return task.examples("train"); });
  job_.sampler.call([&](Sampler& sampler) { sampler.prepare(examples); });
}

void RankSession::join() {
  board_.phase(Phase::kRendezvous);
  if (self_.world == 1 && self_.launcher.empty()) {
    rendezvous_ = std::make_unique<distributed::Rendezvous>(distributed::Rendezvous::alone());
  } else {
    rendezvous_ = std::make_unique<distributed::Rendezvous>(self_, job_.settings.timeout);
  }
  if (self_.board_file.empty() && self_.world > 1) {
    publisher_ = std::make_unique<distributed::BoardPublisher>(*rendezvous_, board_.board());
  }
  distributed::Identity identity{{"the resolved recipe", fmt::format("'{}' {}", job_.settings.name,
                                                                     job_.recipe.digest().hex())},
                                 {"LibTorch", TORCH_VERSION},
                                 {"the data", sha256(data_lock_).hex()}};
  for (const plugin::LoadedPlugin& loaded : job_.factory->plugins()) {
    identity["plugin " + loaded.name] = loaded.digest.hex();
  }
  rendezvous_->require_equal(identity);
  const Transport transport = choose_transport(job_.settings, self_, device_);
  log::info(fmt::format("rank {} of {} ({}), {}, gradients over {}", self_.rank, self_.world,
                        self_.launcher.empty() ? "alone" : self_.launcher, device_.str(),
                        transport == Transport::kNccl ? "NCCL" : "Gloo"));
  groups_ = std::make_unique<distributed::Groups>(*rendezvous_, transport, device_, board_);
}

void RankSession::make_model() {
  board_.phase(Phase::kPreparing);
  job_.task.call([&](Task& task) {
    task.initialise(job_.settings.seed);
    task.to(device_);
    parameters_ = std::make_unique<distributed::FlatParameters>(task.parameters());
    buffers_ = task.buffers();
  });
}

void RankSession::share_initial_state() {
  if (self_.world > 1) {
    int64_t index = 0;
    std::vector<at::Tensor> tensors{parameters_->values()};
    for (const NamedTensor& buffer : buffers_) tensors.push_back(buffer.tensor);
    for (const at::Tensor& tensor : tensors) {
      groups_->gradients.broadcast(tensor, 0, CollectiveKind::kBroadcast, index++)->wait();
    }
  }
  require_equal_digest(digest_of(model()), "the initial state");
}

std::vector<NamedTensor> RankSession::model() const {
  std::vector<NamedTensor> model = parameters_->named();
  model.insert(model.end(), buffers_.begin(), buffers_.end());
  return model;
}

void RankSession::require_equal_digest(const Digest& digest, const std::string& what) {
  const std::vector<int64_t> others =
      ranks_unlike_the_first(groups_->state, digest, CollectiveKind::kComparison, c10::kCPU);
  if (others.empty()) return;
  throw RankError(fmt::format(
      "{} differs: rank {} has other bytes than rank 0. The ranks would train different models; "
      "check that they run the same machine type and library versions",
      what, fmt::join(others, ", ")));
}

void RankSession::collect_board() {
  if (publisher_) publisher_->collect();
}

}  // namespace tally::run
