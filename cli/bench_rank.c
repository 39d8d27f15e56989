/* Kernels of one problem, each judged and then timed without probes; only what is right is ranked. Times are kept in a
   file, --keep, by problem, device and the content of the build: what has not changed there is not measured again. */
#include "cli/bench_rank.h"

#include "cli/report.h"
#include "engine/base/bounded_json.h"
#include "engine/base/json_memory.h"
#include "engine/base/path.h"
#include "engine/base/replace.h"
#include "engine/base/units.h"
#include "engine/build/cache.h"
#include "engine/run/measure.h"
#include "engine/scenario/keys.h"
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT_S 1.0 /* of one measurement */

enum { KEEP_VERSION = 1 };

struct ranking {
    const struct options *o;
    json_t *kept;               /* owned: an array of entries, of any problem and device */
    json_t *ranked;             /* owned: entries of this problem and device */
    json_t *wrong, *failed;     /* owned: {"kernel", "verdict", "found"}, {"kernel", "error", "message"} */
    char *problem, device[192]; /* problem: owned, of the first kernel that could be built; NULL: none yet */
    bool on_gpu;
    int status;
};

/* ---- what an entry stands for ---- */

/* Where it runs: times of two machines are not of one list. */
static int find_device(const struct session *s, struct ranking *r, struct err *err)
{
    struct build_request request = {0};
    struct gpu_device gpu;
    char note[512], host[64] = "";
    if (backend_choose(&s->subject.paths, &s->subject.scenario, &request, &gpu, note, sizeof note, err) != 0)
        return -1;
    r->on_gpu = request.backend == BACKEND_GPU;
    if (r->on_gpu) {
        snprintf(r->device, sizeof r->device, "%s, sm_%d%d", gpu.name, gpu.major, gpu.minor);
        return 0;
    }
    gethostname(host, sizeof host - 1);
    snprintf(r->device, sizeof r->device, "CPU executor, %ld cores of %s", sysconf(_SC_NPROCESSORS_ONLN), host);
    return 0;
}

static json_t *lengths_of(const int32_t *lengths, int n)
{
    json_t *json = json_array();
    for (int i = 0; i < n && lengths; i++)
        json_array_append_new(json, json_integer(lengths[i]));
    return json;
}

/* All that makes the problem but for what its arrays hold. Owned. */
static char *problem_of(const struct asc_problem *p)
{
    json_t *json = json_object();
#define PROBLEM_INTEGER(name) json_object_set_new(json, #name, json_integer(p->name));
#define PROBLEM_REAL(name) json_object_set_new(json, #name, json_real((double)p->name));
#define PROBLEM_TEXT(name) json_object_set_new(json, #name, report_json_text(p->name));
#include "engine/base/fields.def"
#undef PROBLEM_INTEGER
#undef PROBLEM_REAL
#undef PROBLEM_TEXT
    json_object_set_new(json, "q_lens", lengths_of(p->q_lens, p->batch));
    json_object_set_new(json, "kv_lens", lengths_of(p->kv_lens, p->batch));
    char *text = json_memory_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(json);
    return text;
}

static const char *text_in(const json_t *entry, const char *key)
{
    const char *text = json_string_value(json_object_get(entry, key));
    return text ? text : "";
}

static double median_of(const json_t *entry)
{
    return json_number_value(json_object_get(entry, "median"));
}

static bool is_here(const struct ranking *r, const json_t *entry)
{
    return strcmp(text_in(entry, "problem"), r->problem) == 0 && strcmp(text_in(entry, "device"), r->device) == 0;
}

/* The entry of a kernel among those of this problem and device; -1: none. */
static int find_kept(const struct ranking *r, const char *kernel, const char *built_with)
{
    for (size_t i = 0; i < json_array_size(r->kept); i++) {
        const json_t *entry = json_array_get(r->kept, i);
        if (is_here(r, entry) && strcmp(text_in(entry, "kernel"), kernel) == 0 &&
            strcmp(text_in(entry, "built_with"), built_with) == 0)
            return (int)i;
    }
    return -1;
}

/* ---- the file ---- */

static bool is_entry(const json_t *entry)
{
    static const char *const texts[] = {"kernel", "built_with", "build", "device", "problem"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!json_is_string(json_object_get(entry, texts[i])))
            return false;
    return json_is_number(json_object_get(entry, "min")) && json_is_integer(json_object_get(entry, "n")) &&
           median_of(entry) > 0;
}

static int read_kept(struct ranking *r, const char *path, struct err *err)
{
    char *text;
    r->kept = json_array();
    if (!path || access(path, F_OK) != 0)
        return 0;
    if (cache_read_text(path, "the list", &text, err) != 0)
        return -1;
    json_t *json = bounded_json(text, strlen(text), path, err);
    free(text);
    json_t *entries = json_object_get(json, "entries");
    bool is_ours =
        json_integer_value(json_object_get(json, "attnscope_bench")) == KEEP_VERSION && json_is_array(entries);
    for (size_t i = 0; i < json_array_size(entries) && is_ours; i++)
        is_ours = is_entry(json_array_get(entries, i));
    if (is_ours) {
        json_decref(r->kept);
        r->kept = json_incref(entries);
    }
    json_decref(json);
    if (json && !is_ours)
        return err_set(err, ERR_INPUT, path, "expected a list that bench --keep wrote, version %d", KEEP_VERSION);
    return json ? 0 : -1;
}

static int write_kept(const struct ranking *r, struct err *err)
{
    struct replacement file;
    if (replace_open(&file, r->o->keep, 0666, err) != 0)
        return -1;
    json_t *json = json_pack("{s:i, s:O}", "attnscope_bench", KEEP_VERSION, "entries", r->kept);
    const int failed = report_dump(json, file.file, err);
    json_decref(json);
    if (!failed)
        return replace_commit(&file, err);
    replace_drop(&file);
    return -1;
}

/* ---- one kernel ---- */

static void add_failed(struct ranking *r, const char *path, const struct err *why)
{
    json_array_append_new(r->failed, json_pack("{s:o, s:s, s:o}", "kernel", report_json_text(path), "error",
                                               err_name(why->code), "message", report_json_text(why->message)));
    r->status = 3;
}

/* 0: it is right. 1: it is not, and listed as that. -1: it could not be run. */
static int judge(struct ranking *r, struct session *s, const char *path, struct err *err)
{
    char found[REPORT_WORDS_BYTES];
    if (options_finish(s, err) != 0)
        return -1;
    if (session_verdict(s) == RUN_IS_CLEAN && s->job.err.code == ERR_NONE)
        return 0;
    report_found(s, found);
    json_array_append_new(r->wrong, json_pack("{s:o, s:s, s:o}", "kernel", report_json_text(path), "verdict",
                                              session_verdict_word(s), "found", report_json_text(found)));
    r->status = r->status ? r->status : 1;
    return 1;
}

static int time_it(const struct ranking *r, const struct session *s, struct timing *out, struct err *err)
{
    const struct bench_request request = {.repeats = r->o->repeat, .limit_s = LIMIT_S};
    struct bench_line line = {0};
    if (!r->on_gpu)
        return measure_launches(&s->subject.paths, &s->subject.scenario, &request, options_progress(), out, err);
    const int failed =
        measure_bench(&s->subject.paths, &s->subject.scenario, BENCH_PLAIN, &request, options_progress(), &line);
    *out = line.result.warm;
    *err = line.err;
    measure_bench_free(&line);
    return failed;
}

/* Builds it, which says by its name what it is made of, and in which types it runs. */
static int build_of(struct session *s, char build[64], struct err *err)
{
    struct recorder asked = {0};
    const int failed =
        record_child(&asked, &s->subject.paths, &s->subject.scenario, PROBES_NONE, options_progress(), err);
    if (!failed) {
        const char *slash = strrchr(asked.build.program, '/');
        snprintf(build, 64, "%.63s", slash ? slash + 1 : asked.build.program);
        adopt_types(child_hello(asked.child), &s->subject.scenario);
    }
    recorder_free(&asked);
    return failed;
}

/* "-D WS=2 fix.patch" */
static void built_with(const struct scenario *s, char *out, size_t bytes)
{
    const char *define = scenario_said(s, KEY_DEFINE);
    snprintf(out, bytes, "%s%s%s", define ? define : "", define && s->patch[0] ? " " : "", s->patch);
}

static int rank_one(struct ranking *r, struct session *s, const char *path, struct err *err)
{
    char build[64], kernel[PATH_MAX], with[1600];
    struct timing timing;
    if (!s->subject.has_scenario)
        return err_set(err, ERR_INPUT, path, "is a saved trace: there is nothing to launch");
    if (build_of(s, build, err) != 0)
        return -1;
    char *problem = problem_of(&s->subject.scenario.problem);
    if (!r->problem && find_device(s, r, err) == 0)
        r->problem = strdup(problem);
    const bool same = r->problem && strcmp(r->problem, problem) == 0;
    free(problem);
    if (!r->problem)
        return -1;
    if (!same)
        return err_set(err, ERR_INPUT, path,
                       "is of another shape than the kernels before it (or of other types): --shape, --dtype and --set "
                       "state one for all");
    if (!realpath(s->subject.scenario.kernel, kernel))
        return err_errno(err, path, "cannot be read");
    built_with(&s->subject.scenario, with, sizeof with);
    const int at = find_kept(r, kernel, with);
    if (at >= 0 && strcmp(text_in(json_array_get(r->kept, (size_t)at), "build"), build) == 0)
        return 0;
    if (at >= 0)
        json_array_remove(r->kept, (size_t)at);
    const int judged = judge(r, s, path, err);
    if (judged != 0)
        return judged < 0 ? -1 : 0;
    if (time_it(r, s, &timing, err) != 0)
        return -1;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): json_pack() takes what it is given */
    json_array_append_new(r->kept, json_pack("{s:o, s:o, s:s, s:s, s:s, s:f, s:f, s:i}", "kernel",
                                             report_json_text(kernel), "built_with", report_json_text(with), "build",
                                             build, "device", r->device, "problem", r->problem, "median",
                                             timing.median_s, "min", timing.min_s, "n", timing.n));
    json_object_set_new(json_array_get(r->kept, json_array_size(r->kept) - 1), "new", json_true());
    return 0;
}

static void rank_path(struct ranking *r, const char *path)
{
    struct session *s = NULL;
    struct err why = {0};
    if (options_open(r->o, path, &s, &why) != 0 || rank_one(r, s, path, &why) != 0)
        add_failed(r, path, &why);
    session_free(s);
}

static int rank_folder(struct ranking *r, const char *folder, struct err *err)
{
    char pattern[PATH_MAX];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.cu", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return err_set(err, ERR_INPUT, folder, "holds no kernel (*.cu)");
    for (size_t i = 0; i < found.gl_pathc; i++)
        rank_path(r, found.gl_pathv[i]);
    globfree(&found);
    return 0;
}

/* ---- what came of it ---- */

struct timed {
    json_t *entry;
};

static int faster(const void *a, const void *b)
{
    const double x = median_of(((const struct timed *)a)->entry), y = median_of(((const struct timed *)b)->entry);
    return (x > y) - (x < y);
}

/* The fastest first; --rank is how many. */
static void sort_entries(struct ranking *r)
{
    const size_t all = json_array_size(r->kept);
    struct timed *order = calloc(all + 1, sizeof *order);
    size_t n = 0;
    if (!order)
        end_without_memory();
    for (size_t i = 0; i < all && r->problem; i++)
        if (is_here(r, json_array_get(r->kept, i)))
            order[n++].entry = json_array_get(r->kept, i);
    qsort(order, n, sizeof *order, faster);
    for (size_t i = 0; i < n && i < (size_t)r->o->rank; i++) {
        json_t *entry = json_copy(order[i].entry);
        const bool measured = json_is_true(json_object_get(entry, "new"));
        json_object_del(entry, "new");
        json_object_set_new(entry, "rank", json_integer((json_int_t)i + 1));
        json_object_set_new(entry, "kept", json_boolean(!measured));
        json_array_append_new(r->ranked, entry);
    }
    for (size_t i = 0; i < all; i++)
        json_object_del(json_array_get(r->kept, i), "new");
    free(order);
}

static const char *time_words(const struct ranking *r)
{
    return r->on_gpu ? "time of a launch without probes, between CUDA events"
                     : "time of a launch of the CPU executor without probes, which is not a GPU's";
}

static void write_ranking(const struct ranking *r, FILE *out)
{
    char median[32], least[32];
    if (r->problem) {
        text_inline(out, "%s: %s", r->device, time_words(r));
        fprintf(out, "\n%4s %9s %9s\n", "rank", "median", "min");
    }
    for (size_t i = 0; i < json_array_size(r->ranked); i++) {
        const json_t *e = json_array_get(r->ranked, i);
        units_seconds(median_of(e), median, sizeof median);
        units_seconds(json_number_value(json_object_get(e, "min")), least, sizeof least);
        fprintf(out, "%4zu %9s %9s  ", i + 1, median, least);
        text_inline(out, "%s%s%s%s", text_in(e, "kernel"), *text_in(e, "built_with") ? " " : "",
                    text_in(e, "built_with"), json_is_true(json_object_get(e, "kept")) ? "  (kept)" : "");
        fputs("\n", out);
    }
    for (size_t i = 0; i < json_array_size(r->wrong); i++) {
        const json_t *e = json_array_get(r->wrong, i);
        text_inline(out, "wrong: %s: %s", text_in(e, "kernel"), text_in(e, "found"));
        fputs("\n", out);
    }
    for (size_t i = 0; i < json_array_size(r->failed); i++) {
        const json_t *e = json_array_get(r->failed, i);
        text_inline(out, "not timed: %s: %.*s", text_in(e, "kernel"), (int)strcspn(text_in(e, "message"), "\n"),
                    text_in(e, "message"));
        fputs("\n", out);
    }
}

static int report(const struct ranking *r, struct err *err)
{
    if (!r->o->json) {
        write_ranking(r, text_out());
        return 0;
    }
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:O, s:O, s:O}", "device", r->problem ? report_json_text(r->device) : json_null(), "problem",
        r->problem ? json_loads(r->problem, 0, NULL) : json_null(), "time", r->on_gpu ? "cuda-events" : "cpu-executor",
        "ranked", r->ranked, "wrong", r->wrong, "failed", r->failed);
    const int failed = report_dump(json, text_out(), err);
    json_decref(json);
    return failed;
}

int bench_rank(const struct options *o, struct err *err)
{
    struct ranking r = {.o = o, .ranked = json_array(), .wrong = json_array(), .failed = json_array()};
    int failed = read_kept(&r, o->keep, err);
    for (int i = 0; i < o->n_files && !failed; i++) {
        struct stat status;
        if (stat(o->files[i], &status) == 0 && S_ISDIR(status.st_mode))
            failed = rank_folder(&r, o->files[i], err);
        else
            rank_path(&r, o->files[i]);
    }
    text_progress("");
    if (!failed) {
        sort_entries(&r);
        failed = o->keep ? write_kept(&r, err) : 0;
    }
    if (!failed)
        failed = report(&r, err);
    json_decref(r.kept);
    json_decref(r.ranked);
    json_decref(r.wrong);
    json_decref(r.failed);
    free(r.problem);
    return failed ? -1 : r.status;
}
