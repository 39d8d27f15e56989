#ifndef TEST_OPEN_SCENARIO_H
#define TEST_OPEN_SCENARIO_H

#include "engine/session/session.h"

/* A session on a scenario, its path from the root in the words of printf(); not started yet. */
struct session *open_scenario(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
