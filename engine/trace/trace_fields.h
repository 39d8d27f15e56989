/* What of a trace's structs its metadata holds: tables that trace_metadata_write() and trace_metadata_read() share. */
#ifndef TRACE_TRACE_FIELDS_H
#define TRACE_TRACE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

/* Fields of a struct that are stored under their own names: 32-bit integers, spelled out where they are choices. */
struct trace_field {
    const char *key;
    size_t offset;
    const char *const *names; /* NULL: a number */
};

/* Character arrays in a struct. */
struct trace_text {
    const char *key;
    size_t offset, bytes;
    bool may_lack; /* traces of an earlier version have none; it is empty then */
};

/* Each ends with a key of NULL. */
extern const struct trace_field trace_problem_fields[], trace_plan_fields[], trace_plan_deal[], trace_run_fields[],
    trace_run_memory[], trace_event_fields[], trace_site_fields[];
extern const struct trace_field trace_event_place[]; /* written where they are known */
extern const struct trace_text trace_problem_texts[], trace_run_texts[], trace_event_texts[], trace_site_texts[],
    trace_capture_texts[];
extern const struct trace_text trace_event_other[]; /* written where it is not empty */
extern const struct trace_text trace_event_recorder[];
extern const struct trace_field trace_frame_fields[];
extern const struct trace_text trace_frame_texts[];

#endif
