/* attnscope bundle: one file with what another person needs to see a failure, and what such a file holds. */
#include "cli/options.h"
#include "cli/report.h"

#include "engine/base/path.h"
#include "engine/base/units.h"
#include "engine/bundle/bundle.h"
#include "engine/scenario/value.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_fact(const char *name, const char *value)
{
    if (*value)
        text_inline(text_out(), "%-10s %s", name, value);
    if (*value)
        fputs("\n", text_out());
}

static void write_facts(const struct bundle_facts *f)
{
    char words[160];
    write_fact("kernel", f->kernel);
    write_fact("verdict", f->verdict);
    write_fact("error", f->error);
    write_fact("attnscope", f->attnscope);
    write_fact("backend", f->backend);
    write_fact("compiler", f->compiler);
    write_fact("CUDA", f->cuda);
    write_fact("driver", f->driver);
    write_fact("GPU", f->gpu);
    snprintf(words, sizeof words, "%s%s", f->commit, f->commit[0] && f->dirty ? ", dirty" : "");
    write_fact("commit", words);
    if (f->slots < f->recorded) {
        snprintf(words, sizeof words, "%d of %d slots", f->slots, f->recorded);
        write_fact("trace", words);
    }
}

static void write_files(const struct container *c)
{
    char bytes[32];
    uint64_t all = 0;
    for (size_t i = 0; i < c->n; i++) {
        units_bytes(c->entries[i].bytes, bytes, sizeof bytes);
        text_inline(text_out(), "%10s  %s", bytes, c->entries[i].name);
        fputs("\n", text_out());
        all += c->entries[i].bytes;
    }
    units_bytes(all, bytes, sizeof bytes);
    fprintf(text_out(), "%10s  in %zu files\n", bytes, c->n);
}

static int list(const struct options *o, struct err *err)
{
    struct container c;
    struct bundle_facts facts;
    if (container_open(o->files[0], &c, err) != 0)
        return -1;
    const int failed = bundle_facts(&c, &facts, err);
    if (!failed) {
        write_facts(&facts);
        write_files(&c);
    }
    container_free(&c);
    return failed;
}

/* --save, or the name of what is packed in the current folder. */
static int target(const struct options *o, char out[512], struct err *err)
{
    const char *name = path_name(o->files[0]), *dot = strrchr(name, '.');
    const int n = o->output ? snprintf(out, 512, "%s", o->output)
                            : snprintf(out, 512, "%.*s.bundle.zip",
                                       dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
    if (n < 0 || n >= 512)
        return err_set(err, ERR_USAGE, "--save", "the path is too long");
    if (access(out, F_OK) == 0)
        return err_set(err, ERR_INPUT, out, "exists; it is not replaced");
    return 0;
}

/* 1: it may be written. */
static int agreed(const struct options *o, const char *path)
{
    char line[64] = "";
    if (o->yes)
        return 1;
    text_inline(text_out(), "write %s? [y/N] ", path);
    fflush(text_out());
    if (!fgets(line, sizeof line, stdin))
        fputs("\n", text_out());
    return line[0] == 'y' || line[0] == 'Y';
}

static int pack(const struct options *o, const struct session *s, const struct err *failure, const char *path,
                const struct cache_work *work, struct err *err)
{
    struct container c;
    json_t *json = report_json(s, o->files[0], failure);
    char *verdict = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!verdict)
        return err_no_memory(err, BUNDLE_VERDICT, "the verdict");
    const struct bundle_subject of = {.paths = &s->subject.paths,
                                      .version = options_version,
                                      .scenario = s->subject.has_scenario ? &s->subject.scenario : NULL,
                                      .reads = s->subject.reads,
                                      .n_reads = s->subject.n_reads,
                                      .trace = s->run.trace,
                                      .judgement = s->run.judgement,
                                      .verdict = session_verdict_word(s),
                                      .verdict_json = verdict,
                                      .error = failure->message,
                                      .trace_bytes = o->limit_bytes ? o->limit_bytes : BUNDLE_TRACE_BYTES};
    int status = bundle_collect(&of, work, &c, err);
    free(verdict);
    if (status != 0)
        return -1;
    write_files(&c);
    if (!agreed(o, path)) {
        fputs("nothing was written\n", text_out());
        status = 1;
    } else if (container_write(&c, path, err) != 0) {
        status = -1;
    } else {
        text_inline(text_out(), "wrote %s", path);
        fputs("\n", text_out());
    }
    container_free(&c);
    return status;
}

int command_bundle(const struct options *o, struct err *err)
{
    struct session *s;
    struct cache_work work;
    char path[512];
    if (o->list)
        return list(o, err);
    if (container_is(o->files[0]))
        return err_set(err, ERR_INPUT, o->files[0], "is packed already; attnscope bundle --list prints what it holds");
    if (!o->yes && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
        return err_set(err, ERR_USAGE, "bundle", "shows what it packs and asks; without a terminal it needs --yes");
    if (target(o, path, err) != 0 || options_open(o, o->files[0], &s, err) != 0)
        return -1;
    struct err failure = {0};
    int status = s->subject.paths.cache[0] ? 0 : runner_find_paths(&s->subject.paths, err);
    if (status == 0 && options_finish(s, &failure) != 0 && failure.code != ERR_BUILD && failure.code != ERR_RUN) {
        *err = failure; /* nothing of the kernel's: an input that is missing, Ctrl-C */
        status = -1;
    }
    if (status == 0 && failure.code == ERR_NONE && s->job.err.code != ERR_NONE)
        failure = s->job.err;
    text_progress("");
    if (status == 0)
        status = cache_make_work(s->subject.paths.cache, &work, err);
    if (status == 0) {
        status = pack(o, s, &failure, path, &work, err);
        cache_drop_work(&work);
    }
    session_free(s);
    return status;
}
