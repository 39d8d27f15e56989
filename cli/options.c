#include "cli/tables.h"

#include "engine/base/path.h"
#include "engine/scenario/value.h"
#include "engine/session/look.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN(command) (1u << (command))
#define RUNS (IN(COMMAND_OPEN) | IN(COMMAND_RUN) | IN(COMMAND_SHOW) | IN(COMMAND_CHECK) | IN(COMMAND_BUNDLE))
#define LAUNCHES (RUNS | IN(COMMAND_PROFILE) | IN(COMMAND_BENCH) | IN(COMMAND_SHRINK) | IN(COMMAND_SWEEP))
#define EVERY (~0u)

/* The Makefile gives it, of the file VERSION, as it stands there: not a string. */
#define QUOTED(x) #x
#define QUOTED_VALUE(x) QUOTED(x)
const char options_version[] = QUOTED_VALUE(ATTNSCOPE_VERSION);

const struct command_row command_rows[COMMAND_COUNT] = {
#define COMMAND(id, name, arguments, meaning, function) {name, arguments, meaning},
#include "cli/commands.def"
#undef COMMAND
};

const struct option_row option_rows[OPTION_COUNT] = {
#define OPTION(id, letter, name, argument, commands, meaning) {letter, name, argument, commands, meaning},
#include "cli/options.def"
#undef OPTION
};

void options_write_help(FILE *out)
{
    fputs("attnscope: a debugger for fused attention kernels\n\nUsage: attnscope [COMMAND] [OPTION...] FILE...\n\n"
          "Commands:\n",
          out);
    for (int c = 0; c < COMMAND_COUNT; c++)
        fprintf(out, "  %s %s\n        %s\n", command_rows[c].name, command_rows[c].arguments, command_rows[c].meaning);
    fputs("\nOptions:\n", out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        char text[64];
        int n = option_rows[i].letter ? snprintf(text, sizeof text, "-%c, ", option_rows[i].letter) : 0;
        n += snprintf(text + n, sizeof text - (size_t)n, "--%s", option_rows[i].name);
        if (option_rows[i].argument)
            snprintf(text + n, sizeof text - (size_t)n, " %s", option_rows[i].argument);
        fprintf(out, "  %s\n        %s", text, option_rows[i].meaning);
        if (option_rows[i].commands != EVERY) {
            const char *before = " (";
            for (int c = 0; c < COMMAND_COUNT; c++)
                if (option_rows[i].commands & IN(c)) {
                    fprintf(out, "%s%s", before, command_rows[c].name);
                    before = ", ";
                }
            fputs(")", out);
        }
        fputs("\n", out);
    }
    fputs("\nExit status: 0 as expected, 1 not as expected, 2 usage or input error, 3 could not run.\nThe interactive "
          "debugger always exits 0.\n",
          out);
}

static int command_of(const char *word)
{
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (strcmp(word, command_rows[c].name) == 0)
            return c;
    return -1;
}

static int parse_size(const char *text, struct options *o, struct err *err)
{
    int end = 0;
    if (sscanf(text, "%dx%d%n", &o->cols, &o->rows, &end) != 2 || text[end] || o->cols < 1 || o->rows < 1 ||
        o->cols > 1000 || o->rows > 1000)
        return err_set(err, ERR_USAGE, "--size", "expected COLSxROWS, each 1 to 1000, found '%s'", text);
    return 0;
}

static int parse_repeat(const char *text, struct options *o, struct err *err)
{
    int end = 0;
    if (sscanf(text, "%4d%n", &o->repeat, &end) != 1 || text[end] || o->repeat < 3 || o->repeat > 1000)
        return err_set(err, ERR_USAGE, "--repeat", "expected 3 to 1000, found '%s'", text);
    return 0;
}

static int parse_count(const char *option, const char *text, int least, int most, int *out, struct err *err)
{
    if (value_integer(text, least, most, out) != 0)
        return err_set(err, ERR_USAGE, option, "expected %d to %d, found '%s'", least, most, text);
    return 0;
}

/* "2/4" */
static int parse_shard(const char *text, struct options *o, struct err *err)
{
    int end = 0;
    if (sscanf(text, "%4d/%4d%n", &o->shard[0], &o->shard[1], &end) != 2 || text[end] || o->shard[0] < 1 ||
        o->shard[1] < o->shard[0])
        return err_set(err, ERR_USAGE, "--shard", "expected I/N, I from 1 to N, such as 2/4, found '%s'", text);
    return 0;
}

/* "90", "90s", "5m", "1h". */
static int parse_time(const char *text, struct options *o, struct err *err)
{
    static const char units[] = "smh";
    static const double seconds[] = {1, 60, 3600};
    char number[32];
    const size_t n = strlen(text);
    const char *unit = n > 1 ? strchr(units, text[n - 1]) : NULL;
    snprintf(number, sizeof number, "%.*s", (int)(n - (unit != NULL)), text);
    if (n >= sizeof number || value_real(number, &o->time_s) != 0 || !(o->time_s > 0))
        return err_set(err, ERR_USAGE, "--time", "expected seconds, more than 0, such as 90, 90s or 5m, found '%s'",
                       text);
    o->time_s *= unit ? seconds[unit - units] : 1;
    return 0;
}

const char *const asked_probes_names[] = {"", "on", "off", "compare"};

static int parse_limit(const char *text, struct options *o, struct err *err)
{
    return value_bytes(text, &o->limit_bytes) == 0
               ? 0
               : err_set(err, ERR_USAGE, "--limit", "expected a size such as 64MiB, found '%s'", text);
}

static int parse_probes(const char *value, struct options *o, struct err *err)
{
    o->probes = ASKED_NOTHING;
    for (int i = ASKED_ON; i <= ASKED_COMPARE; i++)
        if (strcmp(value, asked_probes_names[i]) == 0)
            o->probes = (enum asked_probes)i;
    return o->probes != ASKED_NOTHING
               ? 0
               : err_set(err, ERR_USAGE, "--probes", "expected on, off or compare, found '%s'", value);
}

static int parse_background(const char *value, struct options *o, struct err *err)
{
    if (strcmp(value, "dark") != 0 && strcmp(value, "light") != 0)
        return err_set(err, ERR_USAGE, "--background", "expected dark or light, found '%s'", value);
    o->background = strcmp(value, "light") == 0 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
    return 0;
}

static int take_word(struct option_words *words, enum option_id option, const char *value, struct err *err)
{
    char name[32];
    const int most = (int)(sizeof words->word / sizeof *words->word);
    snprintf(name, sizeof name, "--%s", option_rows[option].name);
    if (words->n == most)
        return err_set(err, ERR_USAGE, name, "at most %d times", most);
    words->word[words->n++] = value;
    return 0;
}

static int take(enum option_id option, const char *value, struct options *o, struct err *err)
{
    switch (option) {
    case OPTION_SHAPE:
        o->shape = value;
        return 0;
    case OPTION_CAUSAL:
        o->causal = value;
        return 0;
    case OPTION_DTYPE:
        o->dtype = value;
        return 0;
    case OPTION_SET:
        if (!strchr(value, '='))
            return err_set(err, ERR_USAGE, "--set", "expected KEY=VALUE, found '%s'", value);
        return take_word(&o->settings, option, value, err);
    case OPTION_DEFINE:
        return take_word(&o->defines, option, value, err);
    case OPTION_INCLUDE:
        return take_word(&o->includes, option, value, err);
    case OPTION_FLAG:
        return take_word(&o->flags, option, value, err);
    case OPTION_Q:
    case OPTION_K:
    case OPTION_V:
    case OPTION_INPUTS:
        o->inputs[option - OPTION_Q] = value;
        return 0;
    case OPTION_BACKEND:
        o->backend = value;
        return 0;
    case OPTION_ON:
        o->on = value;
        return *value && *value != '-' && strlen(value) < sizeof(struct scenario){0}.on
                   ? 0
                   : err_set(err, ERR_USAGE, "--on", "expected a destination of ssh, such as user@host, found '%s'",
                             value);
    case OPTION_MEM:
        o->mem = value;
        return 0;
    case OPTION_MEMORY:
        o->memory = value;
        return 0;
    case OPTION_JUDGE:
        o->judge = value;
        return 0;
    case OPTION_PATCH:
        o->patch = value;
        return 0;
    case OPTION_PROBES:
        return parse_probes(value, o, err);
    case OPTION_CHECKS:
        o->checks = true;
        return 0;
    case OPTION_NO_RETRY:
        o->no_retry = true;
        return 0;
    case OPTION_RERUN:
        o->rerun = true;
        return 0;
    case OPTION_TIMES:
        o->times = true;
        return 0;
    case OPTION_BIAS:
        o->bias = true;
        return 0;
    case OPTION_ISOLATE:
        o->isolate = value;
        return 0;
    case OPTION_FEED:
        o->feed = value;
        return 0;
    case OPTION_OUTPUT:
        o->output = value;
        return 0;
    case OPTION_VIEW:
        o->view = value;
        return 0;
    case OPTION_SIZE:
        return parse_size(value, o, err);
    case OPTION_ASCII:
        o->ascii = true;
        return 0;
    case OPTION_TEXT:
        o->text = true;
        return 0;
    case OPTION_AT:
        o->at = value;
        return 0;
    case OPTION_KEYS:
        o->keys = value;
        return 0;
    case OPTION_SVG:
        o->svg = value;
        return 0;
    case OPTION_BACKGROUND:
        return parse_background(value, o, err);
    case OPTION_JSON:
        o->json = true;
        return 0;
    case OPTION_TIME:
        return parse_time(value, o, err);
    case OPTION_YES:
        o->yes = true;
        return 0;
    case OPTION_LIST:
        o->list = true;
        return 0;
    case OPTION_LIMIT:
        return parse_limit(value, o, err);
    case OPTION_ALL:
        o->all = true;
        return 0;
    case OPTION_RANK:
        return parse_count("--rank", value, 1, 1000, &o->rank, err);
    case OPTION_KEEP:
        o->keep = value;
        return 0;
    case OPTION_REPEAT:
        return parse_repeat(value, o, err);
    case OPTION_EXACT:
        o->exact = true;
        return 0;
    case OPTION_CSV:
        o->csv = true;
        return 0;
    case OPTION_NCU:
        o->ncu = value;
        return 0;
    case OPTION_JUNIT:
        o->junit = value;
        return 0;
    case OPTION_OVER:
        return take_word(&o->over, option, value, err);
    case OPTION_RUNS:
        return parse_count("--runs", value, 1, 100000, &o->runs, err);
    case OPTION_SAMPLE:
        return parse_count("--sample", value, 0, INT_MAX, &o->sample, err);
    case OPTION_SHARD:
        return parse_shard(value, o, err);
    case OPTION_MERGE:
        o->merge = true;
        return 0;
    case OPTION_HELP:
        o->help = true;
        return 0;
    case OPTION_VERSION:
        o->version = true;
        return 0;
    case OPTION_COUNT:
        break;
    }
    return err_set(err, ERR_USAGE, "", "unknown option");
}

/* getopt_long's tables; the value of a long option is its index plus 256, beyond every letter. */
static void getopt_tables(struct option *longs, char *shorts)
{
    *shorts++ = ':'; /* a missing value is told apart from an unknown option */
    for (int i = 0; i < OPTION_COUNT; i++) {
        longs[i] = (struct option){option_rows[i].name, option_rows[i].argument ? required_argument : no_argument, NULL,
                                   256 + i};
        if (option_rows[i].letter) {
            *shorts++ = option_rows[i].letter;
            if (option_rows[i].argument)
                *shorts++ = ':';
        }
    }
    longs[OPTION_COUNT] = (struct option){0};
    *shorts = '\0';
}

static int option_of(int code)
{
    if (code >= 256)
        return code - 256;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_rows[i].letter == code)
            return i;
    return -1;
}

/* A word that is no command is a file; one that is no file either was meant as a command. */
static bool mistyped_command(const char *word)
{
    return !strpbrk(word, "./") && access(word, F_OK) != 0;
}

static int check_files(const struct options *o, const char *first, struct err *err)
{
    const char *wanted = command_rows[o->command].arguments;
    const int many = strstr(wanted, "...") != NULL, two = strchr(wanted, ' ') != NULL;
    if (o->all && o->n_files)
        return err_set(err, ERR_USAGE, "--all", "takes no file, found '%s'", o->files[0]);
    if (o->all)
        return o->rank ? err_set(err, ERR_USAGE, "--rank", "is of files and folders: --all takes none") : 0;
    if (!*wanted && o->n_files)
        return err_set(err, ERR_USAGE, command_rows[o->command].name, "takes no file, found '%s'", o->files[0]);
    if (!first && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) /* the last ones are offered */
        return 0;
    if (*wanted && !o->n_files)
        return err_set(err, ERR_USAGE, first ? command_rows[o->command].name : "",
                       "expected %s; attnscope --help lists commands and options", wanted);
    if (two && o->n_files != 2)
        return err_set(err, ERR_USAGE, command_rows[o->command].name, "expected %s, found %d", wanted, o->n_files);
    if (!many && !two && o->n_files > 1)
        return err_set(err, ERR_USAGE, command_rows[o->command].name, "takes one %s, found '%s' as well", wanted,
                       o->files[1]);
    return 0;
}

static int check_probes(const struct options *o, struct err *err)
{
    if (o->probes == ASKED_COMPARE && (o->command != COMMAND_RUN || o->isolate))
        return err_set(err, ERR_USAGE, "--probes", "compare applies to run%s",
                       o->isolate ? "and excludes --isolate" : "");
    return 0;
}

int options_parse(int argc, char **argv, struct options *out, struct err *err)
{
    struct option longs[OPTION_COUNT + 1];
    char shorts[2 * OPTION_COUNT + 2];
    uint64_t given = 0;
    memset(out, 0, sizeof *out);
    out->cols = 80;
    out->rows = 24;
    out->repeat = 50;
    getopt_tables(longs, shorts);
    opterr = 0;
    optind = 0;
    for (int code; (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const char *word = argv[optind - 1];
        if (code == '?')
            return err_set(err, ERR_USAGE, "", "unknown option '%s'; attnscope --help lists them", word);
        if (code == ':')
            return err_set(err, ERR_USAGE, "", "option '%s' wants a value", word);
        int i = option_of(code);
        given |= UINT64_C(1) << i;
        if (take((enum option_id)i, optarg, out, err) != 0)
            return -1;
    }
    const char *first = optind < argc ? argv[optind] : NULL;
    int command = first ? command_of(first) : -1;
    out->command = command >= 0 ? (enum command)command : COMMAND_OPEN;
    if (first && command < 0 && !out->help && !out->version && mistyped_command(first))
        return err_set(err, ERR_USAGE, "", "'%s' is neither a command nor a file; attnscope --help lists the commands",
                       first);
    optind += command >= 0;
    out->files = argv + optind;
    out->n_files = argc - optind;
    if (out->help || out->version)
        return 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (given & UINT64_C(1) << i && !(option_rows[i].commands & IN(out->command)))
            return err_set(err, ERR_USAGE, "", "option --%s does not apply to %s", option_rows[i].name,
                           command_rows[out->command].name);
    if (out->feed && !out->isolate)
        return err_set(err, ERR_USAGE, "--feed", "needs --isolate STAGE");
    if (check_probes(out, err) != 0)
        return -1;
    return check_files(out, first, err);
}

static int set_key(struct scenario *scenario, const char *setting, struct err *err)
{
    char key[128];
    const char *equals = strchr(setting, '=');
    size_t n = (size_t)(equals - setting);
    if (n >= sizeof key)
        return err_set(err, ERR_USAGE, "--set", "the key in '%s' is too long", setting);
    memcpy(key, setting, n);
    key[n] = '\0';
    return scenario_set(scenario, key, equals + 1, err);
}

static bool has_inputs(const struct options *o)
{
    return o->inputs[0] || o->inputs[1] || o->inputs[2] || o->inputs[3];
}

static bool changes_scenario(const struct options *o)
{
    return has_inputs(o) || o->on || o->shape || o->causal || o->dtype || o->mem || o->memory || o->judge || o->patch ||
           o->backend || o->probes || o->checks || o->settings.n || o->defines.n || o->includes.n || o->flags.n;
}

/* What the options say instead of the file. */
static int change_scenario(const struct options *o, struct scenario *scenario, struct err *err)
{
    int failed = 0;
    static const char *const inputs[4] = {"inputs.q", "inputs.k", "inputs.v", "inputs.from"};
    for (int i = 4; i-- > 0 && !failed;)
        if (o->inputs[i])
            failed = scenario_set(scenario, inputs[i], o->inputs[i], err);
    if (!failed && o->shape)
        failed = scenario_set_shape(scenario, o->shape, err);
    if (!failed && o->causal)
        failed = scenario_set(scenario, "shape.causal", o->causal, err);
    if (!failed && o->dtype)
        failed = scenario_set(scenario, "shape.dtype", o->dtype, err);
    if (!failed && o->patch)
        failed = scenario_set(scenario, "scenario.patch", o->patch, err);
    if (!failed && o->mem)
        failed = scenario_set(scenario, "capture.mem", o->mem, err);
    if (!failed && o->memory)
        failed = scenario_set(scenario, "capture.memory", o->memory, err);
    if (!failed && o->judge)
        failed = scenario_set(scenario, "capture.judge", o->judge, err);
    if (o->on)
        snprintf(scenario->on, sizeof scenario->on, "%s", o->on);
    if (!failed && o->backend)
        failed = scenario_set(scenario, "scenario.backend", o->backend, err);
    if (!failed && o->probes)
        failed = scenario_set(scenario, "scenario.probes",
                              asked_probes_names[o->probes == ASKED_OFF ? ASKED_OFF : ASKED_ON], err);
    if (!failed && o->checks)
        failed = scenario_set(scenario, "scenario.checks", "yes", err);
    /* Files of inputs first: what they decide gives way to what is said, in whatever order. */
    for (int inputs = 1; inputs >= 0; inputs--)
        for (int i = 0; i < o->settings.n && !failed; i++)
            if ((strncmp(o->settings.word[i], "inputs.", 7) == 0) == (inputs != 0))
                failed = set_key(scenario, o->settings.word[i], err);
    for (int i = 0; i < o->defines.n && !failed; i++)
        failed = scenario_define(scenario, o->defines.word[i], err);
    for (int i = o->includes.n; i-- > 0 && !failed;)
        failed = scenario_add_word(scenario, KEY_INCLUDE, o->includes.word[i], "-I", err);
    for (int i = 0; i < o->flags.n && !failed; i++)
        failed = scenario_add_word(scenario, KEY_FLAGS, o->flags.word[i], "--flag", err);
    if (!failed && changes_scenario(o))
        failed = scenario_check(scenario, err);
    return failed ? -1 : 0;
}

/* What a session was opened with, once more. */
static int read_again(const void *ctx, const char *path, const char *root, struct scenario *out, struct err *err)
{
    if (session_read(path, root, out, err) != 0)
        return -1;
    if (change_scenario(ctx, out, err) == 0)
        return 0;
    scenario_free(out);
    return -1;
}

int options_open(const struct options *o, const char *path, struct session **out, struct err *err)
{
    struct session *s;
    int failed = o->rerun                      ? session_open_again(path, &s, err)
                 : path_ends_in(path, ".json") ? session_open_sweep(path, &s, err)
                                               : session_open(path, &s, err);
    *out = NULL;
    if (failed)
        return failed;
    if (changes_scenario(o) && !s->subject.has_scenario)
        failed = err_set(err, ERR_USAGE, path,
                         "is a saved trace: without --rerun, --shape, --causal, --dtype, --q, --k, --v, --inputs, "
                         "--set, --define, --include, --flag, "
                         "--mem, --memory, --judge, --patch, "
                         "--backend, --on, --probes and --checks cannot change it");
    else if (s->subject.has_scenario)
        failed = change_scenario(o, &s->subject.scenario, err);
    if (failed) {
        session_free(s);
        return -1;
    }
    if (o->command != COMMAND_OPEN && o->command != COMMAND_SHOW)
        session_set_unseen(s);
    session_set_reader(s, &(struct scenario_reader){read_again, o});
    *out = s;
    return 0;
}

/* One line on a terminal, in place. */
static void show_step(void *ctx, enum runner_step step, double done, double total)
{
    (void)ctx;
    (void)done;
    (void)total;
    text_progress(runner_step_words(step));
}

const struct runner_progress *options_progress(void)
{
    static const struct runner_progress progress = {.report = show_step};
    return &progress;
}

int options_finish(struct session *s, struct err *err)
{
    if (session_start(s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    if (session_finish(s, text_progress) != 0 && !s->run.trace) {
        *err = s->job.err;
        return -1;
    }
    return 0;
}

void options_look_bias(const struct options *o, struct session *s)
{
    const struct expect *e = &s->subject.scenario.expect;
    const bool stated = s->subject.has_scenario && (e->bias || e->no_bias);
    if ((o->bias || stated) && session_look_rounding(s, s->subject.has_scenario) == 0)
        session_finish_rounding(s);
}
