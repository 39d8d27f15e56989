/* bench_phases SCENARIO RUNS [FOLDER] [KEY=VALUE...]: runs a scenario in one session, as a user reruns it, and prints
   one JSON object: how long every phase of every run took, what was found, and the most memory that attnscope and its
   debuggee held. FOLDER: also saves and opens the last run's trace there. */
#include "engine/session/session.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PHASES_MAX = 32, MEASURED_MAX = 100 };

/* One run: its phases in order, each until the next begins. */
struct timeline {
    char name[PHASES_MAX][64];
    double since[PHASES_MAX + 1]; /* the last one: the end */
    int n;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const struct err *err)
{
    fprintf(stderr, "bench_phases: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->message);
    return 3;
}

static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar((unsigned char)*text < ' ' ? ' ' : *text);
    putchar('"');
}

static void enter(struct timeline *t, const char *name, double since)
{
    if (t->n == PHASES_MAX || (t->n && strcmp(t->name[t->n - 1], name) == 0))
        return;
    snprintf(t->name[t->n], sizeof t->name[0], "%s", name);
    t->since[t->n++] = since;
}

/* The session says which phase it is in and since when; that all slots are judged is the beginning of another one. */
static void look(const struct session *s, struct timeline *t)
{
    const int judged = s->job.phase == PHASE_JUDGING && s->job.total > 0 && s->job.done >= s->job.total;
    if (s->job.step != STEP_NONE && t->n && s->job.step_since >= t->since[t->n - 1])
        enter(t, runner_step_words(s->job.step), s->job.step_since);
    if (judged)
        enter(t, "causes", now());
}

static int run(struct session *s, struct timeline *t)
{
    struct pollfd ready = {.fd = session_fd(s), .events = POLLIN};
    *t = (struct timeline){0};
    enter(t, "start", now());
    if (session_start(s) != 0)
        return -1;
    while (session_busy(s)) {
        poll(&ready, 1, 1000);
        session_update(s);
        look(s, t);
    }
    t->since[t->n] = now();
    return s->job.err.code == ERR_NONE ? 0 : -1;
}

static void print_run(const struct session *s, const struct timeline *t)
{
    printf("{\"total\": %.6f, \"kernel\": %.9f, \"phases\": [", t->since[t->n] - t->since[0],
           s->run.trace->info.seconds);
    for (int i = 0; i < t->n; i++) {
        printf("%s[", i ? ", " : "");
        print_string(t->name[i]);
        printf(", %.6f]", t->since[i + 1] - t->since[i]);
    }
    printf("]}");
}

static void print_found(const struct session *s)
{
    const struct trace *t = s->run.trace;
    const struct trace_capture *c = &t->info.capture;
    const struct judgement *j = s->run.judgement;
    printf("\"verdict\": ");
    print_string(session_verdict_word(s));
    printf(", \"device\": ");
    print_string(t->info.device);
    printf(", \"trace_bytes\": %llu, \"slots\": %d, \"places\": %lld", (unsigned long long)t->layout.total_bytes,
           t->layout.n_slots, (long long)t->problem.batch * t->problem.heads * t->layout.q_tiles);
    if (c->wanted) {
        printf(", \"first_pass\": {\"wanted\": %lld, \"judged\": %lld, \"off\": %lld, \"differing\": %lld, "
               "\"by_gpu\": %lld, \"judge\": ",
               (long long)c->wanted, (long long)c->judged, (long long)c->off, (long long)c->differing,
               (long long)c->by_gpu);
        print_string(c->judge);
        printf(", \"off_places\": ");
        print_string(c->off_places);
        printf("}");
    }
    printf(", \"finding\": ");
    print_string(j && j->n_findings ? j->findings[0].text : "");
}

static long most_kib(int who)
{
    struct rusage usage;
    return getrusage(who, &usage) == 0 ? usage.ru_maxrss : 0;
}

static int save_and_open(const struct session *s, const char *folder, struct err *err)
{
    char path[512];
    struct trace *trace = NULL;
    struct stat file;
    snprintf(path, sizeof path, "%s/phases-%ld.safetensors", folder, (long)getpid());
    const double begin = now();
    if (session_save(s, path, err) != 0)
        return -1;
    const double saved = now();
    const int failed = stat(path, &file) != 0 ? err_errno(err, path, "its size") : trace_open(path, &trace, err);
    const double opened = now();
    trace_free(trace);
    unlink(path);
    if (!failed)
        printf(", \"saved_bytes\": %lld, \"save\": %.6f, \"open\": %.6f", (long long)file.st_size, saved - begin,
               opened - saved);
    return failed;
}

static int measure(struct session *s, int runs, const char *folder, struct err *err)
{
    struct timeline timeline;
    printf("{\"runs\": [");
    for (int i = 0; i < runs; i++) {
        if (run(s, &timeline) != 0) {
            *err = s->job.err;
            return -1;
        }
        printf("%s", i ? ",\n " : "\n ");
        print_run(s, &timeline);
    }
    printf("],\n");
    print_found(s);
    return folder ? save_and_open(s, folder, err) : 0;
}

/* KEY=VALUE of the scenario. */
static int set(struct session *session, const char *setting, struct err *err)
{
    char key[128];
    const size_t n = strcspn(setting, "=");
    snprintf(key, sizeof key, "%.*s", (int)n, setting);
    return scenario_set(&session->subject.scenario, key, setting + n + 1, err);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct session *session = NULL;
    const char *folder = NULL;
    const long runs = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
    if (runs < 1 || runs > MEASURED_MAX) {
        fprintf(stderr, "usage: bench_phases SCENARIO RUNS [FOLDER] [KEY=VALUE...], RUNS from 1 to %d\n", MEASURED_MAX);
        return 2;
    }
    if (session_open_scenario(argv[1], &session, &err) != 0)
        return fail(&err);
    for (int i = 3; i < argc; i++)
        if (!strchr(argv[i], '='))
            folder = argv[i];
        else if (set(session, argv[i], &err) != 0)
            return fail(&err);
    if (scenario_check(&session->subject.scenario, &err) != 0)
        return fail(&err);
    const int failed = measure(session, (int)runs, folder, &err);
    session_free(session);
    if (failed)
        return fail(&err);
    printf(", \"attnscope_kib\": %ld, \"debuggee_kib\": %ld}\n", most_kib(RUSAGE_SELF), most_kib(RUSAGE_CHILDREN));
    return 0;
}
