/* attnscope-judge for the CPU executor, and runs for it to judge. */
#ifndef UNIT_JUDGE_PROGRAM_H
#define UNIT_JUDGE_PROGRAM_H

#include "engine/session/session.h"

void judge_program_must(const char *command);
/* As the builder compiles a kernel, without a rewrite: the program calls the executor itself. dir: for what is made on
   the way, made too. program NULL: that one is there already. */
void judge_program_build(const char *program, const char *dir);
/* A kernel whose kv tiles have bc keys: DIR/sink_end.cu. */
void judge_program_other_tiles(const char *dir, int bc);
/* A run of a kernel that the CPU judges: KEY, VALUE of its scenario, NULL ends them. */
struct session *judge_program_run(const char *kernel, const char *const *keys);

#endif
