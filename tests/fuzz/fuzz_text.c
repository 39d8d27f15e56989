/* What reads texts: the first byte says which of them. */
#include "engine/base/wire.h"
#include "engine/build/diagnose.h"
#include "engine/build/inputs.h"
#include "engine/build/patch.h"
#include "engine/build/scan.h"
#include "engine/child/child.h"
#include "engine/cursor/stop.h"
#include "engine/scenario/scenario.h"
#include "engine/study/isolation.h"
#include "engine/study/whatif.h"
#include "tests/fuzz/fuzz.h"
#include "tui/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void read_scenario(char *text, size_t n)
{
    struct scenario s;
    struct err err;
    if (scenario_read(fuzz_file((const uint8_t *)text, n), ".", &s, &err) == 0)
        scenario_free(&s);
}

static void read_patch(char *text, size_t n)
{
    struct err err;
    struct patch patch = {.path = "fuzz", .text = text};
    (void)n;
    (void)patch_check(&patch, &err);
}

static void read_config(char *text, size_t n)
{
    static struct config config;
    struct err err;
    config_read(fuzz_file((const uint8_t *)text, n), &config, &err);
}

static void read_file_name(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
}

static void read_preprocessed(char *text, size_t n)
{
    static const char *const own[] = {"/own/", NULL};
    struct scan scan = {.own_folders = own, .compiled_path = "k.cu", .user_path = "k.cu"};
    struct err err;
    (void)n;
    scan_preprocessed(&scan, text, &err);
    scan_free(&scan);
    user_files_tell(text, own, read_file_name, NULL);
}

static void read_compiler(char *text, size_t n)
{
    const struct diagnose names = {"/c/k.cu", "k.cu", 0};
    struct err err;
    (void)n;
    free(diagnose_words(&names, text));
    (void)diagnose_compiler(&names, text, &err);
    (void)diagnose_linker(&names, text, &err);
}

static void read_words(char *text, size_t n)
{
    static struct trace *t;
    struct err err;
    struct stop stop;
    struct cursor cursor = {0};
    struct isolation_request request;
    struct whatif_choice choice = {0};
    char bad[32];
    (void)n;
    if (!t && trace_open("tests/recorded/hung.safetensors", &t, &err) != 0)
        abort(); /* it runs in the repository's root */
    stop_parse(text, NULL, &stop, &err);
    cursor_parse(text, t, &cursor, &err);
    isolation_parse(text, NULL, &request, &err);
    whatif_parse(text, &choice, bad);
}

static void read_assertion(char *text, size_t n)
{
    struct trace_event event;
    (void)n;
    trace_event_init(&event);
    assertion_parse(text, &event);
}

static void read_wire(char *text, size_t n)
{
    int ends[2];
    struct wire w;
    struct wire_message message;
    enum wire_got got = WIRE_MESSAGE;
    struct err err;
    if (n > 60000 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    if (wire_open(&w, ends[0], &err) == 0) {
        const ssize_t written = write(ends[1], text, n);
        close(ends[1]);
        while (written >= 0 && got == WIRE_MESSAGE && wire_read(&w, 0, &got, &message, &err) == 0)
            if (got == WIRE_MESSAGE) {
                (void)wire_integer(message.json, "id", 0, 5, 0);
                (void)wire_text(message.json, "text");
                json_decref(message.json);
            }
        wire_close(&w);
    } else {
        close(ends[1]);
    }
}

/* "KEY=VALUE" in lines, as options give them one after another. */
static void read_settings(char *text, size_t n)
{
    struct scenario s;
    struct err err;
    (void)n;
    scenario_init(&s);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        char *value = strchr(line, '=');
        if (value) {
            *value++ = '\0';
            scenario_set(&s, line, value, &err);
        }
    }
    scenario_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(char *text, size_t n) = {read_scenario,     read_patch,    read_config,
                                                            read_preprocessed, read_compiler, read_words,
                                                            read_assertion,    read_wire,     read_settings};
    if (size == 0)
        return -1;
    char *text = malloc(size);
    if (!text)
        return -1;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    readers[data[0] % (sizeof readers / sizeof *readers)](text, size - 1);
    free(text);
    return 0;
}
