/* What a run showed: a few lines of text, JSON, JUnit XML. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "engine/base/text.h"
#include "engine/run/output_error.h"
#include "engine/session/session.h"
#include "engine/study/probe_effect.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>

/* 1 if the run shows what its scenario expects; why: one line. A saved trace expects what a scenario does that says
   nothing: a clean run. */
int report_meets(const struct session *s, char *why, size_t why_bytes);
/* The same as `check` asks it: what a clean run's kernel leaves out (facts.h) has to be declared too. */
int report_checks(const struct session *s, char *why, size_t why_bytes);
/* The exit status of a session that has run: 0 as expected, 1 not; -1: it could not be run, or not to its end, as
   s->job.err says, and its scenario does not expect that. */
int report_status(const struct session *s, char *why, size_t why_bytes);

/* Kinds of events, or "none". */
void report_events_words(event_set set, bool none, char out[EVENT_SET_BYTES]);
/* What was expected and what was found, in the words of a scenario: "fail: s b0 h0 q0 k0; culprits s; scaled-twice". */
#define REPORT_WORDS_BYTES 256
void report_expected(const struct session *s, char out[REPORT_WORDS_BYTES]);
void report_found(const struct session *s, char out[REPORT_WORDS_BYTES]);

/* "S is the first bad stage, from batch 0, head 0, ... on", the finding of each culprit with its probe line, events. */
void report_write_findings(const struct session *s, FILE *out);

/* "bias of S found ...", a line for each stage; nothing where bias was not looked for. */
void report_write_bias(const struct session *s, FILE *out);

/* "expectation: ..." where the scenario states one, or where nothing could be judged; nothing otherwise. */
void report_write_expectation(const struct session *s, FILE *out);

/* "O against unquantized inputs: max ..., rms ..."; nothing where nothing is quantized. */
void report_write_unquantized(const struct unquantized_error *error, FILE *out);
/* {"largest_error", "rms_error"}; NULL where nothing is quantized. As report_json(). */
json_t *report_json_unquantized(const struct unquantized_error *error);

/* How values fare as codes, tensor by tensor; where the error of O comes from; what other formats would cost. NULL:
   there is nothing to say. As report_json(). */
json_t *report_json_formats(const struct trace *t);
json_t *report_json_compare(const struct trace *t);
json_t *report_json_whatif(const struct trace *t);

/* Title, problem, a mark per stage, then the findings. */
void report_write(const struct session *s, FILE *out);

/* docs/check-json.md describes it, docs/check.schema.json defines it. s may be NULL: it could not be opened, err says
   why; err may be NULL or hold ERR_NONE. Owned by the caller; NULL without memory. */
json_t *report_json(const struct session *s, const char *path, const struct err *err);

json_t *report_json_text(const char *text); /* bytes that are no UTF-8 become U+FFFD */
/* null for what JSON has no number for: NaN, infinity */
static inline json_t *report_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}
json_t *report_json_error(const struct err *err);
/* Sets batch, head, q_tile (at) and kv_tile; what is negative is left out. */
json_t *report_json_place(const struct session *s, int culprit, struct place place); /* null of none */
json_t *report_json_finding(const struct session *s, const struct finding *f);
json_t *report_json_value(double x); /* JSON has no infinity and no NaN: these come as words */
void report_json_put_at(json_t *json, const int32_t *at, int kv);

/* Writes JSON as one text with a newline; -1 with *err where it cannot be written. json may be NULL (no memory). */
int report_dump(const json_t *json, FILE *out, struct err *err);

/* One scenario that `check` ran, or one case of a kernel. */
struct check_result {
    const char *kernel;  /* borrowed; of a case, NULL of a scenario */
    const char *path;    /* borrowed; of a case its name */
    const char *skipped; /* borrowed; why a case was not run, NULL: it was */
    int status;          /* 0 as expected, 1 not, 2 and 3: it could not be run (exit statuses) */
    char verdict[16];
    char expected[REPORT_WORDS_BYTES], found[REPORT_WORDS_BYTES];
    char why[512];
    struct expect_parts parts;
    char short_expected[192], short_found[256]; /* of the table */
    struct err err;                             /* where status is 2 or 3 */
    char *details;                              /* owned, or NULL: what report_write_findings() says */
    char *bias;                                 /* owned; what report_write_bias() says; NULL: not asked for */
    double seconds;                             /* build, run and verdicts */
};

const char *expect_part_word(enum expect_part part); /* "right", "wrong", "not stated" */

/* JUnit XML. junit_check() says before the first scenario that path cannot be written, junit_write() replaces it as a
   whole or leaves it alone. */
int junit_check(const char *path, struct err *err);
int junit_write(const char *path, const char *suite, const struct check_result *results, size_t n, struct err *err);

/* The isolated run that is shown beside the ordinary one: a line per stage, then what follows from it. */
void report_write_isolation(const struct session *s, FILE *out);
json_t *report_json_isolation(const struct session *s); /* as report_json() */

/* `run --times`: a line for each step that the run came to. */
void report_write_times(const struct runner_spent *spent, FILE *out);
json_t *report_json_times(const struct runner_spent *spent); /* as report_json() */

/* What became of `run --probes compare`. */
void report_write_probes(const struct probe_effect *effect, FILE *out);
json_t *report_json_probes(const struct probe_effect *effect); /* as report_json() */

#endif
