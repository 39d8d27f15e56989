/* The translation units of this process that have probes: struct asc_noted_module (probes/abi.h). */
#ifndef CAPTURE_MODULES_H
#define CAPTURE_MODULES_H

#include "probes/abi.h"

enum { MODULES_MAX = 1024 };

struct modules {
    struct asc_noted_module *of[MODULES_MAX];
    int n;
};

/* Adds those that are loaded now and not in it. */
void modules_find(struct modules *modules);

#endif
