#include "cli/options.h"
#include "engine/base/file_map.h"

#include "engine/base/json_memory.h"
#include "engine/base/leftovers.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>

static int (*const functions[COMMAND_COUNT])(const struct options *, struct err *) = {
#define COMMAND(id, name, arguments, meaning, function) function,
#include "cli/commands.def"
#undef COMMAND
};

static int fail(const struct err *err)
{
    fputs("attnscope: ", text_err());
    text_failure(text_err(), err);
    return err_exit_status(err->code);
}

/* `attnscope list | head`: the end of a program whose reader has enough, as a shell knows it. Not earlier, so that
   nothing is left behind. */
static int end_with_reader(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
    return 128 + SIGPIPE;
}

/* What was not printed was not said, whatever the verdict is. */
static int end(int status, struct err *err)
{
    const int failure = text_out_end();
    if (failure == EPIPE)
        return end_with_reader();
    if (failure && status >= 0) {
        errno = failure;
        status = err_errno(err, "", "standard output cannot be written");
    }
    return status < 0 ? fail(err) : status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct err err = {0};
    setlocale(LC_CTYPE, "");
    json_memory_begin(3);
    /* A reader that went away and a full disk are errors of a write, not the end of the program. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    leftovers_catch_signals();
    if (text_open() != 0)
        return 3;
    if (options_parse(argc, argv, &options, &err) != 0)
        return fail(&err);
    if (options.help || options.version) {
        if (options.help)
            options_write_help(text_out());
        else
            fprintf(text_out(), "attnscope %s\n", options_version);
        return end(0, &err);
    }
    /* Those that others start are stopped with them, and the debugger has its own Ctrl-C. */
    if (options.command != COMMAND_OPEN && options.command != COMMAND_KEEP && options.command != COMMAND_SERVE)
        text_keep("stopped");
    int status = functions[options.command](&options, &err);
    if (status >= 0 && file_map_check(NULL, &err) != 0)
        status = -1;
    return end(status, &err);
}
