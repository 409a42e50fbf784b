#include "distributed/gradient_buckets.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include <algorithm>

namespace tally::distributed {

class GradientBuckets::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientBuckets& buckets, size_t parameter) : buckets_(buckets), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable& /*tensor*/) override {
    buckets_.parameter_ready(parameter_);
  }

 private:
  GradientBuckets& buckets_;
  size_t parameter_;
};

GradientBuckets::GradientBuckets(FlatParameters& parameters, Group& group, int64_t bucket_bytes,
                                 int64_t divisor)
    : parameters_(parameters), group_(group), divisor_(divisor) {
  const auto& named = parameters_.named();
  const at::Tensor& flat = parameters_.gradients();
  bucket_of_.resize(named.size());
  accumulated_.resize(named.size());
  int64_t begin = 0;
  int64_t end = 0;
  auto open = std::make_unique<Bucket>();
  const auto close = [&] {
    open->slice = flat.narrow(0, begin, end - begin);
    open->offset = begin;
    buckets_.push_back(std::move(open));
    open = std::make_unique<Bucket>();
    begin = end;
  };
  for (size_t i = named.size(); i-- > 0;) {
    const int64_t size = named[i].tensor.numel();
    if (end > begin &&
        (end - begin + size) * static_cast<int64_t>(flat.element_size()) > bucket_bytes)
      close();
    bucket_of_[i] = buckets_.size();
    ++open->parameters;
    end += size;
  }
  close();
  for (size_t i = 0; i < named.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(named[i].tensor,
                                                   std::make_unique<Hook>(*this, i));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const NamedTensor& parameter : parameters_.named()) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
  }
}

void GradientBuckets::arm() {
  if (armed_) return;
  armed_ = true;
  next_ = 0;
  std::fill(accumulated_.begin(), accumulated_.end(), uint8_t{0});
  for (const auto& bucket : buckets_) bucket->pending = bucket->parameters;
}

void GradientBuckets::parameter_ready(size_t parameter) {
  if (!armed_ || accumulated_[parameter] != 0) return;
  accumulated_[parameter] = 1;
  if (--buckets_[bucket_of_[parameter]]->pending == 0) start_ready_buckets();
}

void GradientBuckets::start_ready_buckets() {
  while (next_ < buckets_.size() && buckets_[next_]->pending == 0) start(*buckets_[next_]);
}

void GradientBuckets::start(Bucket& bucket) {
  add_earlier_shards(bucket.slice, bucket.offset);
  if (group_.world() > 1) {
    bucket.work = group_.all_reduce(bucket.slice, ReduceOp::kSum, CollectiveKind::kGradientBucket,
                                    static_cast<int64_t>(next_));
    ++collectives_;
  }
  ++next_;
}

void GradientBuckets::end_shard() {
  const torch::NoGradGuard no_grad;
  at::Tensor flat = parameters_.gradients();
  if (!earlier_shards_.defined()) earlier_shards_ = at::empty_like(flat);
  if (has_earlier_shards_) {
    earlier_shards_.add_(flat);
  } else {
    earlier_shards_.copy_(flat);
  }
  flat.zero_();
  has_earlier_shards_ = true;
}

void GradientBuckets::add_earlier_shards(at::Tensor gradients, int64_t offset) {
  if (!has_earlier_shards_) return;
  const torch::NoGradGuard no_grad;
  gradients.add_(earlier_shards_.narrow(0, offset, gradients.numel()));
}

void GradientBuckets::finish(bool last_of_window) {
  if (armed_) {
    while (next_ < buckets_.size()) start(*buckets_[next_]);
    for (const auto& bucket : buckets_) {
      if (bucket->work) bucket->work->wait();
      bucket->work.reset();
    }
    if (divisor_ != 1) parameters_.gradients().div_(divisor_);
    armed_ = false;
    has_earlier_shards_ = false;
  } else if (last_of_window) {
    add_earlier_shards(parameters_.gradients(), 0);
    has_earlier_shards_ = false;
  }
}

}  // namespace tally::distributed
