#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/build/build.h"
#include "engine/build/link_stub.h"
#include "tests/unit/lib/judge_program.h"
#include <stdio.h>
#include <stdlib.h>

void judge_program_must(const char *command)
{
    if (system(command) != 0) /* NOLINT(cert-env33-c): fixed words */
        fail_msg("%s", command);
}

void judge_program_build(const char *program, const char *dir)
{
    char command[4096], object[256], stub[256];
    struct err err;
    snprintf(command, sizeof command, "mkdir -p %s", dir);
    judge_program_must(command);
    if (!program)
        return;
    snprintf(object, sizeof object, "%s/judge.o", dir);
    snprintf(stub, sizeof stub, "%s/judge.s", dir);
    size_t used = (size_t)snprintf(command, sizeof command, "g++");
    for (const char *const *flag = simt_compile_flags; *flag; flag++)
        used += (size_t)snprintf(command + used, sizeof command - used, " %s", *flag);
    snprintf(command + used, sizeof command - used,
             " %s -Wall -Wextra -Werror -I. -Iengine/simt/include -include engine/simt/include/simt_device.h -c "
             "engine/judge/judge_main.cu -o %s",
             simt_march_flag() ? simt_march_flag() : "", object);
    judge_program_must(command);
    if (link_stub_write(object, stub, &err))
        fail_msg("%s", err.message);
    used = (size_t)snprintf(command, sizeof command, "g++ -o %s %s %s build/libdebuggee_cpu.a -ljansson", program,
                            object, stub);
    for (const char *const *flag = simt_link_flags; *flag; flag++)
        used += (size_t)snprintf(command + used, sizeof command - used, " %s", *flag);
    judge_program_must(command);
}

void judge_program_other_tiles(const char *dir, int bc)
{
    char command[400];
    snprintf(command, sizeof command,
             "cp tests/terms/sink_end.cu %s && sed 's/BC = 32/BC = %d/' tests/terms/attention.h >%s/attention.h && "
             "! cmp -s tests/terms/attention.h %s/attention.h",
             dir, bc, dir, dir);
    judge_program_must(command);
}

struct session *judge_program_run(const char *kernel, const char *const *keys)
{
    struct session *s;
    struct err err = {0};
    if (session_open(kernel, &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    if (scenario_set(&s->subject.scenario, "capture.judge", "cpu", &err) != 0)
        fail_msg("%s", err.message);
    for (; *keys; keys += 2)
        if (scenario_set(&s->subject.scenario, keys[0], keys[1], &err) != 0)
            fail_msg("%s: %s", keys[0], err.message);
    if (scenario_check(&s->subject.scenario, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    assert_int_equal(s->job.phase, PHASE_READY);
    return s;
}
