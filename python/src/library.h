// What the Python package calls through ctypes (stepcast/_stepcast.py): the whole of libstepcast.so. Plain C, so that one file
// serves every Python, whatever its version and kind.
//
// Texts come back as a pointer and a size, and belong to the thread that asked until it asks for the next one. Texts go in with
// their size; lists of texts end each with a zero byte. What begins with `new` or says so belongs to the caller, who frees it.
#pragma once

#include <cstddef>
#include <cstdint>

#define STEPCAST_EXPORT __attribute__((visibility("default")))

extern "C" {

// The program: what main() of `bin/stepcast` does.
STEPCAST_EXPORT int stepcast_main(int argc, char** argv);
STEPCAST_EXPORT const char* stepcast_version_text();
// Why the last call of this thread that failed did.
STEPCAST_EXPORT const char* stepcast_problem(size_t* size);

// A verb on a thread of its own. wait: 0 goes on, 1 said something, 2 is done.
STEPCAST_EXPORT void* stepcast_run_new(const char* words, size_t size, int tables, int listens,
                                       const char* folders, size_t folders_size);
STEPCAST_EXPORT int stepcast_run_wait(void* run, int milliseconds);
STEPCAST_EXPORT const char* stepcast_run_said(void* run, size_t* size);
STEPCAST_EXPORT int stepcast_run_code(void* run);
STEPCAST_EXPORT const char* stepcast_run_output(void* run, size_t* size);
STEPCAST_EXPORT const char* stepcast_run_error(void* run, size_t* size);
// Of the table of that number its name, or null behind the last; the table itself belongs to the caller.
STEPCAST_EXPORT const char* stepcast_run_table_name(void* run, size_t number, size_t* size);
STEPCAST_EXPORT void* stepcast_run_table(void* run, size_t number);
// Asks what has not ended to end, and waits for it a second at most.
STEPCAST_EXPORT void stepcast_run_free(void* run);

// A forecast of plain keywords, each a name, a kind (i, f, s, l, t: whole number, number, text, one of a list, true) and a value;
// null where the command line has to read them. numbers: step time, p10, p90, microseconds of the session. Its parts are
// forecast when forecast_text() is first asked for them.
STEPCAST_EXPORT void* stepcast_predict(const char* keywords, size_t size, double* numbers);
// Null for what is no forecast.
STEPCAST_EXPORT void* stepcast_forecast_new(const char* json, size_t size, double* numbers);
// 'j', 't', 'h': its document, what the program prints, a page without its script. Null for an error (stepcast_problem()).
STEPCAST_EXPORT const char* stepcast_forecast_text(void* forecast, int kind, size_t* size);
STEPCAST_EXPORT void stepcast_forecast_free(void* forecast);

// The points of a sweep, a line of JSON each; null for what is none.
STEPCAST_EXPORT const char* stepcast_sweep_points(const char* text, const char* name, const char* folder,
                                                  size_t* size);
// The rows of a point, in a session that keeps prices; null with `kind` 2 for a wrong point, 1 where the machine failed.
STEPCAST_EXPORT void* stepcast_session_new();
STEPCAST_EXPORT void stepcast_session_free(void* session);
STEPCAST_EXPORT const char* stepcast_sweep_rows(void* session, const char* point, const char* folder,
                                                void* stop, int* kind, size_t* size);
STEPCAST_EXPORT void* stepcast_stop_new();
STEPCAST_EXPORT void stepcast_stop_request(void* stop);
STEPCAST_EXPORT void stepcast_stop_free(void* stop);

STEPCAST_EXPORT void* stepcast_table_new(const char* csv, size_t size);
STEPCAST_EXPORT void stepcast_table_free(void* table);
STEPCAST_EXPORT size_t stepcast_table_rows(void* table);
STEPCAST_EXPORT const char* stepcast_table_csv(void* table, size_t* size);
// Null behind the last column.
STEPCAST_EXPORT const char* stepcast_table_column_name(void* table, size_t column, size_t* size);
// 0 whole numbers, 1 numbers, 2 truth values (a byte each): the values, and a byte for each that says whether there is one.
// 3 texts: their characters as the text that is returned, and behind which byte each ends.
STEPCAST_EXPORT int stepcast_table_column(void* table, size_t column, const void** values,
                                          const uint8_t** valid);
STEPCAST_EXPORT const char* stepcast_table_texts(void* table, size_t column, const int64_t** ends,
                                                 size_t* size);
// Structures of the Arrow C data interface, for capsules whose destructors are these; they need Python's PyCapsule_GetPointer.
STEPCAST_EXPORT void* stepcast_table_schema_new(void* table);
STEPCAST_EXPORT void* stepcast_table_stream_new(void* table);
STEPCAST_EXPORT void stepcast_capsules(void* (*get_pointer)(void*, const char*));
STEPCAST_EXPORT void stepcast_free_schema_capsule(void* capsule);
STEPCAST_EXPORT void stepcast_free_stream_capsule(void* capsule);
}
