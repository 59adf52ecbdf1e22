// Properties of the software of measured runs beyond the columns of llm_runs.csv: optional columns of the row or of a table of
// recipes next to it, and phrases of its note.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"

namespace stepcast {

// Applies the optional columns of a row. docs/iterations.md lists them. Empty cells set nothing.
[[nodiscard]] Status apply_recipe_columns(const CsvRows& rows, LlmRun& run);

// A phrase of a note, up to the next semicolon, that begins with these words.
struct NotePhrase {
  std::string_view words;
  void (*apply)(LlmRun& run, std::string_view rest);  // `rest`: the text after the words
};
[[nodiscard]] std::span<const NotePhrase> note_phrases();
void apply_note_phrases(std::string_view note, LlmRun& run);

}  // namespace stepcast
