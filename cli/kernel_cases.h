/* The cases of `check KERNEL.cu`: kernel_cases.def, made out for one kernel by asking its registration and its plan. */
#ifndef CLI_KERNEL_CASES_H
#define CLI_KERNEL_CASES_H

#include "engine/run/record.h"

#include <stdbool.h>

enum kernel_answer {
    CASE_TAKEN,
    CASE_DECLINED, /* in the words of why */
    CASE_BROKEN    /* so too, although the registration says that the kernel takes it; or the plan did not answer */
};

#define CASE_WHY_BYTES 512

struct kernel_case {
    char shape[64];     /* of --shape: "1,4,67,35,64" */
    char settings[192]; /* of --set, apart by blanks: "shape.kv_heads=2 shape.causal=top-left" */
    char name[192];     /* both for people: "(1,4/2,67,35,64) causal=top-left" */
    int32_t types[3];   /* of Q, K and V */
    bool last;          /* one of those that come last and are not needed for a green */
    bool normal;        /* its inputs are normal, as an error_limit of the plan wants them */
    enum kernel_answer answer;
    char why[CASE_WHY_BYTES];
};

struct kernel_cases {
    struct kernel_case *at; /* owned, [n] */
    size_t n;
    char takes[256];         /* "f16, bf16; BHLD, BLHD; head_dim 64, 128"; "": nothing that was asked for */
    struct asc_problem base; /* small, and taken; batch 0: nothing was */
    char base_words[96];     /* settings that choose its types and layout */
};

/* Builds the scenario's kernel, with these probes, and asks: r->child stays warm. The scenario says all that no case
   does. ERR_CANCELLED; ERR_BUILD and others of record_child(). */
int kernel_cases_list(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                      enum probes probes, const struct runner_progress *progress, struct kernel_cases *out,
                      struct err *err);
void kernel_cases_free(struct kernel_cases *cases);

/* *out: the scenario of this case, made from one that says what no case does. scenario_free(). */
int kernel_case_make(const struct kernel_case *c, const struct scenario *from, struct scenario *out, struct err *err);

/* ERR_USAGE where a setting, KEY=VALUE, would be overridden by a case or would take from what cases promise. */
int kernel_cases_allow(const char *setting, struct err *err);

#endif
