#include "stepcast/formats/launch_script.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/detail/shell/script.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/resolve_job.h"

#include "tests/support/paths.h"

namespace stepcast::launch_script_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words_of(std::string_view script) {
  auto words = detail::launch_words(script);
  EXPECT_TRUE(words.ok()) << words.error().message();
  return words.ok() ? *std::move(words) : std::vector<std::string>{};
}

TEST(LaunchScript, CutsAsAShellDoes) {
  EXPECT_THAT(words_of(R"(a "b c" 'd $e' f\ g # h)"), ElementsAre("a", "b c", "d $e", "f g"));
  EXPECT_THAT(words_of("a \\\n b\\\r\n c \"\""), ElementsAre("a", "b", "c", ""));
}

TEST(LaunchScript, ExpandsWhatItSetsItself) {
  EXPECT_THAT(words_of("A=2; B=\"x y\"\nrun.py $A ${B} \"$B\" pre${A}post"),
              ElementsAre("run.py", "2", "x", "y", "x y", "pre2post"));
  EXPECT_THAT(words_of("A=(1 '2 3')\nA+=(4)\nrun.py ${A[@]} \"${A[@]}\""),
              ElementsAre("run.py", "1", "2", "3", "4", "1", "2 3", "4"));
  EXPECT_THAT(words_of("N=3\nrun.py $((N * (2 + ${N}) % 7 - $N / 2)) ${M:-9} ${N:-9}"),
              ElementsAre("run.py", "0", "9", "3"));  // 3 * 5 % 7 = 1, less 1
}

TEST(LaunchScript, LeavesWhatItCannotKnowAsItIsWritten) {
  EXPECT_THAT(words_of("run.py $X ${Y}/z $(date +%s) `id` $1 $((Q+1))"),
              ElementsAre("run.py", "$X", "${Y}/z", "$(date +%s)", "`id`", "$1", "$((Q+1))"));
  EXPECT_THAT(words_of("A=1\nif ls; then A=2; fi\n[ -d x ] && B=3\nrun.py $A $B"),
              ElementsAre("run.py", "$A", "$B"));
}

TEST(LaunchScript, DecidesConditionsThatItCan) {
  const std::string sizes =
      "if [ $S == 7 ]; then L=32; elif [[ $S = 13* ]]; then L=40\nelse L=80; fi\nrun.py $L";
  EXPECT_THAT(words_of("S=7\n" + sizes), ElementsAre("run.py", "32"));
  EXPECT_THAT(words_of("S=13b\n" + sizes), ElementsAre("run.py", "40"));
  EXPECT_THAT(words_of("S=70\n" + sizes), ElementsAre("run.py", "80"));
  EXPECT_THAT(words_of(sizes), ElementsAre("run.py", "$L"));
  const std::string cases = "case \"$S\" in\n  7b|8b) L=32;;\n  13? ) L=40 ;;\n  (*) L=80\nesac\nrun.py $L";
  EXPECT_THAT(words_of("S=8b\n" + cases), ElementsAre("run.py", "32"));
  EXPECT_THAT(words_of("S=13b\n" + cases), ElementsAre("run.py", "40"));
  EXPECT_THAT(words_of("S=405b\n" + cases), ElementsAre("run.py", "80"));
  EXPECT_THAT(words_of(cases), ElementsAre("run.py", "$L"));
  EXPECT_THAT(words_of("S=a; case $S in a) L=1;; esac\nrun.py $L"), ElementsAre("run.py", "1"));
  EXPECT_THAT(
      words_of(
          "A=1; B=1; C=1; [ $A -lt 2 ] && B=2; [ -z \"$A\" ] && C=2; [ $A = 2 ] || D=4\nrun.py $B $C $D"),
      ElementsAre("run.py", "2", "1", "4"));
  EXPECT_THAT(words_of("A=1\nif [ $A -ge 1 ] && [ ! $A -gt 5 ]; then if [ $A -ne 1 ]; then B=1; else B=2; "
                       "fi; fi\nrun.py $B"),
              ElementsAre("run.py", "2"));
  // What runs in an arm that does not is not run.
  EXPECT_THAT(words_of("A=x\nif [ $A = y ]; then pretrain_a.py 1; else pretrain_b.py 2; fi"),
              ElementsAre("pretrain_b.py", "2"));
}

TEST(LaunchScript, KnowsOtherWaysToSet) {
  EXPECT_THAT(
      words_of(
          "let N=4*2\ndeclare -a A=(1 2 3)\nreadonly -r B=5\nrun.py $N ${A[1]} $A ${A[7]} \"${A[*]}\" $B"),
      ElementsAre("run.py", "8", "2", "1", "${A[7]}", "1 2 3", "5"));
  EXPECT_THAT(words_of("N=3\nrun.py ${1:-${M:-$N}} ${Q:=7} $Q ${R:-$X}"),
              ElementsAre("run.py", "3", "7", "7", "$X"));
}

TEST(LaunchScript, KnowsOtherExpansions) {
  EXPECT_THAT(
      words_of(
          "A=(1 '2 3')\nE=()\nN=x\nrun.py ${A[@]:+\"${A[@]}\"} ${E[@]+\"${E[@]}\"} ${N:+--n $N} ${M:+--m}"),
      ElementsAre("run.py", "1", "2 3", "--n", "x"));
  EXPECT_THAT(words_of("declare -A S=([layers]=32 [hidden]=4096)\nS[heads]=8\nK=hidden\n"
                       "run.py ${S[layers]} ${S[$K]} ${S[heads]}"),
              ElementsAre("run.py", "32", "4096", "8"));
  EXPECT_THAT(words_of("O=$(cat <<'END'\n--a 1\n--b 2\nEND\n)\nread -r -d '' P <<END || true\n--c 3\nEND\n"
                       "run.py $O $P $(echo $O)"),
              ElementsAre("run.py", "--a", "1", "--b", "2", "--c", "3", "--a", "1", "--b", "2"));
  EXPECT_THAT(words_of("N=Llama-3-8B\nrun.py ${N#Llama-} ${N%-8B} ${N,,} ${N^^} ${N//-/_} ${N/-/} ${N%%*-}"),
              ElementsAre("run.py", "3-8B", "Llama-3", "llama-3-8b", "LLAMA-3-8B", "Llama_3_8B", "Llama3-8B",
                          "${N%%*-}"));
  EXPECT_THAT(words_of("run.py $((1 << 15)) $((2 ** 10 * 3))"), ElementsAre("run.py", "32768", "3072"));
  EXPECT_THAT(words_of("N=4\nrun.py $(expr 16 / $N \\* 2)"), ElementsAre("run.py", "8"));
  EXPECT_THAT(words_of("A=\"x y\"\nB=$A\nrun.py \"$B\""), ElementsAre("run.py", "x y"));
  EXPECT_THAT(words_of("python -m megatron.training.pretrain_gpt --a"),
              ElementsAre("python", "pretrain_gpt.py", "--a"));
}

// Nothing comes from the environment: what no line sets is empty.
TEST(LaunchScript, AsksWhetherAVariableIsSet) {
  EXPECT_THAT(words_of("if [ -z \"$M\" ]; then M=a; fi\n[[ -n ${N} ]] && K=1 || K=2\nrun.py $M $K"),
              ElementsAre("run.py", "a", "2"));
  EXPECT_THAT(words_of("ls && M=b\nif [ -z \"$M\" ]; then M=a; fi\nrun.py $M"), ElementsAre("run.py", "$M"));
  EXPECT_THAT(words_of("D=${H:-\"${HOME}/x\"}\nP=${Q:-\"$D/m\"}\nrun.py $P ${R:-$(nproc)}"),
              ElementsAre("run.py", "${HOME}/x/m", "${R:-$(nproc)}"));
}

TEST(LaunchScript, ChoosesTheModuleThatTrains) {
  EXPECT_THAT(words_of("python3 -m verl.trainer.main_ppo a.b=1 \\\n  # c.d=2 \\\n  e.f=3"),
              ElementsAre("python3", "main_ppo.py", "a.b=1", "e.f=3"));
  EXPECT_THAT(words_of("python3 data/prepare.py --out x\npython3 -m verl.trainer.main_ppo a.b=1\n"
                       "python3 tools/report.py\npython3 -m verl.model_merger merge"),
              ElementsAre("python3", "main_ppo.py", "a.b=1"));
  EXPECT_THAT(words_of("docker exec -it c bash -c \"python3 -m verl.trainer.main_ppo a.b=1\" | tee x"),
              ElementsAre("docker", "exec", "-it", "c", "bash", "-c", "python3", "main_ppo.py", "a.b=1"));
  EXPECT_THAT(words_of("run.py --note \"python's -m is not run\""),
              ElementsAre("run.py", "--note", "python's -m is not run"));
  EXPECT_THAT(words_of("COMMAND=\"uv run grpo.py --config=a.yaml b=2\" \\\nsbatch --nodes=4 ray.sub"),
              ElementsAre("uv", "run", "grpo.py", "--config=a.yaml", "b=2"));
}

TEST(LaunchScript, DecidesConditionsInOnePairOfBrackets) {
  const auto taken = [](const std::string& condition) {
    return words_of("N=4\nS=a\nif " + condition + "; then A=1; else A=2; fi\nrun.py $A").back();
  };
  EXPECT_EQ(taken("[[ $N -gt 1 && -z ${X:-} ]]"), "1");
  EXPECT_EQ(taken("[[ $N -gt 4 && $S == a ]]"), "2");
  EXPECT_EQ(taken("[[ $N -gt 4 || $S == a ]]"), "1");
  EXPECT_EQ(taken("(( N > 3 ))"), "1");
  EXPECT_EQ(taken("(( N * 2 <= 7 ))"), "2");
  EXPECT_EQ(taken("(( UNKNOWN > 3 ))"), "$A");
  EXPECT_THAT(
      words_of(
          "A=1\nwhile [[ $# -gt 0 ]]; do case $1 in --a) A=$2; shift 2;; *) shift;; esac; done\nrun.py $A"),
      ElementsAre("run.py", "1"));
}

TEST(LaunchScript, CallsItsFunctions) {
  EXPECT_THAT(words_of("f() { A=$1; }\nf 3\nrun.py $A"), ElementsAre("run.py", "3"));
  EXPECT_THAT(words_of("function f {\n local a=$1 n=$#; shift 2\n run.py $a $n \"$@\" x$1; }\nf 1 2 '3 4' 5"),
              ElementsAre("run.py", "1", "4", "3 4", "5", "x3", "4"));
  EXPECT_THAT(words_of("g() { f $1 b; }; f() { run.py $2 $1 $#; }\ng a"),
              ElementsAre("run.py", "b", "a", "2"));
  // Arguments are those of the call again when a function that it calls has ended; the script itself has none.
  EXPECT_THAT(words_of("g() { B=$1; }\nf() { g 7; run.py $1 $B; }\nf 1"), ElementsAre("run.py", "1", "7"));
  EXPECT_THAT(words_of("[ $# -gt 0 ] && A=1 || A=2\nrun.py $A $#"), ElementsAre("run.py", "2", "0"));
  EXPECT_THAT(words_of("f() { A=$1; }\nls && f 3\nrun.py $A"), ElementsAre("run.py", "$A"));
  EXPECT_THAT(words_of("f() { f; run.py 1; }\nf"), ElementsAre("run.py", "1"));
  EXPECT_THAT(words_of("f() { run.py 1; }\ntrap f EXIT"), ElementsAre("run.py", "1"));
}

TEST(LaunchScript, KeepsWhatAConditionMayAddTo) {
  EXPECT_THAT(words_of("A='--a 1'; B=\nif ls; then A=\"$A --b\"; B=--c; fi\nrun.py $A $B"),
              ElementsAre("run.py", "--a", "1", "${A}", "${B}"));
  EXPECT_THAT(words_of("A=1\nls && A=12\nrun.py $A"), ElementsAre("run.py", "$A"));
  EXPECT_THAT(words_of("A=1\nls && A=1\nrun.py $A"), ElementsAre("run.py", "1"));
}

TEST(LaunchScript, KnowsLoopsThatNeverRun) {
  EXPECT_THAT(words_of("A=1\nfor i in \"$@\"; do A=2; done\nwhile [ $# -gt 0 ]; do A=3; done\nrun.py $A"),
              ElementsAre("run.py", "1"));
  EXPECT_THAT(words_of("A=1\nfor i in $X; do A=2; done\nrun.py $A"), ElementsAre("run.py", "$A"));
  EXPECT_THAT(words_of("A=1\nfor i in 1 2; do A=2; break; done\nrun.py $A"), ElementsAre("run.py", "$A"));
  EXPECT_THAT(words_of("A=1\nfor i in *.json; do A=2; done\nrun.py $A"), ElementsAre("run.py", "$A"));
  EXPECT_THAT(words_of("A=1\nwhile [ $A -lt 3 ]; do A=2; done\nrun.py $A"), ElementsAre("run.py", "$A"));
}

TEST(LaunchScript, ALoopOverKnownWordsRunsForEach) {
  EXPECT_THAT(words_of("A=1\nfor i in 1 2; do A=2; done\nrun.py $A"), ElementsAre("run.py", "2"));
  EXPECT_THAT(words_of("ARGS=()\nfor flag in bf16 swiglu; do  # done\n  ARGS+=(\"--$flag\")\ndone\n"
                       "run.py ${ARGS[@]} $flag"),
              ElementsAre("run.py", "--bf16", "--swiglu", "swiglu"));
  EXPECT_THAT(words_of("N=0\nfor a in 1 2 3\ndo\n  for b in 4 5; do N=$((N + a * b)); done\ndone\nrun.py $N"),
              ElementsAre("run.py", "54"));
  EXPECT_THAT(words_of("for mbs in 1 2 4; do python pretrain_gpt.py --micro-batch-size $mbs; done"),
              ElementsAre("python", "pretrain_gpt.py", "--micro-batch-size", "4"));
  EXPECT_THAT(words_of("A=1\nfor i in 1 2; do echo do; echo done; A=2; done\nrun.py $A"),
              ElementsAre("run.py", "2"));
  // Nobody knows that it runs.
  EXPECT_THAT(words_of("A=1\nif [ $X = 1 ]; then\nfor i in 1 2; do A=2; done\nfi\nrun.py $A"),
              ElementsAre("run.py", "$A"));
  EXPECT_THAT(words_of("for i in 1 2; do A=3\nrun.py $A"), ElementsAre("run.py", "$A"));
}

TEST(LaunchScript, HandsOnFlagsOfAScriptWithoutPython) {
  EXPECT_THAT(words_of("if [ $X == 1 ]; then exit 1; fi\nA=(--a 1)\nB=\" --b 2\"\nC=x\n. ./launch.sh"),
              ElementsAre("--a", "1", "--b", "2"));
  EXPECT_THAT(words_of("--a 1"), ElementsAre("--a", "1"));
}

TEST(LaunchScript, LeavesOutDocuments) {
  EXPECT_THAT(
      words_of(
          "cat <<EOF > a.json\n{ \"a\": 'unclosed }\nrun.py x\nEOF\ncat <<- 'E 2'\n\ty \"\n\tE 2\nrun.py 1"),
      ElementsAre("run.py", "1"));
  EXPECT_THAT(words_of("cmd=\"run.py 1 2\"\neval $cmd\necho \"$cmd\""), ElementsAre("run.py", "1", "2"));
  EXPECT_THAT(words_of("N=2\nsrun bash -c 'run.py \\\n $N' | tee x"),
              ElementsAre("srun", "bash", "-c", "run.py", "2"));
}

TEST(LaunchScript, LeavesOutPipesAndRedirections) {
  EXPECT_THAT(words_of("run.py --a 1 2>&1 | tee log; ls"), ElementsAre("run.py", "--a", "1"));
  EXPECT_THAT(words_of("run.py --a 1 > out 2>> err < in &> all &"), ElementsAre("run.py", "--a", "1"));
}

TEST(LaunchScript, RefusesWhatHasNoEnd) {
  for (const char* script : {"a 'b", "a \"b", "a ${b", "a $((1", "a $(b", "a `b"}) {
    const auto words = detail::launch_words(script);
    ASSERT_FALSE(words.ok()) << script;
    EXPECT_THAT(words.error().message(), HasSubstr("not closed")) << script;
  }
  std::string grows = "A=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) grows += "A=$A$A\n";
  EXPECT_FALSE(detail::launch_words(grows).ok());
  std::string nests;
  for (int i = 0; i < 1000; ++i) nests += "if a\n";
  EXPECT_FALSE(detail::launch_words(nests).ok());
}

struct Script {
  const char* file;
  std::int64_t n_gpus, tensor, pipeline, data, layers, global_batch;
};

class LaunchScriptFile : public ::testing::TestWithParam<Script> {};

TEST_P(LaunchScriptFile, DescribesItsJob) {
  const Script& expected = GetParam();
  const auto text = read_file(test::source_dir() / "tests/formats/scripts" / expected.file);
  ASSERT_TRUE(text.ok()) << text.error().message();
  Job asked;
  asked.command_line = *text;
  const auto job = resolve(asked);
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ(job->layout.world_size(), expected.n_gpus);
  EXPECT_EQ(job->layout.degrees.tensor, expected.tensor);
  EXPECT_EQ(job->layout.degrees.pipeline, expected.pipeline);
  EXPECT_EQ(job->layout.degrees.data, expected.data);
  EXPECT_EQ(job->model.n_layers, expected.layers);
  EXPECT_EQ(job->layout.batch.global_batch_sequences, expected.global_batch);
}

INSTANTIATE_TEST_SUITE_P(Written, LaunchScriptFile,
                         ::testing::Values(Script{"gpt3_175b_arrays.sh", 128, 8, 16, 1, 96, 1536},
                                           Script{"strings_and_tee.sh", 16, 2, 2, 4, 24, 64},
                                           Script{"slurm_options.sh", 512, 4, 4, 32, 80, 512},
                                           Script{"conditions.sh", 32, 4, 1, 8, 32, 32},
                                           Script{"bare_flags.sh", 1, 1, 1, 1, 12, 64},
                                           Script{"several_commands.sh", 8, 1, 1, 8, 32, 8},
                                           Script{"sizes_under_conditions.sh", 32, 4, 1, 8, 40, 32},
                                           Script{"heredoc_eval.sh", 16, 1, 1, 16, 24, 256},
                                           Script{"case_function.sh", 128, 8, 4, 4, 80, 128},
                                           Script{"llama405b.sh", 1024, 8, 16, 8, 126, 256},
                                           Script{"deepseek_v3_lists.sh", 1024, 1, 16, 64, 61, 8192},
                                           Script{"functions_and_schedule.sh", 16, 2, 2, 4, 24, 128},
                                           Script{"pairs_in_one_word.sh", 8, 1, 1, 8, 32, 128},
                                           Script{"shares_of_layers.sh", 8, 1, 1, 8, 48, 32},
                                           Script{"encoder_arrays.sh", 8, 8, 1, 1, 24, 32},
                                           Script{"experts_and_optional_logs.sh", 32, 1, 4, 8, 32, 256},
                                           Script{"options_without_a_launch.sh", 2, 1, 2, 1, 24, 32}));

TEST(LaunchScript, CountsTheProcessesOfSlurmAndMpi) {
  const auto gpus = [](const std::string& script) {
    const auto words = words_of(script);
    return launched_gpus(words).value_or(0);
  };
  const std::string header = "#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=8\n#SBATCH --gres=gpu:h100:8\n";
  EXPECT_EQ(gpus(header + "srun python pretrain_gpt.py --bf16"), 32);
  EXPECT_EQ(gpus(header + "srun -n 16 python pretrain_gpt.py --bf16"), 16);
  EXPECT_EQ(
      gpus(header +
           "srun torchrun --nproc_per_node $SLURM_GPUS_ON_NODE --nnodes ${SLURM_NNODES:-2} pretrain_gpt.py"),
      32);
  EXPECT_EQ(gpus("srun --nodes=2 --ntasks-per-node 8 bash -c \"python pretrain_gpt.py --bf16\""), 16);
  EXPECT_EQ(gpus("mpirun -np 64 -N 8 -x A=1 python3 pretrain_gpt.py -n 3"), 64);
  EXPECT_EQ(gpus("python pretrain_gpt.py --bf16"), 0);
}

TEST(LaunchScript, PutsInWhatFunctionsAndConditionsEcho) {
  const std::string function =
      "f() { if [ $1 = a ]; then echo --one 1; else echo \"--two 2\"; fi; echo -n --all; }\n";
  EXPECT_THAT(words_of(function + "A=($(f a))\nrun.py ${A[@]} $(f b)"),
              ElementsAre("run.py", "--one", "1", "--all", "--two", "2", "--all"));
  const std::string choice = "run.py $([ \"$X\" == 1 ] && echo \"--fp8-format hybrid\" || echo \"\") end";
  EXPECT_THAT(words_of("X=1\n" + choice), ElementsAre("run.py", "--fp8-format", "hybrid", "end"));
  EXPECT_THAT(words_of("X=2\n" + choice), ElementsAre("run.py", "end"));
  EXPECT_THAT(words_of(choice), ElementsAre("run.py", HasSubstr("$(["), "end"));
  EXPECT_THAT(words_of("X=1\n[ $X = 1 ] && A=--yes || A=--no\nrun.py $A"), ElementsAre("run.py", "--yes"));
  EXPECT_THAT(words_of("X=2\n[ $X = 1 ] && A=--yes || A=--no\nrun.py $A"), ElementsAre("run.py", "--no"));
  EXPECT_THAT(words_of("g() { cat x; }\nrun.py $(g)"), ElementsAre("run.py", "$(g)"));
  EXPECT_THAT(words_of("h() { A=2; echo $A; }\nA=1\nrun.py $(h) $A"), ElementsAre("run.py", "2", "1"));
}

TEST(LaunchScript, CutsAroundWhatItCannotKnow) {
  EXPECT_THAT(words_of("A=\"--one $(( X * (2 + 1) )) --two 2\"\nrun.py $A --three"),
              ElementsAre("run.py", "--one", "$(( X * (2 + 1) ))", "--two", "2", "--three"));
  EXPECT_THAT(words_of("A=$(cat <<END\n--one 1\n--two 2\nEND\n)\nrun.py ${A//$'\\n'/ } \"${A//$'\\n'/,}\""),
              ElementsAre("run.py", "--one", "1", "--two", "2", "--one 1,--two 2"));
}

TEST(LaunchScript, SumsUpBracketsInBrackets) {
  EXPECT_THAT(words_of("A=4\nrun.py $((64*(A*(A+2)))) $(( 96/(A*(A+2)) )) x"),
              ElementsAre("run.py", "1536", "4", "x"));
  EXPECT_THAT(words_of("A=4\nif (( A*(A+(2)) > 23 )); then B=1; fi\nrun.py $B"), ElementsAre("run.py", "1"));
}

TEST(LaunchScript, ReadsTheFilesThatItSources) {
  const auto folder = std::filesystem::path{::testing::TempDir()} / "sourced_script";
  std::filesystem::create_directories(folder / "sub");
  const auto write = [&](const char* name, std::string_view text) { std::ofstream{folder / name} << text; };
  write("sizes.sh", "L=40\nsource sub/more.sh\n");
  write("sub/more.sh", "H=5120\n. loop.sh\n");
  write("sub/loop.sh", "A=40\nsource loop.sh\n");
  write("run.sh",
        "DIR=\"$( cd \"$(dirname \"$0\")\" && pwd )\"\nsource \"${DIR}/sizes.sh\" || exit 1\n. "
        "./absent.sh\nrun.py $L $H $A");
  const auto text = read_launch_script(folder / "run.sh");
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_THAT(words_of(*text), ElementsAre("run.py", "40", "5120", "40"));
}

TEST(LaunchScriptFile, NamesWhatOnlyTheClusterKnows) {
  Job asked;
  asked.command_line = read_file(test::source_dir() / "tests/formats/scripts/llama405b.sh").value();
  asked.command_line->replace(asked.command_line->find("#SBATCH"), 1, "# ");
  const auto job = resolve(asked);
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message(), HasSubstr("--nnodes: found `$SLURM_NNODES`"));
  EXPECT_THAT(job.error().message(), HasSubstr("give the number of GPUs with --gpus"));
}

// Et*3|(tt|)*29,m|L: 3, 2 x 29, none, none.
TEST(LaunchScriptFile, LaysLayersOutAsTheScriptSays) {
  Job asked;
  asked.command_line = read_file(test::source_dir() / "tests/formats/scripts/deepseek_v3_lists.sh").value();
  const auto job = resolve(asked);
  ASSERT_TRUE(job.ok()) << job.error().message();
  std::vector<std::int64_t> stages(32, 2);
  stages.front() = 3;
  stages[30] = stages[31] = 0;
  EXPECT_EQ(job->layout.pipeline.layers_per_stage, stages);
  EXPECT_EQ(job->layout.degrees.virtual_stages, 2);
}

}  // namespace
}  // namespace stepcast::launch_script_test
