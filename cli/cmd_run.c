#include "cli/options.h"
#include "cli/report.h"

/* The run's own failure is said behind what was recorded. */
static int status_of(const struct session *s, struct err *err)
{
    char why[512];
    if (s->err.code != ERR_NONE) {
        *err = s->err;
        return -1;
    }
    return report_meets(s, why, sizeof why) ? 0 : 1;
}

int command_run(const struct options *o, struct err *err)
{
    struct session *s;
    if (options_open(o, o->files[0], &s, err) != 0)
        return -1;
    int status = options_finish(s, err);
    if (status == 0 && o->output)
        status = session_save(s, o->output, err);
    if (status == 0) {
        json_t *json = o->json ? report_json(s, o->files[0], &s->err) : NULL;
        if (o->json)
            status = report_dump(json, stdout, err);
        else
            report_write(s, stdout);
        json_decref(json);
    }
    if (status == 0)
        status = status_of(s, err);
    session_free(s);
    return status;
}
