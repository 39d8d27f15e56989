/* The types of Q, K and V where a scenario leaves them open. */
#ifndef RUN_ADOPT_TYPES_H
#define RUN_ADOPT_TYPES_H

#include "engine/build/runner.h"
#include "engine/scenario/scenario.h"

/* Their defaults where the kernel takes them, else the first type that it takes. */
void adopt_types(const struct child_hello *hello, struct scenario *scenario);

#endif
