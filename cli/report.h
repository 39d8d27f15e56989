/* What a run showed, in a few lines of text or as JSON. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "engine/session/session.h"
#include <jansson.h>
#include <stdio.h>

/* 1 if the run shows what its scenario expects; why: one line. A saved trace expects what a scenario does that says
   nothing: a clean run. */
int report_meets(const struct session *s, char *why, size_t why_bytes);

/* "S is the first bad stage, from batch 0, head 0, ... on", the finding of each culprit with its probe line, events. */
void report_write_findings(const struct session *s, FILE *out);

/* Title, problem, a mark per stage, then the findings. */
void report_write(const struct session *s, FILE *out);

json_t *report_json(const struct session *s, const char *path); /* owned by the caller; NULL without memory */

#endif
