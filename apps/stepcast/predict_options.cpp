#include "predict_options.h"

#include <fmt/format.h>

namespace stepcast::cli {
namespace {

constexpr char kFooter[] =
    "Memory, as flags of Megatron-LM. All of its flags that change a step are\n"
    "understood (`stepcast reference megatron-flags`):\n"
    "  --use-distributed-optimizer      ZeRO-1: sharded optimizer states\n"
    "  --zero-stage 0|1|2|3             ZeRO: sharded gradients and weights\n"
    "  --use-megatron-fsdp              FSDP, as --framework fsdp\n"
    "  --recompute-granularity full|selective\n"
    "                                   recompute layers, or the core of attention\n"
    "  --sequence-parallel              with --tp: norms are split as well\n"
    "  --optimizer-cpu-offload          optimizer states in host memory\n"
    "Without a flag of the layout, `predict` takes the layout that `stepcast plan`\n"
    "chooses, and names it. Numbers: 8k is 8192, 15T is 15e12, 1e3 is 1000.\n"
    "Precedence, lowest first: the model and our defaults, the defaults of\n"
    "--framework, --command-line, --torchtitan or --deepspeed, flags.\n"
    "Exit code 3: --require-fit, and the memory does not suffice.";

constexpr VerbHeading kPredictHeadings[] = {
    {OptionHeading::subject, "Job and machine"},
    {OptionHeading::layout, "Layout and batch"},
    {OptionHeading::software, "Descriptions of other software"},
    {OptionHeading::recommendation, "Recommendation models"},
    {OptionHeading::rl, kRlHeading},
    {OptionHeading::recorded, "Recorded traces on another machine (--trace)"},
    {OptionHeading::result, "Result"},
    {OptionHeading::training, "A whole training"}};

std::vector<FlagTarget> targets_of(PredictOptions& o) {
  return {
#define STEPCAST_OPTION(flags, heading, questions, goes_to, ...) FlagTarget{goes_to},
#define PREDICT(member) &o.member
#include "stepcast/sweep/option_table.def"  // NOLINT(bugprone-suspicious-include): a list that several read
  };
}

// The error for a flag without meaning for `question`.
Error misplaced(const GivenFlag& flag, Question question, const Subject& subject) {
  const QuestionSet of = flag.of & kPredictQuestions;
  if (question == Question::traces) {
    return Error{fmt::format("{} describes a step; with --trace the step is the recorded one", flag.name)}
        .advice("leave one of the two out");
  }
  const Subject* owner = owner_of(of & ~bit(Question::traces), subject);
  if (question == subject.question && question != Question::described && of != bit(Question::traces))
    return Error{fmt::format("{} is not supported for {}", flag.name, subject.called)}.advice(
        owner == nullptr ? "" : fmt::format("it belongs to {}", owner->plural));
  if ((of & bit(Question::traces)) != 0 && (of & (bit(Question::described) | bit(Question::log))) == 0)
    return Error{fmt::format("{} belongs to --trace", flag.name)}.advice(
        flag.name == "--batch" ? "sequences per step of a description are --gbs" : "name the traces, too");
  if (owner != nullptr && !owner->own_flag.empty())
    return Error{fmt::format("{} belongs to {}", flag.name, owner->own_flag)}.advice(
        "name an algorithm, too");
  if (owner != nullptr) return Error{fmt::format("{} belongs to {}", flag.name, owner->plural)};
  return Error{fmt::format("{} is not for --from-log", flag.name)}.advice("predict the run without its log");
}

}  // namespace

void declare_predict_options(CLI::App& app, PredictOptions& options) {
  app.allow_extras();
  app.footer(kFooter);
  options.flags.add_table(kPredictHeadings, kPredictQuestions, targets_of(options));
  read_format(app, options.shared.json);
}

const Subject& subject_of(const PredictOptions& options) {
  const DescribedStep& step = options.step;
  return stepcast::subject_of(job_as_named(step.request.job.model, step.config, step.command_line),
                              options.rl);
}

Result<Question> question_of(const PredictOptions& options, const Subject& subject) {
  const bool is_described = subject.question == Question::described;
  const Question question = !options.traces.request.places.empty()     ? Question::traces
                            : is_described && !options.log.log.empty() ? Question::log
                                                                       : subject.question;
  for (const GivenFlag& flag : options.flags.given())
    if ((flag.of & bit(question)) == 0) return misplaced(flag, question, subject);
  const std::vector<std::string> remaining = options.flags.remaining();
  if (!remaining.empty() && question == Question::traces)
    return Error{fmt::format("{} is not known together with --trace", remaining.front())};
  if (!remaining.empty() && !is_laid_out(question))
    return Error{fmt::format("{} is not known", remaining.front())};
  return question;
}

}  // namespace stepcast::cli
