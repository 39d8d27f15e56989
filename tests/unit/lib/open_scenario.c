#include "tests/unit/lib/open_scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct session *open_scenario(const char *format, ...)
{
    char name[300], path[900];
    struct runner_paths paths;
    struct session *s;
    struct err err = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    snprintf(path, sizeof path, "%s/%s", paths.root, name);
    if (session_open(path, &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    return s;
}
