// A rank that trains a recommendation model as TorchRec's pipeline does: the script that it runs.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "tests/support/script_writer.h"

namespace stepcast::test::generator {

class DlrmRank : public ScriptWriter {
 public:
  DlrmRank(const GeneratorOptions& options, int rank, Shared& shared) : ScriptWriter(options, rank, shared) {
    rank_tensors();
    write_job();
    finish();
  }

 private:
  void rank_tensors();
  void fill_buckets();
  void write_job();
  void before_window();
  void step(std::int64_t number);
  void copy_batch();
  void distribute_sparse(bool waits_for_forward, int forward_event);
  void use_sparse();
  void forward();
  void backward();
  void optimizer();
  std::int64_t sequence_of_top(std::size_t layer) const;
  void linear_forward(const Tensor& input, const Tensor& weight, const Tensor& output, bool relu,
                      std::int64_t sequence = -1);
  void linear_backward(const Tensor& weight, double batch, bool relu);
  void accumulate(const Tensor& parameter);
  void scan(int stream_blocks);

  std::vector<Tensor> bottom_, top_;  // weights, [inputs, outputs]
  struct Batch {
    Tensor dense, indices, labels;
  };
  const Batch& new_batch() {
    batches_.push_back({tensor({options_.local_batch, 13}), tensor({8 * options_.local_batch}, "int"),
                        tensor({options_.local_batch})});
    return batches_.back();
  }
  std::deque<Batch> batches_;  // the one in training first, the one just copied last
  Tensor received_, dense_table_, loss_;
  std::vector<Tensor> buckets_;
  std::vector<std::optional<int>> closes_;  // [gradient in the order of the backward] the bucket it closes
  std::size_t next_gradient_ = 0;
  std::optional<Work> sizes_, lengths_, values_, pooled_, pooled_gradient_;
  std::vector<std::optional<Work>> reduced_;  // [bucket]
};

}  // namespace stepcast::test::generator
