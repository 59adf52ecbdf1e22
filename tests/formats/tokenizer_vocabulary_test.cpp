#include "stepcast/formats/detail/tokenizer_vocabulary.h"

#include <fstream>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/formats/resolve_job.h"

#include "tests/support/data.h"

namespace stepcast::tokenizer_vocabulary_test {
namespace {

using detail::vocabulary_of_tokenizer;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TokenizerVocabulary, FollowsFromTheType) {
  EXPECT_EQ(vocabulary_of_tokenizer("GPT2BPETokenizer", "x").words, 50257);
  EXPECT_TRUE(vocabulary_of_tokenizer("GPT2BPETokenizer", "x").sure);
  EXPECT_EQ(vocabulary_of_tokenizer("Llama2Tokenizer", "").words, find_preset("llama-2-7b")->vocab_size);
  EXPECT_EQ(vocabulary_of_tokenizer("Llama3Tokenizer", "").words, find_preset("llama-3-8b")->vocab_size);
}

TEST(TokenizerVocabulary, FollowsFromTheNameOfAModelOrAFile) {
  EXPECT_EQ(vocabulary_of_tokenizer("HuggingFaceTokenizer", "meta-llama/Llama-3.1-8B-Instruct").words,
            128256);
  EXPECT_EQ(vocabulary_of_tokenizer("HuggingFaceTokenizer", "/models/qwen3-8b-dist/tokenizer").words,
            find_preset("qwen3-8b")->vocab_size);
  EXPECT_EQ(vocabulary_of_tokenizer("GPTSentencePieceTokenizer", "/data/nemotron_2_256k.model").words,
            256000);
  EXPECT_EQ(vocabulary_of_tokenizer("", "/x/words.500000.64k.json").words, 64000);
  EXPECT_EQ(vocabulary_of_tokenizer("HuggingFaceTokenizer", "/data/tokenizer").words, 128256);
  EXPECT_FALSE(vocabulary_of_tokenizer("NobodysTokenizer", "///--__").sure);
}

// Where a line says both, what would be guessed is what it states.
TEST(TokenizerVocabulary, GuessesWhatLinesState) {
  struct Stated {
    const char *type, *model;
    double words;
  };
  constexpr Stated kStated[] = {
      {"HuggingFaceTokenizer", "/data/model/qwen3-8b-dist/tokenizer", 151936},
      {"HuggingFaceTokenizer", "unsloth/gpt-oss-20b-BF16", 201088},
      {"HuggingFaceTokenizer", "deepseek-ai/DeepSeek-V3", 129280},
      {"HuggingFaceTokenizer", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 152064},
      {"HuggingFaceTokenizer", "Qwen/Qwen2.5-72B-Instruct", 152064},
      {"HuggingFaceTokenizer", "meta-llama/Llama-4-Scout-17B-16E-Instruct", 202048},
      {"HuggingFaceTokenizer", "moonshotai/Kimi-K2-Instruct", 163840},
      {"HuggingFaceTokenizer", "/models/Mixtral-8x7B-v0.1/tokenizer", 32000},
      {"HuggingFaceTokenizer", "google/gemma-3-12b-it", 262208},
      {"GPTSentencePieceTokenizer", "/data/utils/nemotron_2_256k.model", 256000},
      {"TikTokenizer", "/data/multiMixV8.gpt4o_nc_sd.500000.128k.vocab.json", 131072},
      {"GPT2BPETokenizer", "", 50257},
      {"Llama2Tokenizer", "tokenizer.model", 32000},
      {"Llama3Tokenizer", "tokenizer.model", 128256},
      {"BertWordPieceLowerCase", "", 30522},
  };
  for (const Stated& stated : kStated) {
    const double guessed = static_cast<double>(vocabulary_of_tokenizer(stated.type, stated.model).words);
    EXPECT_NEAR(guessed / stated.words, 1, 0.02) << stated.type << " " << stated.model;
  }
}

// The same over measured lines that state a vocabulary beside a tokenizer of their own.
TEST(TokenizerVocabulary, GuessesWhatMeasuredLinesState) {
  SKIP_WITHOUT_DATA();
  int n = 0;
  for (const char* file : {"megatron_lines.csv", "megatron_lines_no_gpu_count.csv"}) {
    std::ifstream in{*test::measured_data() / "field" / file};
    const std::regex words{"--vocab-size ([0-9]+)"}, type{"--tokenizer-type ([A-Za-z0-9]+)"},
        model{"--tokenizer-model ([^ \"]+)"};
    for (std::string line; std::getline(in, line);) {
      std::smatch w, t, m;
      if (!std::regex_search(line, w, words) || !std::regex_search(line, t, type) ||
          t.str(1) == "NullTokenizer")
        continue;
      std::regex_search(line, m, model);
      const auto guessed = vocabulary_of_tokenizer(t.str(1), m.empty() ? "" : m.str(1)).words;
      EXPECT_NEAR(static_cast<double>(guessed) / std::stod(w.str(1)), 1, 0.02) << m.str(1);
      ++n;
    }
  }
  EXPECT_GE(n, 3);
}

// 24 layers of 12 x 1024 squared each, and 50,257 x 1024 of output: 51.5 of 353.5 million.
TEST(TokenizerVocabulary, SaysWhatAGuessWeighs) {
  Job job;
  job.command_line =
      "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
      "--max-position-embeddings 1024 "
      "--micro-batch-size 1";
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  std::string notes;
  for (const std::string& note : resolved->notes) notes += note + "\n";
  EXPECT_THAT(notes, AllOf(HasSubstr("50257 words are assumed (GPT-2's), 15 % of the GEMM FLOPs of a step"),
                           HasSubstr("To change it: --vocab-size")));
}

}  // namespace
}  // namespace stepcast::tokenizer_vocabulary_test
