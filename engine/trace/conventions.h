/* What is known of each field of struct asc_conventions (conventions.def), and access to it by number: readers, writers
   and checks are loops. */
#ifndef TRACE_CONVENTIONS_H
#define TRACE_CONVENTIONS_H

#include "engine/base/err.h"
#include "probes/abi.h"
#include <stdbool.h>

enum convention_kind { CONVENTION_CHOICE, CONVENTION_COUNT, CONVENTION_REAL };

struct convention {
    const char *name;
    enum convention_kind kind;
    double low, high;
    const char *choices;                /* "raw|scaled|log2", "" where it is a number */
    const char *names;                  /* of these in C: "(ASC_UNIT_RAW, ASC_UNIT_SCALED, ASC_UNIT_LOG2)" */
    const char *by_default, *otherwise; /* Markdown */
};

enum {
#define CONVENTION(name, type, kind, low, high, choices, names, by_default, otherwise) CONVENTION_OF_##name,
#include "probes/conventions.def"
#undef CONVENTION
    CONVENTIONS
};

extern const struct convention conventions[CONVENTIONS];

double convention_get(const struct asc_conventions *c, int i);
/* Whole numbers are cut to the nearest one that an int32_t holds; NaN becomes the lowest. */
void convention_set(struct asc_conventions *c, int i, double value);

/* The name of choice `value` into text, "" where there is none; and the number of a name, or -1. */
void convention_choice(int i, int value, char *text, size_t n_bytes);
int convention_from_choice(int i, const char *name);
/* The name of a choice in C, "" where there is none. */
void convention_c_name(int i, int value, char *text, size_t n_bytes);

/* What a kernel has to say of a field: "kernel.m_unit = ASC_UNIT_LOG2;". Of the plan, which is no part of
   the registration: "plan->kv_splits = 4;". */
struct convention_line {
    int convention;   /* -1: `plan` */
    const char *plan; /* a field of struct asc_plan */
    char value[32];   /* in C */
};
enum { CONVENTION_LINE_BYTES = 96, CONVENTION_LINES = 2 };
void convention_line_choice(struct convention_line *line, int convention, int value);
void convention_line_number(struct convention_line *line, int convention, const char *number);
void convention_line_words(const struct convention_line *line, char out[CONVENTION_LINE_BYTES]);

bool conventions_same(const struct asc_conventions *a, const struct asc_conventions *b);

/* The local formula of a channel under these conventions; t is the maximum of this tile's scores. */
const char *conventions_formula(const struct asc_conventions *c, enum asc_channel ch);

/* The type in which the kernel multiplies q, k or v, and records it unless its registration says otherwise: its
   tensor's; of codes that become values before, f16; the codes' where the launch quantizes and multiplies codes. */
int conventions_operand(const struct asc_conventions *c, const struct asc_problem *p, enum asc_channel ch);

/* The type that a channel is recorded in unless that is declared; o: of the output. */
int conventions_channel(const struct asc_conventions *c, const struct asc_problem *p, int o, enum asc_channel ch);

/* Puts what these inputs make of ASC_P_INPUT and ASC_ACC_MMA in their place: a trace has neither. */
void conventions_resolve(struct asc_conventions *c, const struct asc_problem *p);

/* Refuses a value outside its choices or range: ERR_INPUT names the convention. */
int conventions_check(const struct asc_conventions *c, const char *where, struct err *err);

#endif
