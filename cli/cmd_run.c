#include "cli/options.h"
#include "cli/report.h"

#include <string.h>
#include <unistd.h>

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
        json_t *json = o->json ? report_json(s, o->files[0]) : NULL;
        if (o->json) {
            json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
            fputs("\n", stdout);
        } else {
            report_write(s, stdout);
        }
        json_decref(json);
        status = status_of(s, err);
    }
    session_free(s);
    return status;
}

static int check_one(const struct options *o, const char *path, json_t *results)
{
    struct session *s;
    struct err err = {0};
    char why[512];
    int status = options_open(o, path, &s, &err);
    if (status == 0)
        status = options_finish(s, &err);
    if (status == 0)
        status = status_of(s, &err);
    if (o->json) {
        json_t *json = s ? report_json(s, path) : json_pack("{s:s, s:b}", "file", path, "as_expected", 0);
        if (err.code != ERR_NONE)
            json_object_set_new(
                json, "error",
                json_pack("{s:s, s:s, s:s}", "code", err_name(err.code), "where", err.where, "message", err.message));
        json_array_append_new(results, json);
    } else if (status < 0) {
        /* Most errors name the file already. */
        const int named = strncmp(err.where, path, strlen(path)) == 0;
        printf("ERROR %s%s%s%s%s\n", named ? "" : path, named ? "" : ": ", err.where, err.where[0] ? ": " : "",
               err.message);
    } else {
        report_meets(s, why, sizeof why);
        printf("%s %s: %s\n", status == 0 ? "ok   " : "FAIL ", path, why);
    }
    fflush(stdout);
    session_free(s);
    return status < 0 ? err_exit_status(err.code) : status;
}

int command_check(const struct options *o, struct err *err)
{
    (void)err;
    json_t *results = json_array();
    int worst = 0;
    for (int i = 0; i < o->n_files; i++) {
        int status = check_one(o, o->files[i], results);
        worst = status > worst ? status : worst;
    }
    if (o->json) {
        json_dumpf(results, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        fputs("\n", stdout);
    }
    json_decref(results);
    return worst;
}
