#include "cli/options.h"
#include "engine/base/file_map.h"

#include "engine/base/json_memory.h"
#include "engine/base/leftovers.h"

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

int main(int argc, char **argv)
{
    struct options options;
    struct err err = {0};
    setlocale(LC_CTYPE, "");
    json_memory_begin();
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
        const int written = fflush(text_out()) == 0;
        return written ? 0 : text_reader_gone() ? end_with_reader() : 3;
    }
    int status = functions[options.command](&options, &err);
    if (status >= 0 && file_map_check(NULL, &err) != 0)
        status = -1;
    if (fflush(text_out()) != 0 && status >= 0)
        status = err_errno(&err, "", "standard output can not be written");
    if (text_reader_gone())
        return end_with_reader();
    return status < 0 ? fail(&err) : status;
}
