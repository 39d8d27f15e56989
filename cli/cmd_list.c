#include "cli/options.h"

#include <glob.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* What attnscope brings along: kernels/, scenarios/ and scenarios/bugs/ below its root. */
static int list_matches(const char *root, const char *pattern, void (*print)(const char *root, const char *path))
{
    char full[1100];
    glob_t found;
    snprintf(full, sizeof full, "%s/%s", root, pattern);
    int status = glob(full, 0, NULL, &found);
    if (status == GLOB_NOMATCH)
        return 0;
    if (status != 0)
        return -1;
    for (size_t i = 0; i < found.gl_pathc; i++)
        print(root, found.gl_pathv[i]);
    globfree(&found);
    return 0;
}

/* "Kernels:", or "Kernels, below /usr/share/attnscope:" where that is not the current folder. */
static void print_heading(const char *what, const char *root)
{
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) && strcmp(here, root) == 0) {
        fprintf(text_out(), "%s:\n", what);
    } else {
        text_inline(text_out(), "%s, below %s:", what, root);
        fputs("\n", text_out());
    }
}

/* Below the root the root is left out: these are the names the README uses. */
static const char *short_name(const char *root, const char *path)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void print_kernel(const char *root, const char *path)
{
    text_inline(text_out(), "  %s", short_name(root, path));
    fputs("\n", text_out());
}

static void print_expectation(const struct expect *e)
{
    if (e->verdict != EXPECT_FAIL) {
        fputs("clean", text_out());
        return;
    }
    fputs("fails", text_out());
    if (e->first_channel >= 0)
        fprintf(text_out(), ", first in %s", channel_label(e->first_channel));
    if (e->cause[0])
        fprintf(text_out(), ", %s", e->cause);
}

static void print_scenario(const char *root, const char *path)
{
    struct scenario s;
    struct err err = {0};
    text_inline(text_out(), "  %-40s ", short_name(root, path));
    if (scenario_read(path, root, &s, &err) != 0) {
        text_inline(text_out(), "%s: %s", err.where, err.message);
        fputs("\n", text_out());
        return;
    }
    const struct asc_problem *p = &s.problem;
    fprintf(text_out(), "(%d,%d,%d", p->batch, p->heads, p->q_len);
    if (p->kv_len != p->q_len)
        fprintf(text_out(), ",%d", p->kv_len);
    char terms[TERMS_BYTES], types[TYPES_BYTES];
    problem_types(p, types);
    problem_terms(p, NULL, terms);
    fprintf(text_out(), ",%d) %s%s%s: ", p->head_dim, types, p->causal ? " causal" : "", terms);
    print_expectation(&s.expect);
    fputs("\n", text_out());
    scenario_free(&s);
}

int command_list(const struct options *o, struct err *err)
{
    struct runner_paths paths;
    (void)o;
    if (runner_find_paths(&paths, err) != 0)
        return -1;
    print_heading("Kernels", paths.root);
    int failed = list_matches(paths.root, "kernels/*.cu", print_kernel);
    print_heading("Scenarios", paths.root);
    failed = failed || list_matches(paths.root, "scenarios/*.ini", print_scenario) ||
             list_matches(paths.root, "scenarios/bugs/*.ini", print_scenario);
    return failed ? err_set(err, ERR_SYSTEM, paths.root, "the folder cannot be listed") : 0;
}
