#include "engine/trace/trace_fields.h"

#include "engine/trace/trace_file.h"

#define FIELD(type, name, names)                                                                                       \
    {                                                                                                                  \
#name, offsetof(struct type, name), names                                                                      \
    }
const struct trace_field trace_problem_fields[] = {
    FIELD(asc_problem, batch, NULL),
    FIELD(asc_problem, heads, NULL),
    FIELD(asc_problem, kv_heads, NULL),
    FIELD(asc_problem, q_len, NULL),
    FIELD(asc_problem, kv_len, NULL),
    FIELD(asc_problem, head_dim, NULL),
    FIELD(asc_problem, causal, problem_causal_names),
    FIELD(asc_problem, window_left, NULL),
    FIELD(asc_problem, window_right, NULL),
    FIELD(asc_problem, has_sink, NULL),
    FIELD(asc_problem, has_alibi, NULL),
    FIELD(asc_problem, bias_kind, problem_bias_names),
    FIELD(asc_problem, layout, problem_layout_names),
    {0},
};
const struct trace_field trace_plan_fields[] = {
    FIELD(asc_plan, br, NULL),
    FIELD(asc_plan, bc, NULL),
    FIELD(asc_plan, threads, NULL),
    FIELD(asc_plan, kv_splits, NULL),
    {0},
};
const struct trace_field trace_plan_deal[] = {FIELD(asc_plan, kv_deal, plan_deal_names), {0}};
const struct trace_field trace_run_fields[] = {FIELD(trace_info, workers, NULL),
                                               FIELD(trace_info, status, run_status_names),
                                               FIELD(trace_info, backend, backend_names),
                                               {0}};
const struct trace_field trace_run_memory[] = {FIELD(trace_info, memory, memory_names), {0}};
const struct trace_field trace_event_fields[] = {FIELD(trace_event, line, NULL), {0}};
const struct trace_field trace_site_fields[] = {FIELD(trace_site, line, NULL), {0}};

#define SINCE(type, name, lacks)                                                                                       \
    {                                                                                                                  \
#name, offsetof(struct type, name), sizeof((struct type *)NULL)->name, lacks                                   \
    }
#define TEXT(type, name) SINCE(type, name, 0)
const struct trace_text trace_problem_texts[] = {
    SINCE(asc_problem, mask_formula, 1), SINCE(asc_problem, score_mod, 1), {0}};
const struct trace_text trace_run_texts[] = {
    TEXT(trace_info, kernel),
    TEXT(trace_info, source_name),
    TEXT(trace_info, scenario_name),
    TEXT(trace_info, patch_name),
    SINCE(trace_info, define, 1),
    SINCE(trace_info, device, 1),
    SINCE(trace_info, tensor_core, 1),
    SINCE(trace_info, cores, 1),
    SINCE(trace_info, memory_why, 1),
    TEXT(trace_info, status_text),
    {0},
};
const struct trace_text trace_event_texts[] = {TEXT(trace_event, text), TEXT(trace_event, file), {0}};
const struct trace_field trace_event_place[] = {
    FIELD(trace_event, batch, NULL),      FIELD(trace_event, head, NULL),
    FIELD(trace_event, q_tile, NULL),     FIELD(trace_event, kv_tile, NULL),
    FIELD(trace_event, other_line, NULL), FIELD(trace_event, recorder_line, NULL),
    FIELD(trace_event, times, NULL),      {0},
};
const struct trace_text trace_event_other[] = {SINCE(trace_event, other_file, 1), {0}};
const struct trace_text trace_event_recorder[] = {SINCE(trace_event, recorder_file, 1), {0}};
const struct trace_text trace_site_texts[] = {TEXT(trace_site, file), {0}};
const struct trace_text trace_capture_texts[] = {
    TEXT(trace_capture, off_places), SINCE(trace_capture, unusual_places, 1), SINCE(trace_capture, judge, 1), {0}};
const struct trace_field trace_frame_fields[] = {FIELD(trace_frame, line, NULL), {0}};
const struct trace_text trace_frame_texts[] = {TEXT(trace_frame, function), TEXT(trace_frame, file), {0}};
