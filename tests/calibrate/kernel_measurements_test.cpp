#include "calibrate/kernel_measurements.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/data.h"

namespace stepcast::kernel_measurements_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

KernelMeasurements read(std::string_view text) {
  auto measured = parse_kernel_measurements(text, "file.csv");
  if (!measured.ok()) {
    ADD_FAILURE() << measured.error().message();
    return {};
  }
  return std::move(measured).value();
}

std::vector<std::string> described(const KernelMeasurements& measured) {
  std::vector<std::string> all;
  for (const KernelMeasurement& m : measured.rows) all.push_back(describe(m.operation));
  return all;
}

std::string refused(std::string_view text) {
  const auto measured = parse_kernel_measurements(text, "file.csv");
  if (measured.ok()) {
    ADD_FAILURE() << "was read: " << text;
    return {};
  }
  return measured.error().message();
}

constexpr std::string_view kOperatorsHeader =
    "gpu,operator,dtype,tp,micro_batch,n_heads,seq_len,hidden_size,n_layers,n_param_tensors,n_params,"
    "fwd_time_us,bwd_time_us,time_us\n";

TEST(KernelMeasurements, AnOperatorRowIsAForwardAndABackwardOfOneRank) {
  const auto m = read(std::string{kOperatorsHeader} + "X,linear1,fp16,4,2,,1024,2048,,,,100.5,200,\n");
  ASSERT_EQ(m.rows.size(), 2U);
  const GemmShape qkv{.m = 2 * 1024, .n = 3 * 2048 / 4, .k = 2048, .bias = true, .layout = GemmLayout::tn};
  EXPECT_EQ(m.rows[0].operation, gemm(qkv, DType::fp16));
  EXPECT_EQ(m.rows[1].operation, gemm(qkv, DType::fp16, Direction::backward));
  EXPECT_EQ(m.rows[0].time, Microseconds{100.5});
  EXPECT_EQ(m.rows[1].time, Microseconds{200});
  EXPECT_EQ(m.rows[0].gpu, "X");
  EXPECT_EQ(m.rows[0].label, "linear1");
  EXPECT_EQ(m.rows[0].hidden_size, 2048);
  EXPECT_EQ(m.rows[0].sequence_length, 1024);
  EXPECT_EQ(m.rows[1].line, 2U);
  EXPECT_NE(m.rows[0].hash, m.rows[1].hash);
}

TEST(KernelMeasurements, EveryOperatorHasTheShapeThatTheNotesOfTheDataGive) {
  // tp 2, micro-batch 3, 8 heads, 512 tokens, width 1024; the vocabulary of 50,257 is padded to 25,216 a
  // rank.
  const auto one = [](const std::string& op, const std::string& rest) {
    const auto m = read(std::string{kOperatorsHeader} + "X," + op + ",fp16," + rest + "\n");
    return m.rows.empty() ? std::string{} : describe(m.rows.front().operation);
  };
  const std::string all = "2,3,8,512,1024,,,,1,,";
  EXPECT_EQ(one("embedding", all),
            "embedding_lookup fp16 forward tables=1 rows=25216 dim=1024 bags=1536 pooling=1");
  EXPECT_EQ(one("layernorm", all), "layer_norm fp16 forward rows=1536 cols=1024");
  EXPECT_EQ(one("RMSlayernorm", all), "rms_norm_unfused fp16 forward rows=1536 cols=1024 unfused");
  EXPECT_THAT(one("res_add", all), HasSubstr("residual_add elements=1572864 reads=2 writes=1"));
  EXPECT_EQ(one("linear2", all), "gemm fp16 forward m=1536 n=1024 k=512 tn");
  EXPECT_EQ(one("linear3", all), "gemm fp16 forward m=1536 n=2048 k=1024 tn");
  EXPECT_EQ(one("linear4", all), "gemm fp16 forward m=1536 n=1024 k=2048 tn");
  EXPECT_EQ(one("linear_final", all), "gemm fp16 forward m=1536 n=25216 k=1024 tn");
  EXPECT_THAT(one("gelu", all), HasSubstr("gelu elements=3145728 reads=1 writes=1"));
  EXPECT_THAT(one("RoPE", all), HasSubstr("rotary_unfused elements=786432 reads=1 writes=1"));
  EXPECT_EQ(
      one("flash_atten", all),
      "attention fp16 forward batch=3 query_length=512 key_length=512 heads=4 head_dim=128 causal flash1");
  EXPECT_EQ(one("baddbmm", all), "batched_gemm fp16 forward batch=12 m=512 n=512 k=128 tn");
  EXPECT_EQ(one("bmm", all), "batched_gemm fp16 forward batch=12 m=512 n=128 k=512 nn");
  EXPECT_THAT(one("fillmask", all), HasSubstr("masked_fill elements=3145728 "));
  EXPECT_EQ(one("softmax", "2,3,8,512,,,,,1,,"), "softmax fp16 forward rows=6144 cols=512");
  EXPECT_EQ(one("ScaledUpperTriangMaskedSoftmax", "2,3,8,512,,,,,1,,"),
            "causal_softmax fp16 forward rows=6144 cols=512");
  EXPECT_EQ(one("parallel_cross_entropy_128", "2,3,,512,,,,,1,,"),
            "cross_entropy fp16 forward rows=1536 classes=25216");
}

TEST(KernelMeasurements, AnOptimizerStepUpdatesTheParametersOfItsStage) {
  const auto m =
      read(std::string{kOperatorsHeader} +
           "X,firstStage_optimizer,fp16,1,,,,2048,4,,,,,9\nX,middleStage_optimizer,fp16,1,,,,2048,4,,,,"
           ",9\nX,lastStage_optimizer,fp16,1,,,,2048,4,,,,,9\nX,optimizer,fp16,,,,,256,2,28,27335680,,,9\n");
  ASSERT_EQ(m.rows.size(), 4U);
  std::vector<std::int64_t> parameters;
  for (const auto& row : m.rows) {
    const auto* shape = std::get_if<OptimizerShape>(&row.operation.shape);
    ASSERT_NE(shape, nullptr);
    EXPECT_EQ(row.operation.dtype, DType::fp32);
    parameters.push_back(shape->parameters);
  }
  // One layer: 4 d + 3 d (d+1) + d (d+1) + 4 d (d+1) + d (4d+1) = 12 d^2 + 13 d; vocabulary 50,304.
  const std::int64_t d = 2048, layers = 4 * (12 * d * d + 13 * d);
  EXPECT_THAT(parameters, ElementsAre(layers + 50304 * d, layers, layers + 2 * d + 50304 * d, 27335680));
}

TEST(KernelMeasurements, ReadsGemmAndAttentionSweeps) {
  EXPECT_THAT(described(read("gpu,dtype,m,n,k,time_us,tflops\nx,bf16,3,32,64,2.4,0.1\n")),
              ElementsAre("gemm bf16 forward m=3 n=32 k=64"));
  EXPECT_THAT(
      described(read("gpu,dtype,batch,seq_len_tokens,n_heads,n_kv_heads,head_dim,causal,time_us\n"
                     "x,bf16,2,128,8,2,64,1,13\nx,bf16,2,128,8,8,64,0,13\n")),
      ElementsAre("attention bf16 forward batch=2 query_length=128 key_length=128 heads=8 "
                  "key_value_heads=2 head_dim=64 causal",
                  "attention bf16 forward batch=2 query_length=128 key_length=128 heads=8 head_dim=64"));
}

TEST(KernelMeasurements, ReadsTablesByTypeAndRegime) {
  const auto gemms = read(
      "gpu,dtype,m,n,k,time_us,regime,power_W,kernel,source\n"
      "x,fp8_block,3,32,64,2.4,sustained,300,deepgemm,s\nx,nvfp4,3,32,64,2.4,burst,,torch_flow,s\n");
  EXPECT_THAT(described(gemms),
              ElementsAre("gemm fp8_block forward m=3 n=32 k=64 tn", "gemm fp4 forward m=3 n=32 k=64 tn"));
  EXPECT_EQ(gemms.rows[0].regime, Regime::sustained);
  EXPECT_EQ(gemms.rows[1].regime, Regime::burst);
  EXPECT_EQ(gemms.rows[1].label, "gemm_fp4");
  const std::string header =
      "gpu,dtype,causal,batch,seq_len_tokens,n_heads,n_kv_heads,head_dim,window_tokens,time_us,regime\n";
  const auto windows = read(header + "x,fp8,1,2,4096,8,2,64,1024,13,burst\n");
  EXPECT_THAT(described(windows),
              ElementsAre("attention fp8 forward batch=2 query_length=4096 key_length=4096 heads=8 "
                          "key_value_heads=2 head_dim=64 causal window=1024"));
  EXPECT_THAT(refused(header + "x,fp8,1,2,4096,8,2,64,0,13,hot\n"),
              AllOf(HasSubstr("line 2, column regime"), HasSubstr("`hot`"), HasSubstr("burst or sustained")));
}

TEST(KernelMeasurements, ReadsTheTrainingSetOfNeuSight) {
  EXPECT_THAT(
      described(read("gpu,op,dtype,batch,m,n,k,time_us\nx,linear,fp32,1,17,16,48,5\nx,bmm,fp32,4,1,2,3,5\n")),
      ElementsAre("gemm fp32 forward m=17 n=16 k=48 tn", "batched_gemm fp32 forward batch=4 m=1 n=2 k=3 nn"));
  const auto vector = read(
      "gpu,op,dtype,rows,cols,time_us\nx,add,fp32,3,5,1\nx,addu,fp32,3,5,1\nx,pow,fp32,3,5,1\n"
      "x,softmax,fp32,3,5,1\nx,layernorm,fp32,3,5,1\n");
  ASSERT_EQ(vector.rows.size(), 5U);
  EXPECT_EQ(vector.rows[0].operation,
            elementwise({.function = ElementwiseFunction::add, .elements = 15, .reads = 2, .inner = 5},
                        DType::fp32));
  EXPECT_EQ(
      vector.rows[1].operation,
      elementwise({.function = ElementwiseFunction::add_scalar, .elements = 15, .inner = 5}, DType::fp32));
  EXPECT_EQ(vector.rows[3].operation, (Operation{SoftmaxShape{.rows = 3, .cols = 5}, DType::fp32}));
  EXPECT_EQ(vector.rows[4].operation, norm({.rows = 3, .cols = 5}, DType::fp32));
  EXPECT_THAT(
      described(read("gpu,op,dtype,batch,in_channels,out_channels,kernel_size,input_size,stride,padding,"
                     "time_us\nx,conv2d,fp32,2,10,58,3,5,1,1,63.2\n")),
      ElementsAre("convolution fp32 forward batch=2 channels=10->58 image=5x5 kernel=3x3 stride=1 padding=1 "
                  "dilation=1 groups=1"));
}

TEST(KernelMeasurements, ReadsMeasuredEfficienciesAndCountsRowsWithoutTime) {
  const auto m = read(
      "gpu,op,peak_TFLOPS,efficiency,batch,m,k,n,layout,accumulate,out_dtype,time_us,seq_len_tokens,n_groups,"
      "stage\n"
      "x,matmul,312.0,0.7,1,4096,7168,512,NT,1,fp32,96,,,\n"
      "x,sdp_fwd,312,0.5,1,,,,,,,,4096,,\nx,sdp_fwd,312,0.6,1,,,,,,,,4096,,\n"
      "x,group_matmul,312.0,0.6,,61,15,51,,0,bf16,19,,40,fwd\n");
  EXPECT_THAT(described(m), ElementsAre("gemm bf16 forward m=4096 n=512 k=7168 accumulates nt output=fp32",
                                        "batched_gemm bf16 forward batch=40 m=61 n=51 k=15"));
  ASSERT_EQ(m.skipped.size(), 1U);
  EXPECT_EQ(m.skipped[0].what, "sdp_fwd");
  EXPECT_EQ(m.skipped[0].n, 2U);
}

TEST(KernelMeasurements, ReadsTheProjectsOwnSchema) {
  const auto m = read(
      "gpu,op,direction,dtype,label,batch,m,n,k,bias,rows,cols,elements,time_us,time_us_p10,time_us_p90,n,"
      "software\n"
      "x,gemm,dgrad,bf16,up,,64,128,256,1,,,,10,9,12,30,\"torch 2.4, CUDA 12\"\n"
      "x,rms_norm,bwd,fp16,,,,,,,8,16,,7.5,,,,\n"
      "x,gelu,forward,fp16,,,,,,,,,4096,3,,,,\n"
      "x,gelu,forward,fp16,,,,,,,64,64,,3,,,,\n");
  EXPECT_THAT(
      described(m),
      ElementsAre("gemm bf16 input_gradient m=64 n=128 k=256 bias", "rms_norm fp16 backward rows=8 cols=16",
                  HasSubstr("gelu fp16 forward gelu elements=4096"),
                  HasSubstr("elements=4096 reads=1 writes=1 flops_per_element=1 inner=64")));
  EXPECT_EQ(m.rows[0].label, "up");
  EXPECT_EQ(m.rows[0].n, 30U);  // the n behind the time; the one before it is an extent
  EXPECT_EQ(m.rows[0].p10, Microseconds{9});
  EXPECT_EQ(m.rows[0].p90, Microseconds{12});
  EXPECT_EQ(m.rows[1].label, "rms_norm");
  EXPECT_FALSE(m.rows[1].p10);
}

TEST(KernelMeasurements, EveryOpOfTheSchemaCanBeWritten) {
  const std::map<std::string, std::string> rows = {
      {"batch,seq_len_tokens,kv_len_tokens,n_heads,n_kv_heads,head_dim,causal,kernel|attention|2,8,16,4,2,64,"
       "0,flash2",
       "attention fp16 forward batch=2 query_length=8 key_length=16 heads=4 key_value_heads=2 head_dim=64 "
       "flash2"},
      {"batch,in_channels,out_channels,height,width,kernel_height,kernel_width,stride|conv2d|1,3,8,9,9,3,3,2",
       "convolution fp16 forward batch=1 channels=3->8 image=9x9 kernel=3x3 stride=2 padding=0 dilation=1 "
       "groups=1"},
      {"batch,in_channels,out_channels,width,kernel_width|conv1d|1,3,8,9,3",
       "convolution fp16 forward batch=1 channels=3->8 image=1x9 kernel=1x3 stride=1 padding=0 dilation=1 "
       "groups=1"},
      {"tables,rows,dim,bags,pooling,distinct_fraction|embedding_bag|4,1000,64,512,20.5,0.7",
       "embedding_lookup fp16 forward tables=4 rows=1000 dim=64 bags=512 pooling=20.5 distinct_fraction=0.7"},
      {"rows,cols|batch_norm|4,5", "batch_norm fp16 forward rows=4 cols=5"},
      {"rows,cols|log_softmax|4,5", "softmax fp16 forward log rows=4 cols=5"},
      {"rows,cols|causal_softmax|4,5", "causal_softmax fp16 forward rows=4 cols=5"},
      {"rows,cols,fused|cross_entropy|4,5,1", "cross_entropy fp16 forward rows=4 classes=5 fused"},
      {"rows,cols|reduction|4,5", "reduction fp16 forward rows=4 cols=5"},
      {"elements,inner|transpose|40,5", "transpose fp16 forward elements=40 inner=5"},
      {"parameters,tensors,implementation|adamw|40,5,foreach",
       "optimizer fp16 forward adamw foreach parameters=40 tensors=5 bytes_per_parameter=16+12"},
      {"bytes|memcpy_h2d|40", "memcpy_h2d fp16 forward bytes=40"},
      {"bytes|memset|40", "memset fp16 forward bytes=40"},
      {"rows,inner,cols,nonzeros|spmm|4,5,6,7", "sparse fp16 forward rows=4 inner=5 cols=6 nonzeros=7"}};
  for (const auto& [spec, expected] : rows) {
    const std::size_t a = spec.find('|'), b = spec.find('|', a + 1);
    const auto m = read("gpu,dtype,direction," + spec.substr(0, a) + ",op,time_us\nx,fp16,forward," +
                        spec.substr(b + 1) + "," + spec.substr(a + 1, b - a - 1) + ",5\n");
    EXPECT_THAT(described(m), ElementsAre(expected)) << spec;
  }
}

TEST(KernelMeasurements, SaysWhereAndWhatIsWrong) {
  const std::string own = "gpu,op,direction,dtype,m,n,k,rows,cols,time_us\n";
  EXPECT_EQ(refused(own + "x,gemm,forward,bf16,8,8,8,,,1\nx,gemm,forward,bf16,8,8,8,,,0\n"),
            "file.csv: line 3, column time_us: found `0`, expected microseconds above 0, as a plain number; "
            "leave this "
            "row out or measure it again");
  EXPECT_THAT(refused(own + "x,gemm,forward,bf16,8,8,8,,,-4\n"),
              HasSubstr("line 2, column time_us: found `-4`"));
  EXPECT_THAT(refused(own + "x,gemm,forward,bf16,8,8,8,,,1.5ms\n"),
              HasSubstr("column time_us: found `1.5ms`"));
  EXPECT_THAT(refused(own + "x,gemm,forward,bf16,8,8,8,,,nan\n"), HasSubstr("column time_us: found `nan`"));
  EXPECT_EQ(refused(own + "x,gemm,forward,bf16,8,8,,,,1\n"),
            "file.csv: line 2, column k: found nothing, expected a whole number from 1 to 1125899906842624");
  EXPECT_EQ(refused(own + "x,layer_norm,forward,bf16,8,,,16,16,1\n"),
            "file.csv: line 2, column m: found `8`, expected nothing: `layer_norm` has no such extent");
  EXPECT_THAT(
      refused(own + "x,attention,forward,bf16,,,,,,1\n"),
      HasSubstr(
          "lacks the column batch, found `attention` in line 2, expected its shape in the columns batch, "
          "seq_len_tokens, n_heads, head_dim"));
  EXPECT_THAT(refused(own + "x,frobnicate,forward,bf16,,,,,,1\n"),
              HasSubstr("line 2, column op: found `frobnicate`"));
  EXPECT_THAT(refused(own + "x,gemm,sideways,bf16,8,8,8,,,1\n"),
              HasSubstr("line 2, column direction: found `sideways`"));
  EXPECT_THAT(refused(own + "x,gemm,forward,float3,8,8,8,,,1\n"),
              HasSubstr("line 2, column dtype: found `float3`"));
  EXPECT_THAT(refused(own + "x,gemm,forward,bf16,8,8,8,,1\n"),
              HasSubstr("line 2: a row, found 9 cells, expected 10"));
  EXPECT_EQ(refused("gpu,op,direction,dtype,m,n,k,time_ms\nx,gemm,forward,bf16,8,8,8,1\n"),
            "file.csv: line 1, column time_ms: the unit of the time, expected the column time_us; convert "
            "the times to "
            "microseconds and call the column so");
  EXPECT_THAT(
      refused("gpu,dtype,m,n,time_us\nx,bf16,8,8,1\n"),
      HasSubstr(
          "line 1: lacks the column k, expected the columns of GEMM measurements: gpu, dtype, m, n, k"));
  EXPECT_THAT(refused("gpu,m,m,n,k,dtype,time_us\n"), HasSubstr("two columns named `m`"));
  EXPECT_THAT(refused(std::string{kOperatorsHeader} + "X,bmm,fp16,3,4,8,1024,2048,,,,1,2,\n"),
              HasSubstr("line 2, column n_heads: found `8`, expected a multiple of tp, which is 3"));
  EXPECT_THAT(refused("gpu,op,dtype,batch,in_channels,out_channels,kernel_size,input_size,time_us\nx,conv2d,"
                      "fp32,1,3,8,9,5,7\n"),
              HasSubstr("line 2: the shape of `conv2d`, found kernel 9x9"));
  EXPECT_THAT(refused("a,b,c\n1,2,3\n"), HasSubstr("the header is of no kind of kernel measurements"));
  EXPECT_THAT(refused(""), HasSubstr("the file is empty"));
  EXPECT_THAT(read_kernel_measurements(std::filesystem::path{"/nowhere.csv"}).ok(), false);
}

TEST(KernelMeasurements, QuotesBlanksAndLineEndsDoNotMatter) {
  const auto m = read(
      "\xEF\xBB\xBF"
      "gpu,dtype,\"m\", n ,k,time_us\r\n\r\n\"a \"\"b\"\", c\",bf16, 3 ,32,64.0,2.4\r\n");
  ASSERT_EQ(m.rows.size(), 1U);
  EXPECT_EQ(m.rows[0].gpu, "a \"b\", c");
  EXPECT_EQ(m.rows[0].line, 3U);
  EXPECT_EQ(describe(m.rows[0].operation), "gemm bf16 forward m=3 n=32 k=64");
}

TEST(KernelMeasurements, AFolderStandsForItsFilesAndNamesTheOthers) {
  const auto folder =
      std::filesystem::path{::testing::TempDir()} / ("kernel_folder_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "b.csv"} << "gpu,dtype,m,n,k,time_us\nx,bf16,3,32,64,2\n";
  std::ofstream{folder / "a.csv"} << "gpu,op,dtype,rows,cols,time_us\nx,add,fp32,3,5,1\n";
  std::ofstream{folder / "c.csv"} << "gpu,price\nx,3\n";
  std::ofstream{folder / "notes.md"} << "nothing\n";
  const auto m = read_kernel_measurements(std::vector<std::filesystem::path>{folder});
  ASSERT_TRUE(m.ok()) << m.error().message();
  ASSERT_EQ(m->files.size(), 2U);
  EXPECT_EQ(m->files[m->rows[0].file].filename(), "a.csv");
  EXPECT_EQ(m->files[m->rows[1].file].filename(), "b.csv");
  ASSERT_EQ(m->skipped.size(), 1U);
  EXPECT_EQ(m->skipped[0].what, "c.csv");
  std::filesystem::remove(folder / "a.csv");
  std::filesystem::remove(folder / "b.csv");
  EXPECT_FALSE(read_kernel_measurements(std::vector<std::filesystem::path>{folder}).ok());
  std::filesystem::remove_all(folder);
}

TEST(KernelMeasurements, ReadsAllMeasuredKernels) {
  SKIP_WITHOUT_DATA();
  const auto m =
      read_kernel_measurements(std::vector<std::filesystem::path>{*test::measured_data() / "kernels"});
  ASSERT_TRUE(m.ok()) << m.error().message();
  EXPECT_GT(m->rows.size(), 190'000U);
  std::set<std::uint32_t> hashes;
  std::set<std::string> gpus;
  for (const auto& row : m->rows) {
    hashes.insert(row.hash);
    gpus.insert(row.gpu);
  }
  EXPECT_EQ(gpus.size(), 11U);
  EXPECT_GT(hashes.size(), m->rows.size() * 95 / 100);
}

}  // namespace
}  // namespace stepcast::kernel_measurements_test
