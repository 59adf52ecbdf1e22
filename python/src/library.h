// The functions that the Python package calls through ctypes (stepcast/_stepcast.py): the complete interface
// of libstepcast.so. It is plain C, so that one file works with every Python.
//
// Texts are returned as a pointer and a size, and are valid until the next call of the same thread. Texts are
// passed with their size; lists of texts have a zero byte after each. Objects from functions with `new` in
// their name, or with such a comment, belong to the caller, who frees them.
#pragma once

#include <cstddef>
#include <cstdint>

#define STEPCAST_EXPORT __attribute__((visibility("default")))

extern "C" {

// The main() of `bin/stepcast`.
STEPCAST_EXPORT int stepcast_main(int argc, char** argv);
STEPCAST_EXPORT const char* stepcast_version_text();
// The error of the last failed call on this thread.
STEPCAST_EXPORT const char* stepcast_problem(size_t* size);

// Runs a verb on a separate thread. wait returns 0 while it runs, 1 for a progress text, 2 at the end.
STEPCAST_EXPORT void* stepcast_run_new(const char* words, size_t size, int tables, int listens,
                                       const char* folders, size_t folders_size);
STEPCAST_EXPORT int stepcast_run_wait(void* run, int milliseconds);
// The last progress text. `share`: the finished part of it, 0 to 1; not a number if it is unknown.
STEPCAST_EXPORT const char* stepcast_run_said(void* run, double* share, size_t* size);
STEPCAST_EXPORT int stepcast_run_code(void* run);
STEPCAST_EXPORT const char* stepcast_run_output(void* run, size_t* size);
STEPCAST_EXPORT const char* stepcast_run_error(void* run, size_t* size);
// The name of a table by number, or null after the last one. The table itself belongs to the caller.
STEPCAST_EXPORT const char* stepcast_run_table_name(void* run, size_t number, size_t* size);
STEPCAST_EXPORT void* stepcast_run_table(void* run, size_t number);
// Stops the verb if it still runs, and waits for at most one second.
STEPCAST_EXPORT void stepcast_run_free(void* run);

// A forecast of simple keywords, each with a name, a kind (i, f, s, l, t: integer, number, text, list
// element, true) and a value. Null if the command line must read them. numbers: step time, p10, p90,
// microseconds in the session. The other parts are computed by the first forecast_text().
STEPCAST_EXPORT void* stepcast_predict(const char* keywords, size_t size, double* numbers);
// Null if `json` is not a forecast.
STEPCAST_EXPORT void* stepcast_forecast_new(const char* json, size_t size, double* numbers);
// Kinds: 'j' the document, 't' the printed text, 'h' a page without its script. Null after an error (stepcast_problem()).
STEPCAST_EXPORT const char* stepcast_forecast_text(void* forecast, int kind, size_t* size);
STEPCAST_EXPORT void stepcast_forecast_free(void* forecast);

// The points of a sweep, one JSON line each; null for an invalid sweep.
STEPCAST_EXPORT const char* stepcast_sweep_points(const char* text, const char* name, const char* folder,
                                                  size_t* size);
// Rows of points, in a session with cached prices. Null with `kind` 2 for an invalid point, 1 for a failure
// of the machine.
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
// Null after the last column.
STEPCAST_EXPORT const char* stepcast_table_column_name(void* table, size_t column, size_t* size);
// Kinds: 0 integers, 1 numbers, 2 truth values (one byte each), with a byte per row that says whether there
// is a value; 3 texts: the characters of all, and the end of each.
STEPCAST_EXPORT int stepcast_table_column(void* table, size_t column, const void** values,
                                          const uint8_t** valid);
STEPCAST_EXPORT const char* stepcast_table_texts(void* table, size_t column, const int64_t** ends,
                                                 size_t* size);
// Structures of the Arrow C data interface for capsules with these destructors. They need Python's PyCapsule_GetPointer.
STEPCAST_EXPORT void* stepcast_table_schema_new(void* table);
STEPCAST_EXPORT void* stepcast_table_stream_new(void* table);
STEPCAST_EXPORT void stepcast_capsules(void* (*get_pointer)(void*, const char*));
STEPCAST_EXPORT void stepcast_free_schema_capsule(void* capsule);
STEPCAST_EXPORT void stepcast_free_stream_capsule(void* capsule);
}
