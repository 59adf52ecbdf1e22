#include "calibrate/lookup_measurements.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::lookup_measurements_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader =
    "gpu,kernel,direction,dtype,batch,rows,dim,pooling_factor,reuse,time_us,optimizer\n";
// 0.8 of the rows once, 0.2 twice.
const std::string kReuse = "0.8-0.2-0-0-0-0-0-0-0-0-0-0-0-0-0-0-0";

TEST(LookupMeasurements, ReadKernelsOfSeveralTables) {
  const std::string text = kHeader + ("A100,a,forward,fp32,512,1000,64,2.5," + kReuse + ",40,\n") +
                           "A100,a,forward,fp32,512,10,128,0,,40,\n" +
                           ("A100,b,backward,fp16,4096,1000,64,1," + kReuse + ",90,adagrad\n");
  const auto kernels = parse_lookup_measurements(text, "a.csv");
  ASSERT_TRUE(kernels.ok()) << kernels.error().message();
  ASSERT_EQ(kernels->size(), 2U);
  const LookupMeasurement& a = kernels->front();
  ASSERT_EQ(a.tables.size(), 2U);
  EXPECT_DOUBLE_EQ(a.bags, 512);
  EXPECT_DOUBLE_EQ(a.tables[0].pooling, 2.5);
  EXPECT_DOUBLE_EQ(a.tables[0].reuse[1], 0.2);
  EXPECT_DOUBLE_EQ(a.tables[1].dim, 128);
  EXPECT_DOUBLE_EQ(a.time_us, 40);
  EXPECT_EQ(kernels->back().direction, Direction::backward);
  EXPECT_EQ(kernels->back().optimizer, OptimizerKind::adagrad);
  EXPECT_EQ(kernels->back().dtype, DType::fp16);
  EXPECT_NE(a.hash, kernels->back().hash);
}

TEST(LookupMeasurements, SayWhatIsWrong) {
  const auto error = [](const std::string& rows) {
    const auto kernels = parse_lookup_measurements(kHeader + rows, "a.csv");
    return kernels.ok() ? std::string{} : kernels.error().message();
  };
  const std::string good = "A100,a,forward,fp32,512,1000,64,2.5," + kReuse + ",40,\n";
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(error(""), HasSubstr("no kernels"));
  EXPECT_THAT(error("A100,a,up,fp32,512,1000,64,2.5," + kReuse + ",40,\n"), HasSubstr("forward or backward"));
  EXPECT_THAT(error("A100,a,forward,fp9,512,1000,64,2.5," + kReuse + ",40,\n"), HasSubstr("dtype"));
  EXPECT_THAT(error("A100,a,forward,fp32,0,1000,64,2.5," + kReuse + ",40,\n"), HasSubstr("batch"));
  EXPECT_THAT(error("A100,a,forward,fp32,512,0,64,2.5," + kReuse + ",40,\n"), HasSubstr("rows"));
  EXPECT_THAT(error("A100,a,forward,fp32,512,1000,64,-1," + kReuse + ",40,\n"), HasSubstr("pooling_factor"));
  EXPECT_THAT(error("A100,a,forward,fp32,512,1000,64,2.5,0.5-0.5,40,\n"), HasSubstr("17"));
  EXPECT_THAT(error("A100,a,forward,fp32,512,1000,64,2.5,,40,\n"), HasSubstr("17"));
  EXPECT_THAT(error("A100,a,forward,fp32,512,1000,64,2.5," + kReuse + ",0,\n"), HasSubstr("time_us"));
  EXPECT_THAT(error("A100,a,backward,fp32,512,1000,64,2.5," + kReuse + ",40,lion\n"), HasSubstr("optimizer"));
  EXPECT_THAT(error(good + "A100,a,forward,fp32,512,1000,64,2.5," + kReuse + ",41,\n"),
              HasSubstr("kernel a says otherwise in line 2"));
  EXPECT_THAT(error(good + "A100,b,forward,fp32,512,1000,64,2.5," + kReuse + ",41,\n" + good),
              HasSubstr("are not consecutive"));
  EXPECT_THAT(parse_lookup_measurements("gpu,kernel\nA100,1\n", "a.csv").error().message(),
              HasSubstr("no column direction"));
}

TEST(LookupMeasurements, AreToldByTheirHeader) {
  EXPECT_TRUE(looks_like_lookup_measurements(kHeader));
  EXPECT_FALSE(looks_like_lookup_measurements("rows,dim,pooling_factor,reuse\n"));
  EXPECT_FALSE(looks_like_lookup_measurements(""));
}

}  // namespace
}  // namespace stepcast::lookup_measurements_test
