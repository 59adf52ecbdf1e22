#include "stepcast/report/answers.h"

#include "stepcast/report/catalog_document.h"
#include "stepcast/report/comparison_document.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/log_document.h"
#include "stepcast/report/plan_answer.h"
#include "stepcast/report/replay_document.h"
#include "stepcast/report/rl_document.h"
#include "stepcast/report/scaling_series.h"
#include "stepcast/report/sharding_document.h"
#include "stepcast/report/sweep_document.h"

// The table is the only place that knows all answers. `./dev docs` writes docs/schemas/ from it, and tests
// compare the files with what the functions return.
namespace stepcast {
namespace {

// A new answer with JSON output adds a row here: file name, command, function that writes the schema.
constexpr AnswerSchema kSchemas[] = {
    {"batch_series.json", "predict --trace DIR --batch A,B,...", batch_series_schema},
    {"comparison.json", "compare", comparison_schema},
    {"forecast.json", "predict", forecast_schema},
    {"inspect.json", "inspect", inspect_schema},
    {"job_plan.json", "plan --jobs FILE", jobs_schema},
    {"log_forecast.json", "predict --from-log LOG", predicted_log_schema},
    {"models.json", "models", models_schema},
    {"plan.json", "plan", plan_schema},
    {"platforms.json", "platforms", platforms_schema},
    {"replay.json", "replay", replay_schema},
    {"rl_forecast.json", "predict --rl ALGORITHM", rl_schema},
    {"scaling_series.json", "predict of several GPUs or batches", scaling_series_schema},
    {"sensitivity.json", "predict --sensitivity", sensitivity_schema},
    {"shard.json", "shard", sharding_schema},
    {"sweep_row.json", "a row of sweep", sweep_row_schema},
    {"sweep_status.json", "sweep --status", sweep_status_schema},
    {"training_plan.json", "plan --train-tokens", training_schema},
};

}  // namespace

std::span<const AnswerSchema> answer_schemas() { return kSchemas; }

}  // namespace stepcast
