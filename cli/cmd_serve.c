#include "cli/options.h"

#include "engine/remote/remote.h"
#include "engine/run/record.h"

#include <unistd.h>

static int run_once(const struct runner_paths *paths, const struct scenario *scenario,
                    const struct runner_progress *progress, struct trace **out, struct err *err)
{
    struct recorder recorder = {0};
    const int failed = record(&recorder, paths, scenario, progress, out, err);
    recorder_free(&recorder);
    return failed;
}

int command_serve(const struct options *o, struct err *err)
{
    struct runner_paths paths;
    (void)o;
    if (isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE, "serve", "is started by attnscope --on, by way of ssh");
    return runner_find_paths(&paths, err) != 0 ? -1 : remote_serve(&paths, STDIN_FILENO, STDOUT_FILENO, run_once, err);
}
