#include "stepcast/describe/network_presets.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/network.h"
#include "stepcast/workload/step_work.h"

namespace stepcast::network_presets_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Transformer network(const std::string& name, std::optional<std::int64_t> image_size = {}) {
  const auto found = find_network(name, {.image = image_size});
  EXPECT_TRUE(found.ok()) << found.error().message();
  return found.value().value();
}

Job job_of(const std::string& model, std::int64_t batch) {
  Job job{.model = model, .n_gpus = 2};
  job.settings.dtype = DType::bf16;
  job.settings.micro_batch_sequences = batch;
  return job;
}

// As torchvision and transformers count them; DiT without its table of positions, which is not trained.
TEST(NetworkPresets, ParametersAreThoseOfTheModules) {
  const std::pair<const char*, std::int64_t> known[] = {{"resnet-18", 11'689'512},
                                                        {"resnet-34", 21'797'672},
                                                        {"resnet-50", 25'557'032},
                                                        {"resnet-101", 44'549'160},
                                                        {"resnet-152", 60'192'808},
                                                        {"vgg-11", 132'863'336},
                                                        {"vgg-13", 133'047'848},
                                                        {"vgg-16", 138'357'544},
                                                        {"vgg-19", 143'667'240},
                                                        {"ViT base patch16-224", 86'567'656},
                                                        {"vit-large-patch16", 304'326'632},
                                                        {"dit-xl/2", 674'834'720},
                                                        {"t5-small", 60'506'624},
                                                        {"t5-base", 222'903'552},
                                                        {"t5-large", 737'668'096},
                                                        {"whisper-tiny", 37'760'640},
                                                        {"whisper-medium", 763'857'920},
                                                        {"whisper-large-v3", 1'543'490'560},
                                                        {"whisper-large-v3-turbo", 808'878'080}};
  for (const auto& [name, parameters] : known) {
    std::string spelled = name;
    if (spelled == "dit-xl/2") spelled = "dit-xl-2";
    EXPECT_EQ(parameter_count(network(spelled)).total(), parameters) << name;
  }
}

// Multiplications and additions of the convolutions and products of one image, as their papers count them.
TEST(NetworkPresets, FlopsAreThoseOfThePapers) {
  const auto billions = [](const Transformer& model) {
    return forward_flops(*model.network, model.kind_of_layer) / 1e9;
  };
  EXPECT_NEAR(billions(network("resnet-50")), 2 * 4.09, 0.05);
  EXPECT_NEAR(billions(network("resnet-18")), 2 * 1.814, 0.02);
  EXPECT_NEAR(billions(network("vgg-16")), 2 * 15.47, 0.05);
  EXPECT_NEAR(billions(network("vit-base-patch16")), 2 * 17.56, 0.3);
  EXPECT_NEAR(billions(network("dit-xl-2")), 2 * 118.6, 3);
  // Four times the pixels are four times the convolutions.
  EXPECT_NEAR(billions(network("resnet-50", 448)), 4 * billions(network("resnet-50")), 0.1);
}

TEST(NetworkPresets, AnswerToTheNamesOfTorchvision) {
  EXPECT_EQ(network("vit_l_16").name, "vit-large-patch16");
  EXPECT_EQ(network("vit-large").name, "vit-large-patch16");
  EXPECT_EQ(network("vit_b_32").name, "vit-base-patch32");
}

// The length of the input goes to the encoder; attention over it grows with its square, all else with its length.
TEST(NetworkPresets, T5ReadsAsManyTokensAsItIsTold) {
  const auto t5 = [](std::int64_t tokens, std::int64_t decoder_tokens) {
    return find_network("t5-base", {.tokens = tokens, .decoder_tokens = decoder_tokens}).value().value();
  };
  EXPECT_EQ(t5(1024, 128).network->input_tokens, 1024);
  EXPECT_EQ(t5(1024, 256).network->tokens, 256);
  const auto flops = [](const Transformer& model) {
    return forward_flops(*model.network, model.kind_of_layer);
  };
  EXPECT_EQ(flops(t5(512, 128)), flops(network("t5-base")));
  EXPECT_GT(flops(t5(1024, 128)), 1.5 * flops(t5(512, 128)));
  EXPECT_LT(flops(t5(1024, 128)), 2.2 * flops(t5(512, 128)));
  Job job = job_of("t5-base", 8);
  job.settings.seq_len_tokens = 1024;
  const Result<ResolvedJob> long_texts = resolve(job);
  ASSERT_TRUE(long_texts.ok()) << long_texts.error().message();
  EXPECT_EQ(long_texts->model.network->input_tokens, 1024);
  EXPECT_EQ(long_texts->layout.batch.seq_len_tokens, 128);
  job.model = "whisper-small";
  EXPECT_THAT(resolve(job).error().message(),
              AllOf(HasSubstr("30 seconds of sound"), HasSubstr("leave --seq out")));
  job.model = "t5-base";
  job.settings.seq_len_tokens = 0;
  EXPECT_FALSE(resolve(job).ok());
}

TEST(NetworkPresets, ImageSizesThatAreNoneAreRefused) {
  const auto message = [](const std::string& name, std::int64_t size) {
    return find_network(name, {.image = size}).error().message();
  };
  EXPECT_THAT(message("vit-base-patch16", 225),
              AllOf(HasSubstr("--image-size"), HasSubstr("a multiple of 16")));
  EXPECT_THAT(message("dit-xl-2", 40), HasSubstr("a multiple of 16"));
  EXPECT_THAT(message("resnet-50", -1), HasSubstr("from 32 to 4096"));
  EXPECT_THAT(message("t5-base", 224), HasSubstr("sees no images"));
  EXPECT_FALSE(find_network("llama-3-8b").value().has_value());
  Job job = job_of("llama-3-8b", 1);
  job.vision.image_size = 224;
  EXPECT_THAT(resolve(job).error().message(), HasSubstr("is not an image network"));
}

TEST(NetworkPresets, AreTrainedByPyTorchAsCopies) {
  const auto resolved = resolve(job_of("resnet-50", 32));
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->layout.software.framework, Framework::pytorch);
  EXPECT_EQ(resolved->layout.degrees.data, 2);
  EXPECT_EQ(resolved->layout.batch.seq_len_tokens, 1);
  const auto work = step_work(resolved->model, resolved->layout);
  ASSERT_TRUE(work.ok());
  EXPECT_DOUBLE_EQ(work->chunks[0].dense_parameters, 25'557'032);
  // The image itself has no gradient; what shares its weights over images is summed.
  EXPECT_EQ(work->layer_kinds[0]->backward.back().operation()->direction, Direction::weight_gradient);
  // Twice the images take twice the memory of activations.
  const auto activations = [](std::int64_t batch) {
    const auto job = resolve(job_of("resnet-50", batch)).value();
    return memory_forecast(job.model, job.layout, Bytes{80e9}).value().stages[0].activations.value();
  };
  EXPECT_NEAR(activations(64), 2 * activations(32), 1);
  for (const char* degree : {"tensor", "context", "pipeline"}) {
    Job job = job_of("resnet-50", 32);
    (degree[0] == 't'   ? job.settings.tensor
     : degree[0] == 'c' ? job.settings.context
                        : job.settings.pipeline) = 2;
    EXPECT_THAT(resolve(job).error().message(), HasSubstr("is not modelled for resnet-50")) << degree;
  }
  Job recomputed = job_of("vit-base-patch16", 32);
  recomputed.settings.recompute = Recompute::full;
  EXPECT_THAT(resolve(recomputed).error().message(), HasSubstr("recomputation"));
}

// Megatron's lines of T5: as deep on either side, products cut by tensor parallelism.
TEST(NetworkPresets, EncoderInFrontOfADecoderFromMegatronsFlags) {
  Job job;
  job.command_line =
      "pretrain_t5.py --encoder-num-layers 2 --decoder-num-layers 3 --hidden-size 64 --num-attention-heads 4 "
      "--kv-channels 16 --ffn-hidden-size 128 --encoder-seq-length 32 --decoder-seq-length 8 "
      "--max-position-embeddings 32 --micro-batch-size 2 --global-batch-size 4 --vocab-size 1000 --bf16 "
      "--tensor-model-parallel-size 2";
  job.n_gpus = 4;
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->layout.batch.seq_len_tokens, 8);
  const std::int64_t square = 64 * 64 + 64, feed = 2 * 64 * 128 + 128 + 64, norm = 2 * 64;
  EXPECT_EQ(parameter_count(resolved->model).total(), 1000 * 64 + 32 * 64 +
                                                          2 * (4 * square + feed + 2 * norm) +
                                                          3 * (8 * square + feed + 3 * norm) + 2 * norm);
  const auto work = step_work(resolved->model, resolved->layout);
  ASSERT_TRUE(work.ok());
  int sums = 0;
  for (const WorkItem& item : work->layer_kinds[1]->forward) sums += item.transfer() != nullptr ? 1 : 0;
  EXPECT_EQ(sums, 2);  // behind attention and behind the FFN
  *job.command_line += " --sequence-parallel";
  EXPECT_THAT(resolve(job).error().message(), HasSubstr("sequence parallelism is not modelled for T5"));
}

}  // namespace
}  // namespace stepcast::network_presets_test
