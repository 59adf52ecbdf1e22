#include "stepcast/describe/detail/tokenizer_vocabulary.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/presets.h"

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
  EXPECT_THAT(notes, AllOf(HasSubstr("50257 words are assumed (GPT-2's), 15 % of the products of a step"),
                           HasSubstr("--vocab-size says otherwise")));
}

}  // namespace
}  // namespace stepcast::tokenizer_vocabulary_test
